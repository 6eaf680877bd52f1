// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/table.hpp>

#include <support/check_twice.hpp>

#include <cstdint>
#include <type_traits>

using ptspec::max_phys_addr;
using ptspec::rule;
using namespace ptspec;

// What a mistake says while compiling is in tests/fail/ring_*.cpp.

namespace {

constexpr auto two_regions = topa::ring(
    0x1'0000'0000, topa::region{.base = 0x1'0010'0000, .size = topa::region_size::size_1M},
    topa::region{.base = 0x1'0020'0000, .size = topa::region_size::size_64K, .interrupt = true});

alignas(4096) constinit auto placed = two_regions;

constexpr topa::region at_1M{.base = 0x10'0000, .size = topa::region_size::size_1M};
constexpr topa::region at_64K{.base = 0x1'0000, .size = topa::region_size::size_64K};

}  // namespace

TEST_CASE("a region becomes an entry, field by field (OUT-040,041)") {
    CHECK_TWICE([](auto value) {
        auto const bare = topa::region{.base = value(uint64_t{0x1234'5000})};
        auto with_interrupt = bare;
        with_interrupt.interrupt = true;
        auto with_stop = bare;
        with_stop.stop = true;
        return topa::entry_for(bare).raw == 0x1234'5000 &&
               topa::entry_for(with_interrupt).raw == 0x1234'5004 &&
               topa::entry_for(with_stop).raw == 0x1234'5010;
    });
    CHECK_TWICE([](auto value) {
        return topa::entry_for(
                   {value(uint64_t{0x7F'FE00'0000}), topa::region_size::size_2M, true, true})
                       .raw == 0x7F'FE00'0254 &&
               topa::entry_for(topa::region{}).raw == 0 &&
               topa::entry_for({value(uint64_t{0x1FFF})}).raw == 0x1000;
    });
}

TEST_CASE("a ring is its regions and a link back to itself (OUT-043,045,047,056)") {
    static_assert(two_regions.size() == 3 && sizeof(two_regions) == 24);
    static_assert(two_regions.entries[0].raw == (0x1'0010'0000 | 8 << 6));
    static_assert(two_regions.entries[1].raw == (0x1'0020'0000 | 4 << 6 | 1 << 2));
    static_assert(two_regions.entries[2].raw == (0x1'0000'0000 | 1));
    static_assert(two_regions.entries[2] == topa::link_to(0x1'0000'0000));
    CHECK_TWICE([](auto value) {
        auto const made = topa::try_ring(value(uint64_t{0x1'0000'0000}),
                                         topa::region{.base = value(uint64_t{0x1'0010'0000}),
                                                      .size = topa::region_size::size_1M},
                                         topa::region{.base = value(uint64_t{0x1'0020'0000}),
                                                      .size = topa::region_size::size_64K,
                                                      .interrupt = value(true)});
        return made && made.table == two_regions && made.why == topa::finding{};
    });
}

TEST_CASE("a ring can be placed where a processor finds it") {
    CHECK(reinterpret_cast<std::uintptr_t>(&placed) % 4096 == 0);
    CHECK(placed.entries[0].raw == 0x1'0010'0200);
    static_assert(std::is_trivially_copyable_v<decltype(placed)>);
}

TEST_CASE("one region is a ring") {
    CHECK_TWICE([](auto value) {
        auto const made = topa::try_ring(value(uint64_t{0x1000}), value(at_64K));
        return made && made.table.size() == 2 && made.table.entries[0].raw == 0x1'0100 &&
               made.table.entries[1].raw == 0x1001;
    });
}

TEST_CASE("a table begins at a multiple of 4 KB (OUT-061)") {
    CHECK_TWICE([](auto value) {
        auto const made = topa::try_ring(value(uint64_t{0x1'0080}), value(at_1M), value(at_64K));
        return !made && made.why == topa::finding{rule::OUT_061, 2} &&
               made.table == topa::table<3>{};
    });
    CHECK_TWICE([](auto value) {
        return topa::try_ring(value(uint64_t{0x1'0800}), at_1M).why.broken == rule::OUT_061 &&
               topa::try_ring(value(uint64_t{0x1'0001}), at_1M).why.broken == rule::OUT_061 &&
               topa::try_ring(value(uint64_t{0}), at_1M).why.broken == rule::none;
    });
}

TEST_CASE("a region begins at a multiple of its size, and the finding says which (OUT-062)") {
    CHECK_TWICE([](auto value) {
        auto const wrong = topa::region{.base = value(uint64_t{0x1'8000}),
                                        .size = topa::region_size::size_64K};
        auto const first = topa::try_ring(0x1000, wrong, at_1M, at_64K);
        auto const second = topa::try_ring(0x1000, at_1M, wrong, at_64K);
        auto const third = topa::try_ring(0x1000, at_1M, at_64K, wrong);
        return !first && first.why == topa::finding{rule::OUT_062, 0} && !second &&
               second.why == topa::finding{rule::OUT_062, 1} && !third &&
               third.why == topa::finding{rule::OUT_062, 2} && third.table == topa::table<4>{};
    });
    CHECK_TWICE([](auto value) {  // also below 4 KB, which an entry cannot say
        for (unsigned bit = 0; bit < 12; ++bit) {
            auto const low = topa::region{.base = 0x2000 | value(uint64_t{1}) << bit};
            if (topa::try_ring(0x1000, at_1M, low).why != topa::finding{rule::OUT_062, 1}) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("of several mistakes the first is told: the table, then the regions in order") {
    CHECK_TWICE([](auto value) {
        auto const wrong = topa::region{.base = value(uint64_t{0x1'8000}),
                                        .size = topa::region_size::size_64K};
        auto const high = topa::region{.base = value(uint64_t{1} << 52)};
        return topa::try_ring(0x1000, at_1M, wrong, high).why == topa::finding{rule::OUT_062, 1} &&
               topa::try_ring(0x1000, at_1M, high, wrong).why == topa::finding{rule::OUT_063, 1} &&
               topa::try_ring(0x1001, high, wrong).why == topa::finding{rule::OUT_061, 2};
    });
}

TEST_CASE("every address lies below 2^MAXPHYADDR, 2^52 unless it is said (OUT-063)") {
    CHECK_TWICE([](auto value) {
        auto const high = topa::region{.base = value(uint64_t{0x80'0000'0000})};  // bit 39
        return topa::try_ring(max_phys_addr{39}, 0x1000, at_1M, high).why ==
                   topa::finding{rule::OUT_063, 1} &&
               topa::try_ring(max_phys_addr{40}, 0x1000, at_1M, high) &&
               topa::try_ring(0x1000, at_1M, high);
    });
    CHECK_TWICE([](auto value) {
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return topa::try_ring(max_phys_addr{39}, high, at_1M).why ==
                   topa::finding{rule::OUT_063, 1} &&
               topa::try_ring(max_phys_addr{40}, high, at_1M).table.entries[1].raw ==
                   0x80'0000'0001;
    });
    CHECK_TWICE([](auto value) {
        return topa::try_ring(value(uint64_t{0xF'FFFF'FFFF'F000}), at_1M) &&
               topa::try_ring(value(uint64_t{0x10'0000'0000'0000}), at_1M).why ==
                   topa::finding{rule::OUT_063, 1};
    });
}

TEST_CASE("a ring for a narrower processor is proved against its width") {
    constexpr auto made = topa::ring(max_phys_addr{36}, 0xF'FFFF'F000, at_1M);
    static_assert(made.entries[1].raw == 0xF'FFFF'F001);
    CHECK(made.entries[0].raw == 0x10'0200);
}

TEST_CASE("tables and findings are equal when every part is") {
    CHECK_TWICE([](auto value) {
        auto other = value(two_regions);
        bool const same = other == two_regions;
        other.entries[2] = topa::link_to(0x2000);
        auto const found = value(topa::finding{rule::OUT_062, 1});
        return same && other != two_regions && value(topa::finding{}).broken == rule::none &&
               value(topa::finding{}).index == 0 && value(topa::region{}).base == 0 &&
               found == topa::finding{rule::OUT_062, 1} &&
               found != topa::finding{rule::OUT_062, 0} && found != topa::finding{rule::OUT_063, 1};
    });
}
