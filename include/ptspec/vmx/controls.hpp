// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/vmx/intercepts.hpp>

/// The VM-execution, VM-exit and VM-entry controls of Intel PT: the checks of VM entry on them, and
/// their values for a guest with its own Intel PT.
namespace ptspec::vmx {

using access::ia32_rtit_ctl;
using cpu::capabilities;

/// The control words of a VMCS that concern Intel PT.
struct controls {
    reg::vmcs_secondary_proc_ctls secondary{};
    reg::vmcs_vmexit_ctls vm_exit{};
    reg::vmcs_vmentry_ctls vm_entry{};
    bool enable_ept = false;  ///< secondary processor-based control 1

    friend constexpr auto operator==(controls const&, controls const&) -> bool = default;
};

namespace detail {

/// The bits of a control word that belong to Intel PT: all rows except `other`.
template <class Word>
constexpr auto pt_bits(Word word) noexcept -> uint32_t {
    return word.raw &
           ~ptspec::detail::bits_of_kind<uint32_t>(typename Word::layout::rows{}, row_kind::other);
}

/// True when a capability MSR allows the Intel PT controls in a control word. Its upper half has
/// the controls that may be 1, its lower half those that must be 1.
template <class Word>
constexpr auto is_allowed(Word word, auto capability) noexcept -> bool {
    auto const can_be_1 = static_cast<uint32_t>(capability.raw >> 32);
    auto const must_be_1 = static_cast<uint32_t>(capability.raw);
    return pt_bits(Word{(word.raw & ~can_be_1) | (~word.raw & must_be_1)}) == 0;
}

template <class Controls>
constexpr auto with_conceal(Controls set, bool conceal) noexcept -> Controls {
    using reg::vmcs_secondary_proc_ctls, reg::vmcs_vmexit_ctls, reg::vmcs_vmentry_ctls;
    set.secondary = set.secondary.with(vmcs_secondary_proc_ctls::ConcealVmxNonRootFromPT{conceal},
                                       vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr{false});
    set.vm_exit = set.vm_exit.with(vmcs_vmexit_ctls::ConcealVmExitsFromPT{conceal},
                                   vmcs_vmexit_ctls::ClearIA32_RTIT_CTL{false});
    set.vm_entry = set.vm_entry.with(vmcs_vmentry_ctls::ConcealVmEntriesFromPT{conceal},
                                     vmcs_vmentry_ctls::LoadIA32_RTIT_CTL{false});
    return set;
}

}  // namespace detail

/// Calls `found` with every rule by which VM entry fails on the controls of Intel PT. `host` is
/// IA32_RTIT_CTL at the start of VM entry.
///
/// Errors: REG-129 guest-physical output without EPT, load and clear; REG-130 TraceEn of the host
///         is 1 and VM entry loads CTL; REG-132 a control where Intel PT is not allowed in VMX
///         operation; REG-135 a control that a capability MSR does not allow.
/// Source: SDM vol. 3, "Checks on VMX Controls"; REG-129, REG-130, REG-132, REG-135.
template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const& caps, controls const& set, ia32_rtit_ctl host,
                                 Found&& found) noexcept {
    bool const load = set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>();
    bool const clear = set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>();
    uint32_t const any = detail::pt_bits(set.secondary) | detail::pt_bits(set.vm_exit) |
                         detail::pt_bits(set.vm_entry);
    if (caps.vmx() == cpu::vmx_support::none && any != 0) { found(rule::REG_132); }
    if (!detail::is_allowed(set.secondary, caps.vmx_procbased_ctls2) ||
        !detail::is_allowed(set.vm_exit, caps.vmx_exit_ctls) ||
        !detail::is_allowed(set.vm_entry, caps.vmx_entry_ctls)) {
        found(rule::REG_135);
    }
    if (set.secondary.get<reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr>() &&
        !(set.enable_ept && load && clear)) {
        found(rule::REG_129);
    }
    if (load && host.get<ia32_rtit_ctl::TraceEn>()) { found(rule::REG_130); }
}

/// The first rule by which VM entry fails on the controls of Intel PT.
///
/// Source: REG-129, REG-130, REG-132, REG-135.
[[nodiscard]] constexpr auto broken_rule(capabilities const& caps, controls const& set,
                                         ia32_rtit_ctl host) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, set, host, first);
    return first.broken;
}

/// Sets the controls that give a guest its own Intel PT: those that load and clear IA32_RTIT_CTL
/// and, for guest-physical output, control 24; and the three that conceal VMX from it, else its
/// trace has the address of the VMCS. Where the processor lacks one of the first three, or without
/// EPT, guest-physical output is not possible, and the first three are cleared: then hide Intel PT
/// from the guest (`without_pt`), or use shadow tables. With shadow tables control 24 is 0, and the
/// MSR lists of `pt_aware_guest` take the place of the controls that are missing.
///
/// Source: REG-122..129, GEN-278, PRG-180, PRG-184.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto with_guest_pt(Capabilities const& caps, controls set,
                                           guest_output output) noexcept -> controls {
    using vm_exit = reg::ia32_vmx_exit_ctls;
    using vm_entry = reg::ia32_vmx_entry_ctls;
    bool const translates = output == guest_output::guest_physical;
    bool const has_both = caps.vmx_exit_ctls.template get<vm_exit::Can1_CLEAR_IA32_RTIT_CTL>() &&
                          caps.vmx_entry_ctls.template get<vm_entry::Can1_LOAD_IA32_RTIT_CTL>();
    bool const conceals = translates ? caps.vmx() == cpu::vmx_support::whole && set.enable_ept
                                     : caps.vmx() != cpu::vmx_support::none;
    bool const loads = conceals && has_both;
    if (conceals) { set = detail::with_conceal(set, true); }
    set.secondary = set.secondary.with(
        reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr{loads && translates});
    set.vm_exit = set.vm_exit.with(reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL{loads});
    set.vm_entry = set.vm_entry.with(reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL{loads});
    return set;
}

/// How a VMCS with these controls translates the output of its guest: control 24.
///
/// Source: REG-128, PRG-180.
[[nodiscard]] constexpr auto guest_output_of(controls const& set) noexcept -> guest_output {
    return set.secondary.get<reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr>()
               ? guest_output::guest_physical
               : guest_output::shadow;
}

/// True if EPTP switching by VMFUNC exits: while TraceEn is 1, output translated by EPT would go to
/// other memory.
///
/// Source: SDM vol. 3, "VM Functions"; PRG-183.
[[nodiscard]] constexpr auto eptp_switching_exits(controls const& set, ia32_rtit_ctl ctl) noexcept
    -> bool {
    return set.secondary.get<reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr>() &&
           ctl.get<ia32_rtit_ctl::TraceEn>();
}

/// CPUID.07H.0:EBX for a guest without Intel PT.
///
/// Source: REG-134, REG-234.
[[nodiscard]] constexpr auto without_pt(reg::cpuid_07h_0_ebx leaf) noexcept
    -> reg::cpuid_07h_0_ebx {
    return leaf.with(reg::cpuid_07h_0_ebx::INTEL_PT{false});
}

/// True where the guest-state field for IA32_RTIT_CTL exists in a VMCS.
///
/// Source: REG-127.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto has_guest_ctl_field(Capabilities const& caps) noexcept -> bool {
    return caps.vmx_exit_ctls.template get<reg::ia32_vmx_exit_ctls::Can1_CLEAR_IA32_RTIT_CTL>() ||
           caps.vmx_entry_ctls.template get<reg::ia32_vmx_entry_ctls::Can1_LOAD_IA32_RTIT_CTL>();
}

}  // namespace ptspec::vmx
