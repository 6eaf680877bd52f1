// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/controls.hpp>
#include <ptspec/vmx/guest_pt.hpp>

/// Nested VMX: Intel PT of a guest hypervisor (L1) that runs a guest (L2).
///
/// While L2 runs, `guest_pt` of L1 stays the virtual processor: VM entry to L2 and VM exit to L1
/// change its CTL and its output as the controls of L1 say, and its accesses are those of L2. The
/// VMM (L0) enters L2 with the controls of `merged_controls`.
namespace ptspec::vmx {

/// What the VMCS of L1 for L2 says of Intel PT.
struct nested_vmcs {
    controls set{};
    access::ia32_rtit_ctl guest_ctl{};  ///< the guest-state field IA32_RTIT_CTL
    /// Kept by `enter_nested` for `leave_nested`: how L0 translates the output of L1.
    guest_output output_of_l1 = guest_output::guest_physical;
};

/// The controls with which L0 runs L2: its own, and those of L1 that concern what packets L2 makes.
/// L0's transitions are always concealed: L1 and L2 are the only worlds that the trace may show.
///
/// Unless "conceal VMX from PT" is 1 for L2, PSB+ in L2 has a VMCS packet with the address of L0's
/// VMCS: `replace_vmcs` (`vmx/adjust.hpp`) puts that of L1 in its place. Output is guest-physical
/// only if it is for both.
///
/// Source: REG-122..129, GEN-278, PRG-161.
[[nodiscard]] constexpr auto merged_controls(controls own, controls const& nested) noexcept
    -> controls {
    using secondary = reg::vmcs_secondary_proc_ctls;
    using vm_exit = reg::vmcs_vmexit_ctls;
    using vm_entry = reg::vmcs_vmentry_ctls;
    bool const conceal = nested.secondary.get<secondary::ConcealVmxNonRootFromPT>();
    bool const is_translated = own.secondary.get<secondary::PTUsesGuestPhysAddr>() &&
                               nested.secondary.get<secondary::PTUsesGuestPhysAddr>();
    own.secondary = own.secondary.with(secondary::ConcealVmxNonRootFromPT{conceal},
                                       secondary::PTUsesGuestPhysAddr{is_translated});
    own.vm_exit = own.vm_exit.with(vm_exit::ConcealVmExitsFromPT{true});
    own.vm_entry = own.vm_entry.with(vm_entry::ConcealVmEntriesFromPT{true});
    return own;
}

/// How L0 translates the output of L2. If L1 does not use guest-physical output, the addresses are
/// physical ones of L1, which the EPT of L2 does not translate: then L0 needs shadow tables.
///
/// Source: REG-128, PRG-180, PRG-184.
[[nodiscard]] constexpr auto output_of_nested(guest_output own, controls const& nested) noexcept
    -> guest_output {
    bool const is_translated =
        nested.secondary.get<reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr>();
    return is_translated ? own : guest_output::shadow;
}

/// A VM entry of L1, emulated.
struct [[nodiscard]] nested_entry {
    rule why = rule::none;  ///< the entry fails
    /// The step that fails. After `control_checks` L1 executes the instruction that follows
    /// VMLAUNCH or VMRESUME. After `guest_state_checks` its host state is loaded, as by a VM exit.
    step where = step::control_checks;
    /// L1 does not conceal the entry: insert a PIP with NR = 1 into its trace.
    bool owes_pip = false;
    bool trace_en_changed = false;

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

namespace detail {

/// Sets how output is translated. After a change the guest needs a new shadow.
constexpr void set_output(guest_pt& guest, guest_output output) noexcept {
    if (guest.output != output) { guest.shadow = shadow_use::needed; }
    guest.output = output;
}

}  // namespace detail

/// Emulates VM entry of L1 to L2: checks the controls against the capabilities that L1 sees, loads
/// CTL if they say so, and sets `guest.output` to `output_of_nested`.
///
/// Errors: the first rule of `find_broken_rules`: nothing has changed; REG-131 for a reserved bit
///         of the CTL field: CTL is cleared if VM exits clear it.
/// Source: REG-125, REG-129..132, GEN-272..274, PRG-162.
constexpr auto enter_nested(guest_pt& guest, nested_vmcs& vmcs) noexcept -> nested_entry {
    using ctl = access::ia32_rtit_ctl;
    rule const broken = broken_rule(guest.caps, vmcs.set, guest.msrs.ctl);
    if (broken != rule::none) { return {.why = broken}; }
    if (detail::is_bad_guest_ctl(guest.caps, {vmcs.set, vmcs.guest_ctl})) {
        // TraceEn is 0, by REG-130.
        bool const clears = vmcs.set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>();
        if (clears) { guest.msrs.ctl = {}; }
        return {.why = rule::REG_131, .where = step::guest_state_checks};
    }
    bool const was_on = guest.trace_en();
    bool const loads = vmcs.set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>();
    if (loads) { detail::set_ctl(guest, vmcs.guest_ctl); }
    vmcs.output_of_l1 = guest.output;
    detail::set_output(guest, output_of_nested(guest.output, vmcs.set));
    bool const conceals = vmcs.set.vm_entry.get<reg::vmcs_vmentry_ctls::ConcealVmEntriesFromPT>();
    return {.owes_pip = was_on && guest.trace_en() && !conceals && guest.msrs.ctl.get<ctl::OS>(),
            .trace_en_changed = was_on != guest.trace_en()};
}

/// True if L1 does not conceal the VM exit from L2: before `leave_nested`, insert a PIP with the
/// CR3 of L1 and NR = 0 into its trace.
///
/// Source: GEN-271, GEN-273.
[[nodiscard]] constexpr auto owes_pip_at_exit(guest_pt const& guest,
                                              nested_vmcs const& vmcs) noexcept -> bool {
    return guest.trace_en() && guest.msrs.ctl.get<access::ia32_rtit_ctl::OS>() &&
           !vmcs.set.vm_exit.get<reg::vmcs_vmexit_ctls::ConcealVmExitsFromPT>();
}

/// Emulates VM exit from L2 to L1: saves CTL into the VMCS of L1, clears it if the controls say so,
/// and sets `guest.output` to that of L1.
///
/// Source: REG-126, REG-127, GEN-271, GEN-273.
constexpr void leave_nested(guest_pt& guest, nested_vmcs& vmcs) noexcept {
    using ctl = access::ia32_rtit_ctl;
    if (has_guest_ctl_field(guest.caps)) { vmcs.guest_ctl = guest.msrs.ctl; }
    if (vmcs.set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>()) {
        guest.msrs = access::effect_of_write(guest.caps, guest.msrs, ctl::address,
                                             guest.msrs.ctl.with(ctl::TraceEn{false}).raw)
                         .state;
        guest.msrs.ctl = {};
        guest.starts = false;
    }
    detail::set_output(guest, vmcs.output_of_l1);
}

}  // namespace ptspec::vmx
