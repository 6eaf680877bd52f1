// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec::cpu;

TEST_CASE("find() is case-insensitive") {
    CHECK_TWICE([](auto value) {
        return preset::find(value(ptspec::text{"ArrowLake-E"}))->value == preset::arrow_lake_e &&
               preset::find("arrowlake-e")->value == preset::arrow_lake_e &&
               preset::find("ARROWLAKE-E")->value == preset::arrow_lake_e &&
               preset::find("ArrowLake-P")->value == preset::arrow_lake_p;
    });
    CHECK_TWICE([](auto value) {
        // A name may be a part of a longer string.
        return preset::find(ptspec::text{"P-SKL;P-ATM", value(size_t{5})})->value == preset::P_SKL;
    });
    CHECK_TWICE([](auto value) {
        return preset::find(value(ptspec::text{"p-skl"}))->value == preset::P_SKL &&
               preset::find("P-NONE")->value == preset::P_NONE &&
               preset::find("P-BDW")->value == preset::P_BDW &&
               preset::find("P-ATM")->value == preset::P_ATM &&
               preset::find("P-FUT")->value == preset::P_FUT &&
               preset::find("P-SRO")->value == preset::P_SRO &&
               preset::find("P-FAB")->value == preset::P_FAB;
    });
    CHECK_TWICE([](auto value) {
        return preset::find(value(ptspec::text{"Broadwell-ULT"}))->value == preset::broadwell &&
               preset::find("Skylake-X")->value == preset::skylake_x &&
               preset::find("CannonLake")->value == preset::cannon_lake &&
               preset::find("IceLake-U")->value == preset::ice_lake_u &&
               preset::find("TigerLake")->value == preset::tiger_lake &&
               preset::find("SapphireRapids")->value == preset::sapphire_rapids &&
               preset::find("AlderLake-P")->value == preset::alder_lake_p &&
               preset::find("AlderLake-E")->value == preset::alder_lake_e &&
               preset::find("ArrowLake-P")->value == preset::arrow_lake_p &&
               preset::find("WildcatLake-P")->value == preset::wildcat_lake_p &&
               preset::find("WildcatLake-E")->value == preset::wildcat_lake_e &&
               preset::find("QEMU")->value == preset::qemu;
    });
}

TEST_CASE("find() accepts the part before the hyphen if only one processor has it") {
    CHECK_TWICE([](auto value) {
        return preset::find(value(ptspec::text{"Broadwell"}))->value == preset::broadwell &&
               preset::find("broadwell")->name == "Broadwell-ULT" &&
               preset::find("Skylake")->name == "Skylake-X" &&
               preset::find("Goldmont")->name == "Goldmont" &&  // not GoldmontPlus
               !preset::find("AlderLake") && !preset::find("P") && !preset::find("Broadwell-") &&
               !preset::find("Skylake-X-1") && !preset::find("Broad");
    });
}

TEST_CASE("an unknown name finds nothing") {
    CHECK_TWICE([](auto value) {
        auto const nothing = preset::find(value(ptspec::text{"P-SK"}));
        return !nothing && nothing->value == capabilities{} && nothing->name.size() == 0 &&
               !preset::find("P-SKL ") && !preset::find("") && !preset::find("P_SKL") &&
               !preset::find("Skylake_X") && !preset::find("P\rSKL") && !preset::find("Q-SKL") &&
               preset::find("Q-SKL")->value == capabilities{} && preset::find("P-SKL");
    });
}

TEST_CASE("only the 26 letters have two cases") {
    CHECK_TWICE([](auto value) {
        using preset::detail::lower_case;
        return lower_case(value('A')) == 'a' && lower_case(value('Z')) == 'z' &&
               lower_case(value('@')) == '@' && lower_case(value('[')) == '[' &&
               lower_case(value('a')) == 'a' && lower_case(value('-')) == '-';
    });
}

TEST_CASE("names are unique and have no blanks") {
    for (auto const& one : preset::all) {
        auto const found = preset::find(one.name);
        CHECK((found && found->name == one.name && found->value == one.value));
        for (char const letter : one.name) { CHECK(letter > ' '); }
    }
    size_t count = 0;
    for ([[maybe_unused]] auto const& one : preset::all) { ++count; }
    CHECK(count == preset::all.size());
}
