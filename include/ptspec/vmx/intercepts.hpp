// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

/// Which MSR accesses of a guest with its own Intel PT exit to the VMM.
namespace ptspec::vmx {

/// How the addresses of a guest's output are translated to those of the host.
///
/// Source: PRG-180, PRG-184, PRG-185.
enum class guest_output : uint8_t {
    guest_physical,  ///< by EPT: the control "PT uses guest-physical addresses" is 1
    shadow,          ///< by the VMM, which gives the processor tables of its own
};

/// Where the index of the MSR is after a VM exit at an instruction that accesses MSRs.
enum class msr_index_at : uint8_t {
    none,  ///< the exit has another reason
    rcx,
    /// The entry of the list at RSI whose number is that of the lowest 1 in RCX. Emulate this
    /// access and clear the bit; the instruction ends when RCX is 0. UNCONFIRMED where the exit
    /// says more.
    list,
    /// The exit qualification. Bits 6:3 of the VM-exit instruction information are the number of
    /// the register with the value.
    exit_qualification,
};

/// A VM exit at an instruction that accesses MSRs.
struct msr_exit {
    msr_index_at index = msr_index_at::none;
    bool writes = false;

    constexpr explicit operator bool() const noexcept { return index != msr_index_at::none; }
    friend constexpr auto operator==(msr_exit, msr_exit) -> bool = default;
};

/// The access for an exit reason. The MSR bitmap applies to all of these instructions, so that each
/// may be one to IA32_RTIT_CTL. WRMSRNS with RCX has the exit reason of WRMSR.
///
/// Source: SDM vol. 3, "VMX Basic Exit Reasons"; PRG-186.
[[nodiscard]] constexpr auto msr_exit_of(uint32_t exit_reason) noexcept -> msr_exit {
    constexpr uint32_t entry_failure = uint32_t{1} << 31;
    if ((exit_reason & entry_failure) != 0) { return {}; }
    switch (exit_reason & 0xFFFF) {
        case 31: return {msr_index_at::rcx, false};                 // RDMSR
        case 32: return {msr_index_at::rcx, true};                  // WRMSR, WRMSRNS
        case 78: return {msr_index_at::list, false};                // RDMSRLIST
        case 79: return {msr_index_at::list, true};                 // WRMSRLIST
        case 84: return {msr_index_at::exit_qualification, false};  // RDMSR with immediate
        case 85: return {msr_index_at::exit_qualification, true};   // WRMSRNS with immediate
        default: return {};
    }
}

/// What a VMM does with an RDMSR or WRMSR of a guest.
enum class guest_access : uint8_t {
    intercept,     ///< emulate it: the guest's value is not in the processor
    pass_through,  ///< the guest's value is in the processor, which raises #GP by itself
    inject_gp,     ///< the guest has no such MSR
    not_pt,        ///< not an MSR of Intel PT
};

/// What the output MSRs of the processor come from, with shadow tables.
enum class shadow_use : uint8_t {
    needed,  ///< TraceEn rose after the last shadow was begun: `begin_shadow`
    begun,   ///< VM entry takes the position from the shadow
    placed,  ///< the last VM exit left the position
};

/// How to handle accesses to `index` of a guest with these capabilities. IA32_RTIT_CTL is always
/// intercepted, and with shadow tables IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS, too,
/// since the processor holds those of the host. The others are intercepted only while the guest's
/// TraceEn is 0: while it is 1 they are live. IA32_RTIT_STATUS is always intercepted for a guest
/// without CPSB_CAM or without IP filtering, since a processor that has them shows them there.
///
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; REG-051, REG-055, PRG-172, PRG-184.
[[nodiscard]] constexpr auto access_of_guest(
    cpu::capabilities const& guest_caps, bool trace_en, msr_index index,
    guest_output output = guest_output::guest_physical) noexcept -> guest_access {
    auto const read = access::check_read(guest_caps, index);
    if (!access::is_pt_msr(index)) { return guest_access::not_pt; }
    if (!read) { return guest_access::inject_gp; }
    bool const is_translated = output == guest_output::shadow &&
                               (index == reg::ia32_rtit_output_base::address ||
                                index == reg::ia32_rtit_output_mask_ptrs::address);
    bool const shows_others = index == reg::ia32_rtit_status::address &&
                              !(guest_caps.has_ip_filtering() &&
                                guest_caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>());
    bool const is_live = trace_en && index != reg::ia32_rtit_ctl::address && !is_translated &&
                         !shows_others;
    return is_live ? guest_access::pass_through : guest_access::intercept;
}

}  // namespace ptspec::vmx
