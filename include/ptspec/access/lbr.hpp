// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/base/address.hpp>
#include <ptspec/cpu/quirks.hpp>

/// Branch records (LBR, LER, BTS, BTM) on processors where Intel PT and LBR are mutually exclusive.
namespace ptspec::access {

/// True for signatures on which Intel PT and branch records are mutually exclusive.
///
/// Source: REG-180, REG-184.
[[nodiscard]] constexpr auto excludes_lbr(reg::cpuid_01h_eax signature) noexcept -> bool {
    return cpu::quirks_of(signature).has(cpu::quirk::lbr_exclusive);
}

/// True while TraceEn suspends branch records.
///
/// Source: SDM vol. 3, "Interaction of Intel Processor Trace and LBR"; REG-180, REG-181.
[[nodiscard]] constexpr auto suspends_lbr(reg::cpuid_01h_eax signature, ia32_rtit_ctl ctl) noexcept
    -> bool {
    return ctl.get<ia32_rtit_ctl::TraceEn>() && excludes_lbr(signature);
}

/// The largest number of entries of an LBR stack.
inline constexpr uint32_t max_lbr_entries = 32;

/// True for the LBR and LER MSRs, which read 0 and drop writes while branch records are suspended.
/// IA32_DEBUGCTL does not.
///
/// Source: REG-182.
[[nodiscard]] constexpr auto is_lbr_msr(msr_index index) noexcept -> bool {
    auto const in_stack = [=](uint32_t first) { return index.value - first < max_lbr_entries; };
    return in_stack(reg::msr_lastbranch_x_from_ip::address(0)) ||
           in_stack(reg::msr_lastbranch_x_to_ip::address(0)) ||
           in_stack(reg::msr_lbr_info_x::address(0)) || index == reg::msr_lastbranch_tos::address ||
           index == reg::msr_lbr_select::address || index == reg::msr_ler_from_lip::address ||
           index == reg::msr_ler_to_lip::address;
}

/// True while an RDMSR of `index` returns 0 and a WRMSR of it is ignored. Neither faults.
///
/// Source: REG-181, REG-182.
[[nodiscard]] constexpr auto is_suspended(reg::cpuid_01h_eax signature, ia32_rtit_ctl ctl,
                                          msr_index index) noexcept -> bool {
    return suspends_lbr(signature, ctl) && is_lbr_msr(index);
}

/// True when a write of IA32_RTIT_CTL from `before` to `after` resets the LBR stack.
///
/// Source: REG-183.
[[nodiscard]] constexpr auto resets_lbr(reg::cpuid_01h_eax signature, ia32_rtit_ctl before,
                                        ia32_rtit_ctl after) noexcept -> bool {
    return suspends_lbr(signature, before) && !suspends_lbr(signature, after);
}

}  // namespace ptspec::access
