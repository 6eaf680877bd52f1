// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/table_site.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/topa/builders.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("a site can be constructed from an address, with the default limits") {
    CHECK_TWICE([](auto value) {
        topa::table_site const at = value(uint64_t{0x1000});
        return at.base == 0x1000 && at.limits == topa::limits{};
    });
}

TEST_CASE("limits::of() takes MAXPHYADDR and MENTRY of a processor (REG-070, REG-163)") {
    CHECK_TWICE([](auto value) {
        // Broadwell has 39 address bits and no MENTRY, Skylake has MENTRY.
        auto const broadwell = topa::limits::of(value(cpu::preset::P_BDW));
        auto const skylake = topa::limits::of(value(cpu::preset::P_SKL));
        return broadwell.width.bits == 39 && !broadwell.many_entries && skylake.width.bits == 39 &&
               skylake.many_entries;
    });
}

TEST_CASE("a builder takes the limits of a processor in one call (OUT-067)") {
    CHECK_TWICE([](auto value) {
        topa::table_site const at{0x1000, topa::limits::of(value(cpu::preset::P_BDW))};
        topa::region const one{.base = 0x10'0000};
        topa::region const two{.base = 0x20'0000};
        return topa::try_ring(at, one) &&
               topa::try_ring(at, one, two).violated.broken == rule::OUT_067;
    });
}

TEST_CASE("builders accept local constants inside a function") {
    constexpr auto of = [](uint64_t base) consteval {
        topa::region const one{.base = base};
        return topa::ring(base + 0x1000, one);
    };
    constexpr auto table = of(0x10'0000);
    static_assert(table.entries[0].raw == 0x10'0000);
    static_assert(table.entries[1].raw == 0x10'1001);
    CHECK(table.size() == 2);
}
