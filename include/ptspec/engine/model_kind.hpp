// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/cpu/quirks.hpp>
#include <ptspec/engine/model_options.hpp>

/// Kinds of processors: the choices that the manual leaves open, as recorded processors make them.
namespace ptspec::engine {

/// A kind of processor. Recorded traces show four; `manual` is what the rules say.
///
/// Source: GEN-009.
enum class model_kind : uint8_t {
    manual,
    broadwell,
    skylake,  ///< up to Comet Lake
    icelake,  ///< and later P-cores
    atom,     ///< Goldmont Plus
};

/// A kind, its name, and its options.
struct model_kind_info {
    model_kind which{};
    text name{};
    model_options options{};
};

/// All kinds, in the order of the enumeration.
///
/// Source: GEN-009..012, GEN-120, GEN-162, GEN-170, GEN-171, GEN-176, GEN-180, GEN-228.
inline constexpr model_kind_info model_kinds[] = {
    {model_kind::manual, "manual", {}},
    {model_kind::broadwell,
     "broadwell",
     {.ips = trace::ip_choice::broadwell,
      .tnt_capacity = 44,
      .pads = trace::pad_policy::broadwell,
      .end_alignment = 8,
      .has_tsx = true,
      .psb_before_pge = true,
      .psb_keeps_remainder = true}},
    {model_kind::skylake,
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
    {model_kind::icelake,
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
    {model_kind::atom, "atom", {.in_psb = trace::psb_order::atom, .psb_keeps_remainder = true}},
};

inline constexpr unsigned model_kind_count = sizeof model_kinds / sizeof model_kinds[0];

[[nodiscard]] constexpr auto info_of(model_kind kind) noexcept -> model_kind_info const& {
    return model_kinds[underlying(kind)];
}
[[nodiscard]] constexpr auto options_of(model_kind kind) noexcept -> model_options const& {
    return info_of(kind).options;
}

/// The kind of a processor, by its generation. A generation that no trace shows has the latest kind
/// of its line, of P-cores or of Atom processors.
///
/// Source: GEN-009.
[[nodiscard]] constexpr auto model_kind_of(cpu::cpu_model const& model) noexcept -> model_kind {
    if (model.family != 6) { return model_kind::icelake; }
    // clang-format off
    switch (model.model) {
        case 0x3D: case 0x47: case 0x4F: case 0x56:
            return model_kind::broadwell;
        case 0x4E: case 0x55: case 0x5E: case 0x66: case 0x8E: case 0x9E: case 0xA5: case 0xA6:
            return model_kind::skylake;
        case 0x5C: case 0x5F: case 0x7A: case 0x86: case 0x96: case 0x9C: case 0xAF: case 0xB6:
        case 0xBE: case 0xDD:
            return model_kind::atom;
        default: return model_kind::icelake;
    }
    // clang-format on
}
/// The same for a signature. Without one the kind is `skylake`.
[[nodiscard]] constexpr auto model_kind_of(reg::cpuid_01h_eax signature) noexcept -> model_kind {
    if (signature.raw == 0) { return model_kind::skylake; }
    return model_kind_of(cpu::model_of(signature));
}
/// The same for a logical processor. The E-cores of a hybrid processor have the model of its
/// P-cores, and enumerate LIP as Atom processors do.
///
/// Source: GEN-009.
[[nodiscard]] constexpr auto model_kind_of(cpu::capabilities const& caps) noexcept -> model_kind {
    auto const by_model = model_kind_of(caps.leaf_01_eax);
    bool const is_e_core = by_model == model_kind::icelake &&
                           caps.ip_payload() == cpu::ip_payload::linear;
    return is_e_core ? model_kind::atom : by_model;
}
/// The options of a processor if it is of this kind. With FRED, software interrupts and SYSCALL
/// have CFEs of their own.
///
/// Source: GEN-301.
[[nodiscard]] constexpr auto options_of(cpu::capabilities const& caps, model_kind kind) noexcept
    -> model_options {
    auto options = options_of(kind);
    options.swintr_events = caps.has_fred();
    return options;
}
/// The default options of a processor: those of its kind.
///
/// Source: GEN-009.
[[nodiscard]] constexpr auto options_of(cpu::capabilities const& caps) noexcept -> model_options {
    return options_of(caps, model_kind_of(caps));
}

}  // namespace ptspec::engine
