// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/resets.hpp>
#include <ptspec/vmx/guest_pt.hpp>

/// What happens to a guest beside its accesses: interrupts, VMX operation, resets and SMM.
namespace ptspec::vmx {

/// A PMI that the VMM injects now. True once for each interrupt that output raised.
///
/// Source: PRG-177.
[[nodiscard]] constexpr auto take_pmi(guest_pt& guest) noexcept -> bool {
    bool const pending = guest.pmi_pending;
    guest.pmi_pending = false;
    return pending;
}

/// Emulates VMXON of the guest. Without Intel PT in VMX operation it clears TraceEn, and writes of
/// CTL raise #GP until VMXOFF. Not in SMM, where instructions of VMX raise #UD, nor in L2.
///
/// Source: REG-110, REG-121, PRG-160, PRG-173.
constexpr void vmxon(guest_pt& guest) noexcept {
    guest.msrs = access::vmxon(guest.caps, guest.msrs);
    guest.starts = guest.starts && guest.trace_en();
}
/// Emulates VMXOFF of the guest.
constexpr void vmxoff(guest_pt& guest) noexcept { guest.msrs = access::vmxoff(guest.msrs); }

namespace detail {

/// A reset, which leaves VMX operation.
constexpr void reset(guest_pt& guest, access::msr_state const& after) noexcept {
    guest.msrs = after;
    guest.pmi_pending = guest.starts = false;
    set_level(guest, guest_level::l1, {});
}

}  // namespace detail

/// Emulates a cold reset of the guest, also while L2 runs. Source: REG-090.
constexpr void cold_reset(guest_pt& guest) noexcept { detail::reset(guest, access::cold_reset()); }
/// Emulates a warm reset of the guest, also while L2 runs. Source: REG-091..093.
constexpr void warm_reset(guest_pt& guest) noexcept {
    detail::reset(guest, access::warm_reset(guest.caps, guest.msrs));
}
/// Emulates the delivery of an SMI to the guest. SMM does not run in L2: the VMM leaves L2 without
/// a VM exit to L1, and after `rsm` it enters L2 again. In SMM an SMI stays pending, and nothing
/// changes. INIT and SIPI change nothing of Intel PT.
///
/// Source: REG-094, REG-100.
constexpr void smi(guest_pt& guest) noexcept {
    if (guest.msrs.in_smm) { return; }
    guest.msrs = access::smi(guest.msrs);
    guest.starts = false;
    if (guest.level == guest_level::l2) {
        detail::set_level(guest, guest_level::smm_of_l2, guest.nested);
    }
}
/// What RSM of the guest does.
struct [[nodiscard]] guest_rsm {
    access::rsm_outcome outcome = access::rsm_outcome::resumed;
    rule broken = rule::none;
    bool trace_en_changed = false;

    constexpr explicit operator bool() const noexcept {
        return outcome == access::rsm_outcome::resumed;
    }
};

/// Emulates RSM of the guest. `guest.level` says whether it returns to L2.
///
/// Errors: the outcome and rule of `access::rsm`; nothing has changed then. After `shutdown` the
///         guest runs again after a reset or INIT.
/// Source: REG-101..103, REG-108.
[[nodiscard]] constexpr auto rsm(guest_pt& guest, access::policy const& policy = {}) noexcept
    -> guest_rsm {
    auto const checked = access::rsm(guest.caps, guest.msrs, {}, policy);
    guest_rsm const result{checked.outcome, checked.broken, checked && guest.msrs.smram_trace_en};
    if (!result) { return result; }
    using ctl = access::ia32_rtit_ctl;
    detail::set_ctl(guest, guest.msrs.ctl.with(ctl::TraceEn{guest.msrs.smram_trace_en}));
    guest.msrs.in_smm = guest.msrs.smram_trace_en = false;
    if (guest.level == guest_level::smm_of_l2) {
        detail::set_level(guest, guest_level::l2, guest.nested);
    }
    return result;
}

}  // namespace ptspec::vmx
