// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirks.hpp>
#include <ptspec/engine/model_options.hpp>

/// Kinds of processor: what the manual leaves open, as recorded processors do it.
namespace ptspec::engine {

/// A kind of processor. Recorded traces show four; `manual` is what the rules say.
///
/// Source: GEN-009.
enum class kind : uint8_t {
    manual,
    broadwell,
    skylake,  ///< up to Comet Lake
    icelake,  ///< and later P-cores
    atom,     ///< Goldmont Plus
};

/// A kind, its name, and its options.
struct kind_info {
    kind which{};
    text name{};
    model_options options{};
};

/// All kinds, in the order of the enumeration.
///
/// Source: GEN-009..012, GEN-120, GEN-162, GEN-170, GEN-171, GEN-176, GEN-180, GEN-228.
inline constexpr kind_info kinds[] = {
    {kind::manual, "manual", {}},
    {kind::broadwell,
     "broadwell",
     {.ips = trace::ip_choice::broadwell,
      .tnt_capacity = 44,
      .pads = trace::pad_policy::broadwell,
      .end_alignment = 8,
      .has_tsx = true,
      .psb_before_pge = true,
      .psb_keeps_remainder = true}},
    {kind::skylake,
     "skylake",
     {.ips = trace::ip_choice::skylake,
      .pads = trace::pad_policy::skylake,
      .in_psb = trace::psb_order::skylake,
      .end_alignment = 16,
      .has_tsx = true,
      .psb_of_enable_has_fup = true,
      .psb_keeps_remainder = true,
      .psb_step = 960,
      .psb_after_overflow = psb_after_ovf::always}},
    {kind::icelake,
     "icelake",
     {.ips = trace::ip_choice::icelake,
      .pads = trace::pad_policy::skylake,
      .in_psb = trace::psb_order::skylake,
      .end_alignment = 16,
      .has_tsx = true,
      .psb_of_enable_has_fup = true,
      .psb_keeps_remainder = true,
      .psb_step = 960,
      .psb_after_overflow = psb_after_ovf::always}},
    {kind::atom, "atom", {.in_psb = trace::psb_order::atom, .psb_keeps_remainder = true}},
};

[[nodiscard]] constexpr auto info_of(kind which) noexcept -> kind_info const& {
    return kinds[underlying(which)];
}
[[nodiscard]] constexpr auto options_of(kind which) noexcept -> model_options const& {
    return info_of(which).options;
}

/// The kind of a processor: that of its generation, and the last one of a generation that no trace
/// shows. `skylake` without a signature.
///
/// Source: GEN-009.
[[nodiscard]] constexpr auto kind_of(reg::cpuid_01h_eax signature) noexcept -> kind {
    constexpr uint8_t broadwells[] = {0x3D, 0x47, 0x4F, 0x56};
    constexpr uint8_t skylakes[] = {0x4E, 0x55, 0x5E, 0x66, 0x8E, 0x9E, 0xA5, 0xA6};
    constexpr uint8_t atoms[] = {0x5C, 0x5F, 0x7A, 0x86, 0x96, 0x9C, 0xAF, 0xB6, 0xBE, 0xDD};
    auto const model = cpu::model_of(signature);
    auto const is_in = [&](uint8_t const* all, size_t count) {
        for (size_t i = 0; i < count; ++i) {
            if (all[i] == model.model) { return true; }
        }
        return false;
    };
    if (signature.raw == 0) { return kind::skylake; }
    if (model.family != 6) { return kind::icelake; }
    if (is_in(broadwells, sizeof broadwells)) { return kind::broadwell; }
    if (is_in(skylakes, sizeof skylakes)) { return kind::skylake; }
    return is_in(atoms, sizeof atoms) ? kind::atom : kind::icelake;
}

}  // namespace ptspec::engine
