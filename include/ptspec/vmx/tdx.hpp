// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/reg/rtit_cr3_match.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/xsave.hpp>
#include <ptspec/rule.hpp>

/// Intel TDX: Intel PT in a trust domain (TD).
namespace ptspec::vmx::tdx {

/// The rule by which the TDX module makes RDMSR and WRMSR of an index raise #GP in a TD, or none.
/// The other checks of an access are separate.
///
/// Errors: REG-136 an MSR of Intel PT, and `xfam` has no PT_STATE.
/// Source: TDX module, branch tdx_1.5; REG-136.
[[nodiscard]] constexpr auto broken_rule(reg::ia32_xss xfam, uint32_t index) noexcept -> rule {
    bool const allowed = (xfam.raw >> reg::ia32_xss::PT_STATE::lsb & 1) != 0;
    bool const of_output = index == reg::ia32_rtit_output_base::address ||
                           index == reg::ia32_rtit_output_mask_ptrs::address;
    bool const of_control = index >= reg::ia32_rtit_ctl::address &&
                            index <= reg::ia32_rtit_cr3_match::address;
    uint32_t const first_end = reg::ia32_rtit_addr::address(0, reg::range_end::a);
    bool const of_ranges = index >= first_end && index < first_end + 8;
    return !allowed && (of_output || of_control || of_ranges) ? rule::REG_136 : rule::none;
}

/// The capabilities that a TD with Intel PT sees: the TDX module masks leaf 14H.
///
/// Source: TDX module, branch tdx_1.5; REG-137.
[[nodiscard]] constexpr auto td_capabilities(cpu::capabilities caps) noexcept -> cpu::capabilities {
    caps.leaf_14_0_ebx.raw &= 0x0000'01FF;
    caps.leaf_14_0_ecx.raw &= 0x8000'000F;
    caps.leaf_14_1_eax.raw &= 0xFFFF'0007;
    caps.leaf_14_1_ecx.raw = 0;
    return caps;
}

}  // namespace ptspec::vmx::tdx
