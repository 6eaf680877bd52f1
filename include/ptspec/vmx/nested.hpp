// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/controls.hpp>
#include <ptspec/vmx/guest_pt.hpp>

/// Nested VMX: Intel PT of a guest hypervisor (L1) that runs a guest (L2).
///
/// While L2 runs, `guest_pt` of L1 stays the virtual processor: VM entry to L2 and VM exit to L1
/// change its CTL as the controls of L1 say, and its accesses are those of L2. The VMM (L0) enters
/// L2 with the controls of `merged_controls`.
namespace ptspec::vmx {

/// What the VMCS of L1 for L2 says of Intel PT.
struct nested_vmcs {
    controls set{};
    access::ia32_rtit_ctl guest_ctl{};  ///< the guest-state field IA32_RTIT_CTL
};

/// The controls with which L0 runs L2: its own, and those of L1 that concern what packets L2 makes.
/// L0's transitions are always concealed: L1 and L2 are the only worlds that the trace may show.
///
/// PSB+ in L2 has a VMCS packet with the address of L0's VMCS unless "conceal VMX from PT" is 1 for
/// L2: `vmx/adjust.hpp` replaces it.
///
/// Source: REG-122..129, GEN-278, PRG-161.
[[nodiscard]] constexpr auto merged_controls(controls own, controls const& nested) noexcept
    -> controls {
    using secondary = reg::vmcs_secondary_proc_ctls;
    using vm_exit = reg::vmcs_vmexit_ctls;
    using vm_entry = reg::vmcs_vmentry_ctls;
    bool const conceal = nested.secondary.get<secondary::ConcealVmxNonRootFromPT>();
    own.secondary = own.secondary.with(secondary::ConcealVmxNonRootFromPT{conceal});
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
    rule why = rule::none;  ///< the entry fails: L1 continues after VMLAUNCH or VMRESUME
    bool owes_pip = false;  ///< L1 does not conceal the entry: insert a PIP into its trace
    bool trace_en_changed = false;

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

/// Emulates VM entry of L1 to L2: checks the controls against the capabilities that L1 sees, and
/// loads CTL if they say so.
///
/// Errors: the first rule of `find_broken_rules`; REG-131 for a reserved bit of the CTL field.
///         Nothing has changed then.
/// Source: REG-125, REG-129..132, GEN-272..274, PRG-162.
constexpr auto enter_nested(guest_pt& guest, nested_vmcs const& vmcs) noexcept -> nested_entry {
    using ctl = access::ia32_rtit_ctl;
    rule const broken = broken_rule(guest.caps, vmcs.set, guest.msrs.ctl);
    if (broken != rule::none) { return {.why = broken}; }
    bool const was_on = guest.trace_en();
    bool const loads = vmcs.set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>();
    if (loads) {
        if (!access::is_legal(guest.caps, vmcs.guest_ctl)) { return {.why = rule::REG_131}; }
        detail::set_ctl(guest, vmcs.guest_ctl);
    }
    bool const conceals = vmcs.set.vm_entry.get<reg::vmcs_vmentry_ctls::ConcealVmEntriesFromPT>();
    return {.owes_pip = was_on && guest.trace_en() && !conceals && guest.msrs.ctl.get<ctl::OS>(),
            .trace_en_changed = was_on != guest.trace_en()};
}

/// A VM exit from L2 to L1, emulated.
struct [[nodiscard]] nested_exit {
    bool owes_pip = false;  ///< L1 does not conceal the exit: insert a PIP into its trace
    bool trace_en_changed = false;
};

/// Emulates VM exit from L2 to L1: saves CTL into the VMCS of L1, and clears it, if the controls
/// say so.
///
/// Source: REG-126, REG-127, GEN-271, GEN-273.
constexpr auto leave_nested(guest_pt& guest, nested_vmcs& vmcs) noexcept -> nested_exit {
    using ctl = access::ia32_rtit_ctl;
    bool const was_on = guest.trace_en();
    bool const conceals = vmcs.set.vm_exit.get<reg::vmcs_vmexit_ctls::ConcealVmExitsFromPT>();
    nested_exit result{.owes_pip = was_on && !conceals && guest.msrs.ctl.get<ctl::OS>()};
    if (guest.caps.vmx() == cpu::vmx_support::whole) { vmcs.guest_ctl = guest.msrs.ctl; }
    if (vmcs.set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>()) {
        guest.msrs = access::effect_of_write(guest.caps, guest.msrs, ctl::address,
                                             guest.msrs.ctl.with(ctl::TraceEn{false}).raw)
                         .state;
        guest.msrs.ctl = {};
        guest.starts = false;
        result.trace_en_changed = was_on;
    }
    return result;
}

}  // namespace ptspec::vmx
