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
