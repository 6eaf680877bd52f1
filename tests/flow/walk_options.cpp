// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/walk_options.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("a range has its first and its last IP (REG-078)") {
    CHECK_TWICE([](auto value) {
        auto const range = value(flow::ip_range{0x1000, 0x1FFF});
        auto const all = value(flow::ip_range{0, ~uint64_t{0}});
        return range.contains(0x1000) && range.contains(0x1FFF) && !range.contains(0x2000) &&
               !range.contains(0xFFF) && all.contains(0) && all.contains(~uint64_t{0});
    });
}

TEST_CASE("a walk reports gaps, and pops the return stack as the manual says (GEN-134)") {
    CHECK_TWICE([](auto value) {
        auto const how = value(flow::walk_options{});
        return how.missing == flow::on_missing_code::gap && how.filter_count == 0 &&
               how.on_ret_mismatch == trace::ret_mismatch::pop;
    });
}

TEST_CASE("IA32_RTIT_CTL says what the trace can have (REG-024..041)") {
    CHECK_TWICE([](auto value) {
        auto const of = [](uint64_t ctl) { return flow::with_ctl({}, {ctl}); };
        auto const all = of(value(uint64_t{1} << 13));
        auto const none = of(value(uint64_t{1} << 55 | 1 << 11));
        flow::walk_options const usual;
        return all.has_branches && all.has_tnt && all.has_compressed_rets && !none.has_branches &&
               !none.has_tnt && !none.has_compressed_rets && usual.has_branches && usual.has_tnt &&
               usual.has_compressed_rets;
    });
}
