// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/enumerated_quirks.hpp>

#include <ptspec/cpu/presets.hpp>
#include <support/check_twice.hpp>

using namespace ptspec::cpu;
using namespace ptspec::reg;

TEST_CASE("the profiles of the catalogue have the quirks that follow from their capabilities") {
    CHECK_TWICE([](auto value) {
        auto const found = quirks_of(value(preset::P_SRO));
        return found == quirks(quirk::no_xsaves, quirk::short_cyc_bitmap);
    });
    CHECK_TWICE([](auto value) {
        auto const found = quirks_of(value(preset::P_FAB));
        return found == quirks(quirk::no_xsaves);
    });
    CHECK_TWICE([](auto value) { return quirks_of(value(preset::P_FUT)) == quirk_set{}; });
    CHECK_TWICE([](auto value) { return quirks_of(value(preset::P_NONE)) == quirk_set{}; });
    CHECK_TWICE([](auto value) { return quirks_of(value(preset::P_ATM)) == quirks(quirk::apl11); });
}

TEST_CASE("Broadwell has its known quirks (REG-040, REG-120, REG-140, REG-163)") {
    auto const expected = [] {
        return quirks(quirk::branch_en_always_on, quirk::no_vmx, quirk::single_entry_topa,
                      quirk::lbr_exclusive, quirk::no_xsaves, quirk::bdm70, quirk::bdm64);
    };
    CHECK_TWICE([=](auto value) { return quirks_of(value(preset::broadwell)) == expected(); });
    // The same for an unknown model: the quirks follow from the enumeration.
    CHECK_TWICE([](auto value) {
        auto unknown = value(preset::broadwell);
        unknown.leaf_01_eax = {0};
        return quirks_of(unknown) == quirks(quirk::branch_en_always_on, quirk::no_vmx,
                                            quirk::single_entry_topa, quirk::no_xsaves);
    });
}

TEST_CASE("the quirks of the model remain even where the capabilities contradict them") {
    CHECK_TWICE([](auto value) {
        auto contradicting = value(preset::skylake_x);
        contradicting.leaf_01_eax = preset::broadwell.leaf_01_eax;
        auto const found = quirks_of(contradicting);
        return found.has(quirk::branch_en_always_on) && found.has(quirk::no_vmx) &&
               found.has(quirk::no_xsaves) && !found.has(quirk::single_entry_topa);
    });
}

TEST_CASE("without Intel PT only the model determines the quirks") {
    CHECK_TWICE([](auto value) {
        auto without = value(preset::broadwell);
        without.leaf_07_0_ebx = {0};
        return quirks_of(without) == quirks_of(without.leaf_01_eax);
    });
}

TEST_CASE("fewer CYC thresholds than 0 to 13 are short (REG-164)") {
    CHECK(first_cyc_thresholds == 0x3FFF);
    CHECK_TWICE([](auto value) {
        return quirks_of(value(preset::arrow_lake_p)).has(quirk::short_cyc_bitmap) &&
               quirks_of(value(preset::tiger_lake)).has(quirk::short_cyc_bitmap) &&
               !quirks_of(value(preset::skylake_x)).has(quirk::short_cyc_bitmap) &&
               !quirks_of(value(preset::P_ATM)).has(quirk::short_cyc_bitmap) &&
               !quirks_of(value(preset::P_BDW)).has(quirk::short_cyc_bitmap);
    });
    CHECK_TWICE([](auto value) {
        auto part = value(preset::P_SKL);
        part.leaf_14_1_ebx = {0x003F'3FFE};  // encoding 0 is always legal
        bool const without_bit_0 = quirks_of(part).has(quirk::short_cyc_bitmap);
        part.leaf_14_1_ebx = {0x003F'FFFD};
        return !without_bit_0 && quirks_of(part).has(quirk::short_cyc_bitmap);
    });
}

TEST_CASE("a single capability bit decides about a quirk") {
    CHECK_TWICE([](auto value) {
        auto part = value(preset::skylake_x);
        part.leaf_14_0_ecx = {0x5};
        return quirks_of(part).has(quirk::single_entry_topa) &&
               !quirks_of(value(preset::skylake_x)).has(quirk::single_entry_topa);
    });
    CHECK_TWICE([](auto value) {
        auto part = value(preset::skylake_x);
        part.vmx_misc = {0x7004'81E7};
        return quirks_of(part).has(quirk::no_vmx) &&
               !quirks_of(value(preset::skylake_x)).has(quirk::no_vmx);
    });
    CHECK_TWICE([](auto value) {
        auto part = value(preset::skylake_x);
        part.leaf_14_0_ebx = {0x7};
        return quirks_of(part).has(quirk::branch_en_always_on) &&
               !quirks_of(value(preset::skylake_x)).has(quirk::branch_en_always_on);
    });
    CHECK_TWICE([](auto value) {
        auto part = value(preset::skylake_x);
        part.leaf_0d_1_ecx = {0};
        return quirks_of(part).has(quirk::no_xsaves) &&
               !quirks_of(value(preset::skylake_x)).has(quirk::no_xsaves);
    });
}

TEST_CASE("both core types of a hybrid processor have per_core_type_caps") {
    CHECK_TWICE([](auto value) {
        return quirks_of(value(preset::arrow_lake_p)) == quirks_of(value(preset::arrow_lake_e)) &&
               quirks_of(value(preset::wildcat_lake_e)).has(quirk::per_core_type_caps) &&
               quirks_of(value(preset::wildcat_lake_p)).has(quirk::per_core_type_caps);
    });
}
