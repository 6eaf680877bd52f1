// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/cpu/quirks.hpp>

namespace ptspec::cpu {

/// The CYC thresholds of the first processors with CYC packets: encodings 0 to 13.
inline constexpr uint32_t first_cyc_thresholds = 0x3FFF;

/// The quirks of a processor that follow from its model and from its capabilities.
///
/// Without Intel PT only the quirks of the model are returned. When IA32_VMX_MISC was not read (0),
/// `no_vmx` is set.
/// Source: REG-040, REG-120, REG-121, REG-140, REG-163, REG-165.
[[nodiscard]] constexpr auto quirks_of(capabilities const& caps) noexcept -> quirk_set {
    using ebx = reg::cpuid_14h_0_ebx;
    auto const by_model = quirks_of(caps.leaf_01_eax);
    if (!caps.has_pt()) { return by_model; }
    bool const has_thresholds = caps.leaf_14_0_ebx.template get<ebx::CPSB_CAM>();
    return by_model.with(quirk::branch_en_always_on, !caps.leaf_14_0_ebx.template get<ebx::MTC>())
        .with(quirk::no_vmx, caps.vmx() == vmx_support::none)
        .with(quirk::single_entry_topa,
              caps.supports(output_scheme::topa) && !caps.has_topa_of_many_entries())
        .with(quirk::no_xsaves, !caps.has_xsaves_state())
        .with(quirk::short_cyc_bitmap,
              has_thresholds && (first_cyc_thresholds & ~caps.cyc_thresholds()) != 0);
}

}  // namespace ptspec::cpu
