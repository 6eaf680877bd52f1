// SPDX-License-Identifier: BSL-1.0
#include <ptspec/config/nearest.hpp>

#include <ptspec/cpu/presets.hpp>
#include <support/check_twice.hpp>

using namespace ptspec::cpu;
using namespace ptspec::config;
using ptspec::wrapped;

TEST_CASE("the nearest of the MTC periods 0, 3, 6 and 9 is found (REG-028)") {
    CHECK_TWICE([](auto value) {
        unsigned const expected[] = {0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 9, 9, 9, 9, 9};
        bool all = true;
        for (unsigned n = 0; n < 16; ++n) {
            auto const found = nearest(preset::P_SKL, mtc_period::encoded(wrapped{value(n)}));
            all = all && found && found.value.encoding() == expected[n];
        }
        return all;
    });
}

TEST_CASE("the smaller one of two equally near encodings is returned") {
    CHECK_TWICE([](auto value) {
        auto part = value(preset::P_SKL);
        part.leaf_14_1_eax = {0x0022'0002};  // MTCFreq 0 (always), 1 and 5
        part.leaf_14_1_ebx = {0x8001'0008};  // CycThresh 0 and 3; PSBFreq 0 and 15
        return nearest(part, mtc_period::encoded(3)).value.encoding() == 1 &&
               nearest(part, mtc_period::encoded(4)).value.encoding() == 5 &&
               nearest(part, cyc_threshold::encoded(1)).value.encoding() == 0 &&
               nearest(part, cyc_threshold::encoded(2)).value.encoding() == 3 &&
               nearest(part, psb_period::encoded(7)).value.encoding() == 0 &&
               nearest(part, psb_period::encoded(8)).value.encoding() == 15;
    });
}

TEST_CASE("a missing feature has no nearest encoding (REG-027, REG-030)") {
    CHECK_TWICE([](auto value) {
        return !nearest(value(preset::P_BDW), mtc_period{}) &&
               !nearest(value(preset::P_BDW), cyc_threshold{}) &&
               !nearest(value(preset::P_BDW), psb_period{}) &&
               !nearest(value(preset::P_FAB), cyc_threshold::encoded(1)) &&
               nearest(value(preset::P_FAB), mtc_period::encoded(5)) ==
                   nearest_of<mtc_period>{true, {}} &&
               nearest(value(preset::P_BDW), psb_period::encoded(3)) == nearest_of<psb_period>{};
    });
}

TEST_CASE("the returned encoding is supported, and no nearer one is") {
    unsigned wrong = 0;
    for (auto const& one : preset::all) {
        for (unsigned n = 0; n < 16; ++n) {
            auto const found = nearest(one.value, cyc_threshold::encoded(wrapped{n}));
            for (unsigned other = 0; other < 16; ++other) {
                if (!one.value.supports(cyc_threshold::encoded(wrapped{other}))) { continue; }
                auto const distance = [&](unsigned e) { return e < n ? n - e : e - n; };
                if (!found || !one.value.supports(found.value) ||
                    distance(other) < distance(found.value.encoding()) ||
                    (distance(other) == distance(found.value.encoding()) &&
                     other < found.value.encoding())) {
                    ++wrong;
                }
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("the nearest output is the wanted one, else ToPA, single range, trace transport "
          "(REG-024..026)") {
    CHECK_TWICE([](auto value) {
        return nearest(value(preset::P_SKL), output_scheme::topa) ==
                   nearest_of<output_scheme>{true, output_scheme::topa} &&
               nearest(value(preset::P_SKL), output_scheme::single_range).value ==
                   output_scheme::single_range &&
               nearest(value(preset::P_SKL), output_scheme::fabric).value == output_scheme::topa &&
               nearest(value(preset::P_FUT), output_scheme::fabric).value ==
                   output_scheme::fabric &&
               nearest(value(preset::P_BDW), output_scheme::single_range).value ==
                   output_scheme::topa;
    });
    CHECK_TWICE([](auto value) {
        return nearest(value(preset::P_SRO), output_scheme::topa).value ==
                   output_scheme::single_range &&
               nearest(value(preset::P_SRO), output_scheme::fabric).value ==
                   output_scheme::single_range &&
               nearest(value(preset::P_FAB), output_scheme::topa).value == output_scheme::fabric &&
               nearest(value(preset::P_FAB), output_scheme::single_range).value ==
                   output_scheme::fabric;
    });
}

TEST_CASE("without any output there is no nearest one (PRG-003)") {
    CHECK_TWICE([](auto value) {
        return !nearest(value(preset::P_NONE), output_scheme::topa) &&
               !nearest(value(preset::P_NONE), output_scheme::fabric);
    });
}
