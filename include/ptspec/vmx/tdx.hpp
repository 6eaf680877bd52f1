// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/xsave.hpp>
#include <ptspec/vmx/guest_cpuid.hpp>

/// Intel TDX: Intel PT in a trust domain (TD).
namespace ptspec::vmx::tdx {

/// True when XFAM gives a TD Intel PT: its bit 8 has the place of IA32_XSS.PT_STATE.
///
/// Source: TDX module, branch tdx_1.5; REG-136.
[[nodiscard]] constexpr auto has_pt(reg::ia32_xss xfam) noexcept -> bool {
    return xfam.get<reg::ia32_xss::PT_STATE>();
}

/// The rule by which the TDX module makes RDMSR and WRMSR of an index raise #GP in a TD, or none.
/// The other checks of an access are separate.
///
/// Errors: REG-136 an MSR of Intel PT, and `xfam` has no PT_STATE.
/// Source: TDX module, branch tdx_1.5; REG-136.
[[nodiscard]] constexpr auto broken_rule(reg::ia32_xss xfam, msr_index index) noexcept -> rule {
    bool const of_output = index == reg::ia32_rtit_output_base::address ||
                           index == reg::ia32_rtit_output_mask_ptrs::address;
    bool const of_control = index.value >= reg::ia32_rtit_ctl::address &&
                            index.value <= reg::ia32_rtit_cr3_match::address;
    uint32_t const first_end = reg::ia32_rtit_addr::address(0, reg::range_end::a);
    bool const of_ranges = index.value >= first_end && index.value < first_end + 8;
    return !has_pt(xfam) && (of_output || of_control || of_ranges) ? rule::REG_136 : rule::none;
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

/// The capabilities that a TD with this XFAM sees. A TD has no VMX operation.
///
/// Source: TDX module, branch tdx_1.5; REG-136, REG-137.
template <same_as<cpu::capabilities> Capabilities>
[[nodiscard]] constexpr auto td_capabilities(Capabilities const& caps, reg::ia32_xss xfam) noexcept
    -> cpu::capabilities {
    auto td = has_pt(xfam) ? td_capabilities(caps) : without_pt(caps);
    vmx::detail::hide_vmx(td);
    return td;
}

/// The rule by which the TDX module refuses a platform with these logical processors, or none.
///
/// Errors: REG-137 leaf 14H differs between two of them, or 14H.0:EAX of one is not 1.
/// Source: TDX module, branch tdx_1.5; REG-137.
[[nodiscard]] constexpr auto broken_rule(cpu::capabilities const* all, size_t count) noexcept
    -> rule {
    for (size_t i = 0; i < count; ++i) {
        auto const& one = all[i];
        bool const same = one.leaf_14_0_eax.raw == 1 && one.leaf_14_0_ebx == all[0].leaf_14_0_ebx &&
                          one.leaf_14_0_ecx == all[0].leaf_14_0_ecx &&
                          one.leaf_14_1_eax == all[0].leaf_14_1_eax &&
                          one.leaf_14_1_ebx == all[0].leaf_14_1_ebx &&
                          one.leaf_14_1_ecx == all[0].leaf_14_1_ecx;
        if (!same) { return rule::REG_137; }
    }
    return rule::none;
}

/// The MSRs of the host after a return from a TD: those of component 8 are in their initial
/// configuration if the TD has Intel PT. A host that traces restores them.
///
/// Source: TDX module, branch tdx_1.5; REG-138, REG-146.
[[nodiscard]] constexpr auto after_td_exit(reg::ia32_xss xfam,
                                           access::msr_state const& host) noexcept
    -> access::msr_state {
    return has_pt(xfam) ? access::xrstors_init(access::disabled(host)).effect.state : host;
}

/// The rule by which a debugger may not write the 8 bytes at `offset` of a TD's XSAVE image, or
/// none. Component 8 lies at `pt_offset`.
///
/// Units:  offsets are in bytes; writes are aligned to 8 bytes.
/// Errors: REG-139 the XSAVE header; IA32_RTIT_CTL of a TD with Intel PT.
/// Source: TDX module, branch tdx_1.5; REG-139.
[[nodiscard]] constexpr auto broken_rule_of_debug_write(reg::ia32_xss xfam, size_t offset,
                                                        size_t pt_offset) noexcept -> rule {
    constexpr size_t header = reg::xsave_header_xstate_bv::offset;
    constexpr size_t end_of_header = header + 64;
    bool const of_header = offset >= header && offset < end_of_header;
    bool const of_ctl = has_pt(xfam) && offset / 8 == pt_offset / 8;
    return of_header || of_ctl ? rule::REG_139 : rule::none;
}

}  // namespace ptspec::vmx::tdx
