// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/needs.hpp>

#include <support/check_twice.hpp>

#include <ptspec/cpu/presets.hpp>

namespace {

using namespace ptspec;
using suite::ability;
using suite::needs;
using suite::wanted_output;

constexpr auto all_abilities = suite::ability_set{0xFFFF};

constexpr auto is_missing(needs const& need, cpu::capabilities const& caps,
                          suite::ability_set abilities = all_abilities, uint32_t pages = 8) {
    return suite::missing(need, caps, abilities, pages).size() != 0;
}

}  // namespace

TEST_CASE("a check is skipped by the output scheme, the pages or the ability that is missing") {
    using namespace cpu::preset;
    CHECK_TWICE([](auto value) {
        auto const any = needs::tracing();
        auto const many = needs::tracing(wanted_output::topa_of_many_entries);
        auto const single = needs::tracing(wanted_output::single_range);
        return !is_missing(any, value(skylake_x)) && is_missing(any, P_FAB) &&
               is_missing(any, P_NONE) && is_missing(many, P_SRO) && !is_missing(many, P_SKL) &&
               is_missing(many, P_BDW) && !is_missing(single, P_SRO) &&
               is_missing(any, skylake_x, all_abilities, value(7U)) &&
               is_missing(any, skylake_x, suite::ability_set{}.with(ability::enable));
    });
}

TEST_CASE("a feature that a check or its snippet needs is named where it is missing") {
    CHECK_TWICE([](auto value) {
        auto const need = needs{}.with(
            [](cpu::capabilities const& caps) { return caps.has_cr3_filtering(); },
            "no CR3 filter");
        suite::snippet code;
        code.needs = underlying(suite::snippet_need::ptwrite);
        auto const writes = needs{}.with(code);
        auto const without_pt = needs{.is_without_pt = value(true)};
        return suite::missing(need, cpu::preset::P_SRO, all_abilities, 8) ==
                   text{"no CR3 filter"} &&
               !is_missing(need, cpu::preset::P_SKL) && is_missing(writes, cpu::preset::P_SKL) &&
               !is_missing(writes, cpu::preset::P_ATM) &&
               is_missing(without_pt, cpu::preset::P_SKL) &&
               !is_missing(without_pt, cpu::preset::P_NONE);
    });
}
