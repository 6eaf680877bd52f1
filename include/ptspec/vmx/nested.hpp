// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/guest_pt.hpp>
#include <ptspec/vmx/msr_exits.hpp>
#include <ptspec/vmx/transition.hpp>

/// Nested VMX: Intel PT of a guest hypervisor (L1) that runs a guest (L2).
///
/// While L2 runs, `guest_pt` of L1 stays the virtual processor: VM entry to L2 and VM exit to L1
/// change its CTL and its level, from which `current_output` follows, and its accesses are those of
/// L2. The VMM (L0) enters both with the controls of `merged_controls`, and L2 with the bitmap of
/// `update_msr_bitmap`. L2 stays entered until `leave_nested`, a reset or an SMI of L1.
namespace ptspec::vmx {

/// What the VMCS of L1 for L2 says of Intel PT.
struct nested_vmcs {
    controls set{};
    access::ia32_rtit_ctl guest_ctl{};  ///< the guest-state field IA32_RTIT_CTL
};

/// The controls with which L0 runs the guest at its current level. `own` are those of L0 for L1.
/// While L2 runs, "conceal VMX from PT" is 1 only if both L0 and L1 set it, and output is
/// guest-physical only if it is for both. L0's own transitions are concealed as in `own`.
///
/// Unless "conceal VMX from PT" is 1 for L2, PSB+ in L2 has a VMCS packet with the address of L0's
/// VMCS: `edit::replace_vmcs` puts that of L1 in its place.
///
/// Source: REG-122..129, REG-132, GEN-278, PRG-161, PRG-180.
[[nodiscard]] constexpr auto merged_controls(controls own, guest_pt const& guest) noexcept
    -> controls {
    using secondary = reg::vmcs_secondary_proc_ctls;
    if (guest.level != guest_level::l2) { return own; }
    bool const conceal = own.secondary.get<secondary::ConcealVmxNonRootFromPT>() &&
                         guest.nested.secondary.get<secondary::ConcealVmxNonRootFromPT>();
    bool const is_translated = guest_output_of(own) == guest_output::guest_physical &&
                               guest_output_of(guest.nested) == guest_output::guest_physical;
    own.secondary = own.secondary.with(secondary::ConcealVmxNonRootFromPT{conceal},
                                       secondary::PTUsesGuestPhysAddr{is_translated});
    return own;
}

/// A VM entry of L1, emulated.
struct [[nodiscard]] nested_entry {
    rule broken = rule::none;  ///< the entry fails
    /// The step that fails. After `control_checks` L1 executes the instruction that follows
    /// VMLAUNCH or VMRESUME. After `guest_state_checks` its host state is loaded, as by a VM exit.
    step where = step::control_checks;
    /// L1 does not conceal the entry: insert a PIP with the CR3 of L2, and with `pip_nr`, into its
    /// trace.
    bool owes_pip = false;
    /// NR of this PIP, and of those of L2: 0 where L1 sets "conceal VMX from PT", secondary control
    /// 19.
    bool pip_nr = false;
    bool trace_en_changed = false;

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

/// Emulates VM entry of L1 to L2: checks the controls against the capabilities that L1 sees, and
/// loads CTL if they say so. Then `load_msrs` for the MSR-load list of the VM entry. Not in SMM,
/// where instructions of VMX raise #UD.
///
/// Errors: the first rule of `find_broken_rules`: nothing has changed; REG-131 for a CTL field with
///         a value that L1 could not write: CTL is cleared if VM exits clear it. L2 is not entered.
/// Source: REG-122, REG-125, REG-129..132, GEN-272..274, PRG-162.
constexpr auto enter_nested(guest_pt& guest, nested_vmcs const& vmcs) noexcept -> nested_entry {
    using ctl = access::ia32_rtit_ctl;
    rule const broken = broken_rule(guest.caps, vmcs.set, guest.msrs.ctl);
    if (broken != rule::none) { return {.broken = broken}; }
    if (detail::is_bad_guest_ctl(guest.caps, vmcs.set, vmcs.guest_ctl)) {
        // TraceEn is 0, by REG-130.
        bool const clears = vmcs.set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>();
        if (clears) { guest.msrs.ctl = {}; }
        return {.broken = rule::REG_131, .where = step::guest_state_checks};
    }
    bool const was_on = guest.trace_en();
    bool const loads = vmcs.set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>();
    if (loads) { detail::set_ctl(guest, vmcs.guest_ctl); }
    detail::set_level(guest, guest_level::l2, vmcs.set);
    bool const conceals = vmcs.set.vm_entry.get<reg::vmcs_vmentry_ctls::ConcealVmEntriesFromPT>();
    return {
        .owes_pip = was_on && guest.trace_en() && !conceals && guest.msrs.ctl.get<ctl::OS>(),
        .pip_nr = !vmcs.set.secondary.get<reg::vmcs_secondary_proc_ctls::ConcealVmxNonRootFromPT>(),
        .trace_en_changed = was_on != guest.trace_en()};
}

/// True if L1 does not conceal the VM exit from L2: before `leave_nested`, insert a PIP with the
/// CR3 of L1 and NR = 0 into its trace.
///
/// Source: GEN-271, GEN-273.
[[nodiscard]] constexpr auto owes_pip_at_exit(guest_pt const& guest) noexcept -> bool {
    return guest.trace_en() && guest.msrs.ctl.get<access::ia32_rtit_ctl::OS>() &&
           !guest.nested.vm_exit.get<reg::vmcs_vmexit_ctls::ConcealVmExitsFromPT>();
}

/// Emulates VM exit from L2 to L1, by the controls with which L2 was entered: saves CTL into
/// `guest_ctl` of the VMCS of L1, and clears it if the controls say so. `store_msrs` comes before
/// it, and `load_msrs` for the MSR-load list of the VM exit after it. False, and nothing has
/// changed, if L2 does not run, for example after a reset of L1.
///
/// Source: REG-126, REG-127, GEN-271, GEN-273.
[[nodiscard]] constexpr auto leave_nested(guest_pt& guest, nested_vmcs& vmcs) noexcept -> bool {
    if (guest.level != guest_level::l2) { return false; }
    if (has_guest_ctl_field(guest.caps)) { vmcs.guest_ctl = guest.msrs.ctl; }
    if (guest.nested.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>()) {
        detail::set_ctl(guest, {});
    }
    detail::set_level(guest, guest_level::l1, {});
    return true;
}

// ------------------------------------------------------------------------------------ MSR lists

/// Emulates an MSR-load list of L1, for a VM entry (`step::entry_load`) or a VM exit
/// (`step::exit_load`): each entry is written in order as by WRMSR, `other(entry)` does the same
/// for the MSRs that are not of Intel PT and returns the rule that one breaks, or none. `list` is a
/// copy that L1 cannot change. TraceEn may have changed afterwards.
///
/// Errors: the first entry that breaks a rule; those before it are written. A VM entry fails with
///         exit reason 34, a VM exit ends in a VMX abort.
/// Source: SDM vol. 3, "Loading MSRs"; REG-010, PRG-165.
[[nodiscard]] constexpr auto load_msrs(guest_pt& guest, msr_list list, step where, auto&& other,
                                       access::processor_context const& code = {},
                                       access::policy const& policy = {}) noexcept -> violation {
    return detail::first_broken(guest.caps, list, where, [&](msr_list_entry const& entry) {
        auto const answer = on_wrmsr(guest, entry.index, entry.value, code, policy);
        return answer.what == exit_action::not_pt ? other(entry) : answer.broken;
    });
}

/// Emulates the MSR-store list of a VM exit to L1: calls `store(position, value)` for each MSR of
/// Intel PT, and `other(position, entry)` for the others, which returns the rule that one breaks,
/// or none.
///
/// Errors: the first entry that breaks a rule: a VMX abort.
/// Source: SDM vol. 3, "Saving MSRs"; PRG-165, PRG-166.
[[nodiscard]] constexpr auto store_msrs(guest_pt const& guest, msr_list list, auto&& store,
                                        auto&& other) noexcept -> violation {
    size_t position = 0;
    return detail::first_broken(guest.caps, list, step::exit_store,
                                [&](msr_list_entry const& entry) -> rule {
                                    size_t const at = position++;
                                    auto const answer = on_rdmsr(guest, entry.index);
                                    if (answer.what == exit_action::not_pt) {
                                        return other(at, entry);
                                    }
                                    if (answer) { store(at, answer.value); }
                                    return answer.broken;
                                });
}

}  // namespace ptspec::vmx
