// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/rule.hpp>

/// The VM-execution, VM-exit and VM-entry controls of Intel PT, and the checks of VM entry on them.
namespace ptspec::vmx {

using cpu::capabilities;
using reg::ia32_rtit_ctl;

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

}  // namespace detail

/// Calls `found` with every rule by which VM entry fails on the controls of Intel PT. `host` is
/// IA32_RTIT_CTL at the start of VM entry.
///
/// Errors: REG-129 guest-physical output without EPT, load and clear; REG-130 TraceEn of the host
///         is 1 and VM entry loads CTL; REG-132 a control where Intel PT is not allowed in VMX
///         operation; REG-135 a control that a capability MSR does not allow.
/// Source: SDM vol. 3, "Checks on VMX Controls"; REG-129, REG-130, REG-132, REG-135.
template <class Found>
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
    return first.found;
}

/// Sets the three controls that give a guest its own Intel PT. Clears all of them where the
/// processor lacks one, or without EPT: then hide Intel PT from the guest (`without_pt`).
///
/// Source: REG-125..129.
[[nodiscard]] constexpr auto with_guest_pt(capabilities const& caps, controls set) noexcept
    -> controls {
    bool const whole = caps.vmx() == cpu::vmx_support::whole && set.enable_ept;
    set.secondary = set.secondary.with(reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr{whole});
    set.vm_exit = set.vm_exit.with(reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL{whole});
    set.vm_entry = set.vm_entry.with(reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL{whole});
    return set;
}

/// CPUID.07H.0:EBX for a guest without Intel PT.
///
/// Source: REG-134, REG-234.
[[nodiscard]] constexpr auto without_pt(reg::cpuid_07h_0_ebx leaf) noexcept
    -> reg::cpuid_07h_0_ebx {
    return leaf.with(reg::cpuid_07h_0_ebx::INTEL_PT{false});
}

}  // namespace ptspec::vmx
