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
        auto const need = needs{}.with(suite::features::cr3_filter);
        suite::snippet code;
        code.needs = underlying(suite::snippet_need::ptwrite);
        auto const writes = needs{}.with(code);
        auto const without_pt = needs{.is_without_pt = value(true)};
        return suite::missing(need, cpu::preset::P_SRO, all_abilities, 8) ==
                   text{"CPUID.14H.0:EBX.CR3FILTER is 0"} &&
               !is_missing(need, cpu::preset::P_SKL) && is_missing(writes, cpu::preset::P_SKL) &&
               !is_missing(writes, cpu::preset::P_ATM) &&
               is_missing(without_pt, cpu::preset::P_SKL) &&
               !is_missing(without_pt, cpu::preset::P_NONE);
    });
}

TEST_CASE("a feature of CPUID.14H.0:EBX is its bit") {
    using namespace suite::features;
    struct row {
        suite::feature const& one;
        uint32_t ebx;
        bool is_met_with_bit;
    };
    CHECK_TWICE([](auto value) {
        for (auto const& [one, bit, is_met_with_bit] : suite::few{
                 row{cr3_filter, 1U << 0, true},
                 row{cyc, 1U << 1, true},
                 row{no_cyc, 1U << 1, false},
                 row{mtc, 1U << 3, true},
                 row{suite::features::ptwrite, 1U << 4, true},
                 row{preservation, 1U << 6, true},
                 row{dis_tnt, 1U << 8, true},
             }) {
            cpu::capabilities caps = cpu::preset::P_SKL;
            caps.leaf_14_0_ebx.raw = value(bit);
            needs const need{.has = one};
            if (is_missing(need, caps) == is_met_with_bit) { return false; }
            caps.leaf_14_0_ebx.raw = ~bit;
            if (is_missing(need, caps) != is_met_with_bit) { return false; }
        }
        return true;
    });
}
