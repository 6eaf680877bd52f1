// SPDX-License-Identifier: BSL-1.0
// A result converts to true when nothing is wrong. What is wrong does not convert.
#include <ptspec/ptspec.hpp>

#include "support/check_twice.hpp"

using namespace ptspec;

namespace {

// Not std::is_constructible_v: it also allows what a braced initialiser would convert.
template <class T>
concept converts = requires(T const& one) { static_cast<bool>(one); };

// Without a value that is wrong, and with one: the two differ, and the first is true.
template <class Result>
constexpr auto is_right_only(Result const& right, Result const& wrong) -> bool {
    return static_cast<bool>(right) && !static_cast<bool>(wrong);
}

}  // namespace

TEST_CASE("faults, violations and explanations do not convert to bool") {
    static_assert(!converts<port_fault> && !converts<driver::msr_fault>);
    static_assert(!converts<topa::violation> && !converts<trace::violation>);
    static_assert(!converts<vmx::violation> && !converts<config::violation>);
    static_assert(!converts<access::violation> && !converts<engine::explanation>);
}

TEST_CASE("a result is true without, and false with a broken rule") {
    CHECK_TWICE([](auto value) {
        rule const bad = value(rule::REG_044);
        config::config_verdict impossible{};
        impossible.broken = bad;
        config::config_verdict refused{};
        refused.violation_count = value(1U);
        return is_right_only(access::verdict{}, {access::outcome::general_protection, bad}) &&
               is_right_only(access::effect{},
                             {.verdict = {access::outcome::general_protection, bad}}) &&
               is_right_only(topa::built<2>{}, {.violated = {bad, {}}}) &&
               is_right_only(topa::built_chain<2>{}, {.violated = {bad, {}}}) &&
               is_right_only(topa::page_regions{}, {.broken = bad}) &&
               is_right_only(topa::loaded_entry{}, {.broken = bad}) &&
               is_right_only(config::config_verdict{}, impossible) &&
               is_right_only(config::config_verdict{}, refused) &&
               is_right_only(driver::built_ring{}, {.broken = bad}) &&
               is_right_only(driver::parsed_area{}, {.broken = bad}) &&
               is_right_only(driver::plan_result{}, {.broken = bad}) &&
               is_right_only(vmx::transition{}, {.violated = {bad}}) &&
               is_right_only(vmx::nested_entry{}, {.broken = bad}) &&
               is_right_only(vmx::guest_offer{}, {.broken = bad}) &&
               is_right_only(vmx::rebased_tsc{}, {.broken = bad}) &&
               is_right_only(vmx::kept_part{}, {.broken = bad});
    });
}

TEST_CASE("a result is true without, and false with a fault or an error") {
    CHECK_TWICE([](auto value) {
        bool const happened = value(true);
        return is_right_only(driver::procedure_result{}, {.fault = {.happened = happened}}) &&
               is_right_only(topa::loaded_entry{}, {.fault = {happened, 0}}) &&
               is_right_only(engine::write_result{}, {.fault = {happened, 0}}) &&
               is_right_only(packet::decoded{}, {.error = packet::error::truncated}) &&
               is_right_only(access::load_result{}, {.error = access::error::refused}) &&
               is_right_only(config::perf_config{}, {.error = config::error::unknown_bit}) &&
               is_right_only(port_value{true, 0}, port_value{!happened, 0});
    });
}
