// SPDX-License-Identifier: BSL-1.0
#include <ptspec/driver/pebs.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

constexpr auto with_perf_capabilities(uint64_t value) -> cpu::capabilities {
    auto caps = cpu::preset::ice_lake_u;
    caps.perf_capabilities = {value};
    return caps;
}

}  // namespace

TEST_CASE("PEBS records go to the trace by bits 62:61 = 01B, for all counters (REG-200)") {
    CHECK_TWICE([](auto value) {
        auto const caps = with_perf_capabilities(value(uint64_t{1} << 16 | 4 << 8));
        auto const made = driver::plan_pebs(caps, {0x1'0000'0003});
        return made && made.enable.raw == (uint64_t{1} << 61 | 0x1'0000'0003) &&
               driver::plan_pebs(caps, {uint64_t{1} << 60}).enable.raw == uint64_t{3} << 60;
    });
}

TEST_CASE("without the capability, and with architectural PEBS, records are not in the trace "
          "(REG-200,201)") {
    CHECK_TWICE([](auto value) {
        auto const why = [&](uint64_t capabilities) {
            return driver::plan_pebs(with_perf_capabilities(value(capabilities)), {1}).why;
        };
        auto none = with_perf_capabilities(1 << 16);
        none.leaf_07_0_ebx = {};
        return why(4 << 8) == rule::REG_200 && why(1 << 16 | 0xF << 8) == rule::REG_201 &&
               why(1 << 16 | 0xE << 8) == rule::none &&
               driver::plan_pebs(none, {1}).why == rule::REG_200;
    });
}
