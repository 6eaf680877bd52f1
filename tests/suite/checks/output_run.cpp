// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/checks/output_run.hpp>

#include <support/suite_sweep.hpp>

namespace {

using namespace ptspec;
namespace detail = suite::checks::detail;

/// What `follow` finds of a path whose first region ends `before_end` bytes after the first byte.
constexpr auto follow_into(uint32_t second_page) {
    uint8_t bytes[8 * 4096] = {};
    auto const& caps = cpu::preset::skylake_x;
    suite::model_target model{caps, engine::options_of(caps), bytes, 8};
    suite::armed on{model, caps, suite::rule_of("OUT-053")};
    on.clear();
    on.set_entry(0, 0, on.region(5));
    on.set_entry(0, 1, on.region(6));
    (void)on.set(reg::ia32_rtit_status::address, 0);
    (void)on.set_output(on.page(0), 0, 4096 - 20);
    suite::stretch const path[] = {{6 * 4096 - 20, 6 * 4096},
                                   {second_page * 4096UL, (second_page + 1) * 4096UL}};
    detail::follow(on, suite::rule_of("OUT-053"),
                   on.usual_ctl().with(reg::ia32_rtit_ctl::ToPA{true}), path, on.page(0), 1);
    return on.result();
}

}  // namespace

TEST_CASE("follow() accepts the path of the bytes, and no other") {
    CHECK_TWICE([](auto value) {
        return follow_into(value(6U)).what == suite::outcome::holds &&
               follow_into(value(7U)).what == suite::outcome::broken;
    });
}
