// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/reg/cpuid.hpp>

/// The model of a processor, and quirks of models that CPUID does not enumerate.
namespace ptspec::cpu {

/// A processor's model as the SDM names it: 06_5EH is family 6, model 5EH.
struct cpu_model {
    unsigned family = 0;
    unsigned model = 0;
    unsigned stepping = 0;

    friend constexpr auto operator==(cpu_model const&, cpu_model const&) -> bool = default;
};

/// DisplayFamily, DisplayModel and stepping.
///
/// Source: SDM vol. 2A, "CPUID"; PRG-001.
[[nodiscard]] constexpr auto model_of(reg::cpuid_01h_eax signature) noexcept -> cpu_model {
    using eax = reg::cpuid_01h_eax;
    auto const number = [](uint64_t value) { return static_cast<unsigned>(value); };
    unsigned const family = number(signature.get<eax::Family>());
    unsigned const model = number(signature.get<eax::Model>());
    return {family == 15 ? family + number(signature.get<eax::ExtFamily>()) : family,
            family == 6 || family == 15 ? number(signature.get<eax::ExtModel>()) << 4 | model
                                        : model,
            number(signature.get<eax::Stepping>())};
}

// ------------------------------------------------------------------------------------ by model

/// The quirks of one model, for a range of steppings.
struct model_quirks {
    uint16_t family = 0;
    uint8_t model = 0;
    quirk_set has{};
    uint8_t first_stepping = 0;
    uint8_t last_stepping = 15;

    [[nodiscard]] constexpr auto applies_to(cpu_model const& processor) const noexcept -> bool {
        return family == processor.family && model == processor.model &&
               first_stepping <= processor.stepping && processor.stepping <= last_stepping;
    }
};

namespace detail {

using enum quirk;

inline constexpr quirk_set broadwell = quirks(branch_en_always_on, no_vmx, no_xsaves, lbr_exclusive,
                                              bdm70, bdm64);
inline constexpr quirk_set skylake = quirks(bdm70, skd007, skd022, skd010, skl014, skl168);
inline constexpr quirk_set first_skylake = skylake.with(lbr_exclusive);
inline constexpr quirk_set skylake_server = quirks(bdm70, skl014, skd022, skz84);
inline constexpr quirk_set later_server = quirks(bdm70, skd022, skz84);
inline constexpr quirk_set ice_lake = quirks(bdm70, skl014, skd022);
inline constexpr quirk_set tiger_lake = ice_lake.with(single_range_one_page);
inline constexpr quirk_set hybrid = quirks(per_core_type_caps, bdm70, skd022, apl11);
inline constexpr quirk_set raptor_cove = quirks(bdm70, skd022, single_range_one_page);
inline constexpr quirk_set lakefield = ice_lake | quirks(per_core_type_caps, apl11);
inline constexpr quirk_set alder_lake = hybrid.with(single_range_one_page);
inline constexpr quirk_set goldmont = quirks(core_scoped_msrs, apl12, apl11);
inline constexpr quirk_set goldmont_plus = quirks(core_scoped_msrs, apl11);
inline constexpr quirk_set later_atom = quirks(apl11);

}  // namespace detail

// clang-format off

/// The quirks that depend only on the model.
///
/// UNCONFIRMED: all quirks of 06_8AH, 06_BEH, 06_D7H and 06_E5H, except `per_core_type_caps` of
/// 06_8AH. They are taken from processors with the same cores.
/// Source: REG-040, REG-180.
inline constexpr model_quirks quirk_table[] = {
    {0x06, 0x3D, detail::broadwell}, {0x06, 0x47, detail::broadwell},
    {0x06, 0x4F, detail::broadwell}, {0x06, 0x56, detail::broadwell},

    {0x06, 0x4E, detail::first_skylake}, {0x06, 0x5E, detail::first_skylake},
    {0x06, 0x8E, detail::skylake}, {0x06, 0x9E, detail::skylake},
    {0x06, 0xA5, detail::skylake}, {0x06, 0xA6, detail::skylake},

    {0x06, 0x55, detail::skylake_server}, {0x06, 0x6A, detail::skylake_server},
    {0x06, 0x6C, detail::skylake_server},

    {0x06, 0x8F, detail::later_server}, {0x06, 0xCF, detail::later_server},
    {0x06, 0xAD, detail::later_server}, {0x06, 0xAE, detail::later_server},
    {0x13, 0x01, detail::later_server},

    {0x06, 0x66, detail::ice_lake}, {0x06, 0x7D, detail::ice_lake}, {0x06, 0x7E, detail::ice_lake},
    {0x06, 0xA7, detail::ice_lake}, {0x06, 0xA8, detail::ice_lake},
    {0x06, 0x8C, detail::tiger_lake}, {0x06, 0x8D, detail::tiger_lake},

    {0x06, 0x97, detail::alder_lake}, {0x06, 0x9A, detail::alder_lake},
    {0x06, 0xB7, detail::alder_lake}, {0x06, 0xBA, detail::alder_lake},
    {0x06, 0xBF, detail::alder_lake},
    {0x06, 0xD7, detail::raptor_cove}, {0x06, 0x8A, detail::lakefield},
    {0x06, 0xAA, detail::hybrid}, {0x06, 0xAC, detail::hybrid}, {0x06, 0xB5, detail::hybrid},
    {0x06, 0xBD, detail::hybrid}, {0x06, 0xC5, detail::hybrid}, {0x06, 0xC6, detail::hybrid},
    {0x06, 0xCC, detail::hybrid}, {0x06, 0xD5, detail::hybrid}, {0x06, 0xE5, detail::hybrid},
    {0x12, 0x01, detail::hybrid}, {0x12, 0x03, detail::hybrid},

    {0x06, 0x5C, detail::goldmont}, {0x06, 0x5F, detail::goldmont},
    {0x06, 0x7A, detail::goldmont_plus},
    {0x06, 0x86, detail::later_atom}, {0x06, 0x96, detail::later_atom},
    {0x06, 0x9C, detail::later_atom}, {0x06, 0xAF, detail::later_atom},
    {0x06, 0xB6, detail::later_atom}, {0x06, 0xBE, detail::later_atom},
    {0x06, 0xDD, detail::later_atom},
};

// clang-format on

/// The quirks of a processor's model. An unknown model has none.
///
/// Source: REG-040, REG-180, REG-184.
[[nodiscard]] constexpr auto quirks_of(cpu_model const& processor) noexcept -> quirk_set {
    quirk_set found;
    for (model_quirks const& row : quirk_table) {
        if (row.applies_to(processor)) { found = found | row.has; }
    }
    return found;
}
[[nodiscard]] constexpr auto quirks_of(reg::cpuid_01h_eax signature) noexcept -> quirk_set {
    return quirks_of(model_of(signature));
}

}  // namespace ptspec::cpu
