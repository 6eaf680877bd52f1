// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/quirk_set.hpp>

#include <support/check_twice.hpp>

using namespace ptspec::cpu;

TEST_CASE("a quirk set contains the quirks that were added") {
    CHECK_TWICE([](auto value) {
        auto const some = quirks(value(quirk::no_vmx), value(quirk::apl11));
        return some.has(quirk::no_vmx) && some.has(quirk::apl11) && !some.has(quirk::bdm70) &&
               !quirks().has(quirk::no_vmx) && quirks().bits == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const one = quirks(value(quirk::bdm70));
        return one.with(quirk::bdm64) == quirks(quirk::bdm64, quirk::bdm70) &&
               one.with(quirk::bdm64, value(true)).has(quirk::bdm64) &&
               one.with(quirk::bdm64, value(false)) == one && one.with(quirk::bdm70) == one &&
               (one | quirks(quirk::bdm64)) == quirks(quirk::bdm64, quirk::bdm70) &&
               !(one == quirks(quirk::bdm64));
    });
}

TEST_CASE("each quirk has a bit of its own") {
    using enum quirk;
    static constexpr quirk all[] = {branch_en_always_on,
                                    no_vmx,
                                    single_range_one_page,
                                    single_entry_topa,
                                    lbr_exclusive,
                                    core_scoped_msrs,
                                    no_xsaves,
                                    per_core_type_caps,
                                    short_cyc_bitmap,
                                    bdm70,
                                    bdm64,
                                    skd007,
                                    skd022,
                                    skd010,
                                    skl014,
                                    apl12,
                                    apl11,
                                    skl168,
                                    skz84};
    CHECK_TWICE([](auto value) {
        quirk_set some = quirks();
        for (quirk const one : all) {
            if (some.has(one) || quirks(value(one)).bits == 0) { return false; }
            some = some.with(one);
        }
        return some.bits == 0x7FFFF;
    });
}

// ------------------------------------------------------------------------------------ the table
