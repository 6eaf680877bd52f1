// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

/// Which MSR accesses of a guest with its own Intel PT exit to the VMM.
namespace ptspec::vmx {

/// What a VMM does with an RDMSR or WRMSR of a guest.
enum class guest_access : uint8_t {
    intercept,     ///< emulate it: the guest's value is not in the processor
    pass_through,  ///< the guest's value is in the processor, which raises #GP as for anyone
    inject_gp,     ///< the guest has no such MSR
    not_pt,        ///< not an MSR of Intel PT
};

/// How to handle accesses to `index` of a guest with these capabilities. IA32_RTIT_CTL is always
/// intercepted; the others only while the guest's TraceEn is 0: while it is 1 they are live.
///
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-172.
[[nodiscard]] constexpr auto access_of_guest(cpu::capabilities const& guest, bool trace_en,
                                             uint32_t index) noexcept -> guest_access {
    auto const read = access::check_read(guest, index);
    if (!access::detail::is_pt_msr(index)) { return guest_access::not_pt; }
    if (!read) { return guest_access::inject_gp; }
    if (index == reg::ia32_rtit_ctl::address) { return guest_access::intercept; }
    return trace_en ? guest_access::pass_through : guest_access::intercept;
}

}  // namespace ptspec::vmx
