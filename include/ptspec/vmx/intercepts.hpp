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

/// What a VMM does with an RDMSR or WRMSR of a guest.
enum class guest_access : uint8_t {
    intercept,     ///< emulate it: the guest's value is not in the processor
    pass_through,  ///< the guest's value is in the processor, which raises #GP as for anyone
    inject_gp,     ///< the guest has no such MSR
    not_pt,        ///< not an MSR of Intel PT
};

/// With shadow tables: what the output MSRs of the processor come from.
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
    cpu::capabilities const& guest, bool trace_en, uint32_t index,
    guest_output output = guest_output::guest_physical) noexcept -> guest_access {
    auto const read = access::check_read(guest, index);
    if (!access::is_pt_msr(index)) { return guest_access::not_pt; }
    if (!read) { return guest_access::inject_gp; }
    bool const is_translated = output == guest_output::shadow &&
                               (index == reg::ia32_rtit_output_base::address ||
                                index == reg::ia32_rtit_output_mask_ptrs::address);
    bool const shows_others = index == reg::ia32_rtit_status::address &&
                              !(guest.has_ip_filtering() &&
                                guest.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>());
    bool const is_live = trace_en && index != reg::ia32_rtit_ctl::address && !is_translated &&
                         !shows_others;
    return is_live ? guest_access::pass_through : guest_access::intercept;
}

}  // namespace ptspec::vmx
