// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/quirks.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>
#include <set>
#include <vector>

using namespace ptspec::cpu;
using ptspec::reg::cpuid_01h_eax;

namespace {

/// CPUID.01H:EAX of a model of family 6, or of a family above 15.
constexpr auto signature(unsigned family, unsigned model, unsigned stepping = 0) -> cpuid_01h_eax {
    auto const high = family > 15 ? (family - 15) << 20 | 0xF00U : family << 8;
    return {high | (model >> 4) << 16 | (model & 15) << 4 | stepping};
}

struct list_of_models {
    quirk which;
    std::vector<unsigned> models;  ///< models of family 6; other families as 0x12'01
};

// Tables 3.6 and 3.7 of tests/spec/drivers.md, indexed by quirk.

std::vector<unsigned> const broadwell = {0x3D, 0x47, 0x4F, 0x56};
std::vector<unsigned> const skylake = {0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6};
std::vector<unsigned> const skylake_server = {0x55, 0x6A, 0x6C};
std::vector<unsigned> const later_server = {0x8F, 0xCF, 0xAD, 0xAE, 0x1301};
std::vector<unsigned> const ice_lake = {0x66, 0x7D, 0x7E, 0x8C, 0x8D, 0xA7, 0xA8};
std::vector<unsigned> const hybrid = {0x97, 0x9A, 0xBA, 0xB7, 0xBF, 0xC5, 0xC6,   0xB5,
                                      0xAA, 0xAC, 0xBD, 0xCC, 0xD5, 0xE5, 0x1201, 0x1203};
std::vector<unsigned> const raptor_cove = {0xD7};
std::vector<unsigned> const lakefield = {0x8A};
std::vector<unsigned> const goldmont = {0x5C, 0x5F};
std::vector<unsigned> const later_atom = {0x7A, 0x86, 0x96, 0x9C, 0xB6, 0xAF, 0xBE, 0xDD};

auto concatenated(std::initializer_list<std::vector<unsigned>> lists) -> std::vector<unsigned> {
    std::vector<unsigned> all;
    for (auto const& list : lists) { all.insert(all.end(), list.begin(), list.end()); }
    return all;
}

auto expected_lists() -> std::vector<list_of_models> {
    return {
        {quirk::branch_en_always_on, broadwell},
        {quirk::no_vmx, broadwell},
        {quirk::no_xsaves, broadwell},
        {quirk::lbr_exclusive, {0x3D, 0x47, 0x4E, 0x4F, 0x56, 0x5E}},
        {quirk::single_range_one_page, {0x8C, 0x8D, 0x97, 0x9A, 0xB7, 0xBA, 0xBF, 0xD7}},
        {quirk::single_entry_topa, {}},
        {quirk::core_scoped_msrs, {0x5C, 0x5F, 0x7A}},
        {quirk::per_core_type_caps, concatenated({hybrid, lakefield})},
        {quirk::short_cyc_bitmap, {}},
        {quirk::bdm70, concatenated({broadwell, skylake, skylake_server, later_server, ice_lake,
                                     hybrid, raptor_cove, lakefield})},
        {quirk::bdm64, broadwell},
        {quirk::skd007, skylake},
        {quirk::skd022, concatenated({skylake, skylake_server, later_server, ice_lake, hybrid,
                                      raptor_cove, lakefield})},
        {quirk::skd010, skylake},
        {quirk::skl014, concatenated({skylake, skylake_server, ice_lake, lakefield})},
        {quirk::apl12, goldmont},
        {quirk::apl11, concatenated({hybrid, goldmont, later_atom, lakefield})},
        {quirk::skl168, skylake},
        {quirk::skz84, concatenated({skylake_server, later_server})},
    };
}

auto expected_of(unsigned model) -> uint32_t {
    uint32_t bits = 0;
    for (auto const& list : expected_lists()) {
        for (unsigned const one : list.models) {
            if (one == model) { bits |= static_cast<uint32_t>(list.which); }
        }
    }
    return bits;
}

}  // namespace

// ------------------------------------------------------------------------------------ signatures

TEST_CASE("a signature is family, model and stepping (PRG-001)") {
    CHECK_TWICE([](auto value) {
        return model_of({value(0x0003'06D4U)}) == cpu_model{6, 0x3D, 4} &&
               model_of({value(0x0005'0654U)}) == cpu_model{6, 0x55, 4} &&
               model_of({value(0x0007'06E5U)}) == cpu_model{6, 0x7E, 5} &&
               model_of({value(0x000C'0662U)}) == cpu_model{6, 0xC6, 2} &&
               model_of({value(0x000D'0651U)}) == cpu_model{6, 0xD5, 1};
    });
}

TEST_CASE("the extended family is used with family 15, the extended model with 6 and 15") {
    CHECK_TWICE([](auto value) {
        return model_of({value(0x0030'0F13U)}) == cpu_model{0x12, 0x01, 3} &&
               model_of({value(0x0041'0F10U)}) == cpu_model{0x13, 0x11, 0} &&
               model_of({value(0x0000'0F4AU)}) == cpu_model{15, 0x04, 10} &&
               model_of({value(0x0FF5'06E3U)}) == cpu_model{6, 0x5E, 3};
    });
    CHECK_TWICE([](auto value) {
        return model_of({value(0x00F1'0543U)}) == cpu_model{5, 4, 3} &&
               model_of({value(0x0010'0777U)}) == cpu_model{7, 7, 7} &&
               model_of({value(0xF000'F6E3U)}) == cpu_model{6, 0x0E, 3} &&
               model_of({value(0U)}) == cpu_model{};
    });
}

// ------------------------------------------------------------------------------------ sets

TEST_CASE("every quirk is a distinct bit") {
    uint32_t seen = 0;
    for (auto const& list : expected_lists()) {
        auto const bit = static_cast<uint32_t>(list.which);
        CHECK(bit != 0);
        CHECK((bit & (bit - 1)) == 0);
        CHECK((seen & bit) == 0);
        seen |= bit;
    }
    CHECK((seen & (seen + 1)) == 0);
}

TEST_CASE("a model has exactly the quirks of the catalogue's tables (REG-040, REG-180)") {
    for (unsigned model = 0; model < 0x100; ++model) {
        CAPTURE(model);
        uint32_t const expected = expected_of(model);
        CHECK(quirks_of(signature(6, model)).bits == expected);
        CHECK(quirks_of(signature(6, model, 15)).bits == expected);
        for (unsigned const family : {0x12U, 0x13U}) {
            CHECK(quirks_of(signature(family, model)).bits == expected_of(family << 8 | model));
        }
        CHECK(quirks_of(signature(0x11, model)).bits == 0);
        CHECK(quirks_of(signature(0x14, model)).bits == 0);
    }
}

TEST_CASE("an unknown signature has no quirks") {
    CHECK_TWICE([](auto value) { return quirks_of(cpuid_01h_eax{value(0U)}) == quirk_set{}; });
    CHECK_TWICE(
        [](auto value) { return quirks_of(cpuid_01h_eax{value(0x0000'0F4AU)}) == quirk_set{}; });
}

TEST_CASE("Intel PT and LBR are mutually exclusive only on the rule's models (REG-180, REG-184)") {
    std::set<unsigned> found;
    for (unsigned model = 0; model < 0x100; ++model) {
        if (quirks_of(signature(6, model)).has(quirk::lbr_exclusive)) { found.insert(model); }
    }
    CHECK(found == std::set<unsigned>{0x3D, 0x47, 0x4E, 0x4F, 0x56, 0x5E});
    CHECK_TWICE([](auto value) {
        return quirks_of(cpuid_01h_eax{value(0x0003'06D0U)}).has(quirk::lbr_exclusive) &&
               quirks_of(cpuid_01h_eax{value(0x0004'0670U)}).has(quirk::lbr_exclusive) &&
               quirks_of(cpuid_01h_eax{value(0x0004'06E0U)}).has(quirk::lbr_exclusive) &&
               quirks_of(cpuid_01h_eax{value(0x0004'06F0U)}).has(quirk::lbr_exclusive) &&
               quirks_of(cpuid_01h_eax{value(0x0005'0660U)}).has(quirk::lbr_exclusive) &&
               quirks_of(cpuid_01h_eax{value(0x0005'06E0U)}).has(quirk::lbr_exclusive);
    });
    CHECK_TWICE([](auto value) {
        return !quirks_of(cpuid_01h_eax{value(0x0005'0654U)}).has(quirk::lbr_exclusive) &&
               !quirks_of(cpuid_01h_eax{value(0x0008'06E0U)}).has(quirk::lbr_exclusive);
    });
}

TEST_CASE("a row can apply to some steppings of a model") {
    CHECK_TWICE([](auto value) {
        model_quirks const row{6, 0x55, quirks(quirk::skz84), value(uint8_t{3}), value(uint8_t{7})};
        return !row.applies_to({6, 0x55, 2}) && row.applies_to({6, 0x55, 3}) &&
               row.applies_to({6, 0x55, 5}) && row.applies_to({6, 0x55, 7}) &&
               !row.applies_to({6, 0x55, 8}) && !row.applies_to({6, 0x56, 5}) &&
               !row.applies_to({7, 0x55, 5});
    });
    CHECK_TWICE([](auto value) {
        return model_quirks{}.applies_to(value(cpu_model{})) &&
               !model_quirks{}.applies_to(value(cpu_model{.family = 6}));
    });
    CHECK_TWICE([](auto value) {
        model_quirks const row{.family = 6, .model = value(uint8_t{0x55})};
        return row.applies_to({6, 0x55, 0}) && row.applies_to({6, 0x55, 15}) && row.has.bits == 0;
    });
}

TEST_CASE("a model has the quirks of a signature with that model") {
    CHECK_TWICE([](auto value) {
        return quirks_of(value(cpu_model{6, 0x4E, 3})) == quirks_of(signature(6, 0x4E, 3)) &&
               quirks_of(value(cpu_model{0x13, 1, 0})) == quirks_of(signature(0x13, 1)) &&
               quirks_of(value(cpu_model{6, 0x4E, 3})).has(quirk::skd007) &&
               quirks_of(value(cpu_model{15, 0x4E, 3})) == quirk_set{};
    });
}
