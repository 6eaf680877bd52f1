// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/vmx/intercepts.hpp>

/// The VM-execution, VM-exit and VM-entry controls of Intel PT and the MSR lists of a VMCS: the
/// checks of VM entry on them, their effects, and their values for each usage model.
namespace ptspec::vmx {

using access::ia32_rtit_ctl;
using access::msr_state;
using cpu::capabilities;

// ------------------------------------------------------------------------------------ controls

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

namespace detail {

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

// ------------------------------------------------------------------------------------ MSR lists

/// An entry of an MSR list of a VMCS.
///
/// Shape:  16 bytes, as in memory.
/// Source: SDM vol. 3, "VM-Entry Controls for MSRs"; PRG-165.
struct msr_list_entry {
    msr_index index{};
    uint32_t reserved = 0;
    uint64_t value = 0;

    friend constexpr auto operator==(msr_list_entry const&, msr_list_entry const&)
        -> bool = default;
};
static_assert(sizeof(msr_list_entry) == 16);

/// The entries of an MSR list, owned by the caller.
struct msr_list {
    msr_list_entry const* entries = nullptr;
    size_t count = 0;
};

/// The fields of a VMCS that concern Intel PT.
struct vmcs_fields {
    controls set{};
    ia32_rtit_ctl guest_ctl{};  ///< the guest-state field, 2814H
    msr_list entry_load{};
    msr_list exit_store{};
    msr_list exit_load{};
};

/// The steps of VM entry and VM exit that can fail.
enum class step : uint8_t {
    control_checks,      ///< VM entry fails with VM-instruction error 7
    guest_state_checks,  ///< VM entry fails with exit reason 33 and bit 31
    entry_load,          ///< VM entry fails with exit reason 34 and bit 31
    exit_store,          ///< VMX abort, except for PRG-166: the stored value is not exact
    exit_load,           ///< VMX abort
};

/// A broken rule of a VM entry or a VM exit.
struct violation {
    rule broken = rule::none;
    step where = step::control_checks;
    size_t position = 0;  ///< of the entry in the list, for the steps with a list
    msr_index index{};    ///< the MSR of that entry

    friend constexpr auto operator==(violation const&, violation const&) -> bool = default;
};

/// The state after a VM entry, a VM exit or an MSR list, and the first rule that it breaks.
struct [[nodiscard]] transition {
    violation violated{};
    msr_state state{};  ///< where it failed, the state at that point

    constexpr explicit operator bool() const noexcept { return violated.broken == rule::none; }
};

namespace detail {

/// Calls `use` with the entries of a list, in order, up to the first one that breaks a rule. `use`
/// returns that rule or none.
///
/// Source: PRG-165.
template <class Capabilities>
constexpr auto first_broken(Capabilities const& caps, msr_list list, step where,
                            auto const& use) noexcept -> violation {
    using size = reg::ia32_vmx_misc::MaxMsrList;
    uint64_t const most = size::amount(caps.vmx_misc.template get<size>()).count;
    for (size_t i = 0; i < list.count; ++i) {
        if (i == most) { return {rule::PRG_165, where, i}; }
        auto const& entry = list.entries[i];
        rule const broken = entry.reserved != 0 ? rule::PRG_165 : use(entry);
        if (broken != rule::none) { return {broken, where, i, entry.index}; }
    }
    return {};
}

template <class Capabilities>
constexpr auto load(Capabilities const& caps, msr_list list, step where, msr_state state,
                    access::processor_context const& code, access::policy const& policy) noexcept
    -> transition {
    auto const failed = first_broken(caps, list, where, [&](msr_list_entry const& entry) {
        auto const checked = access::check_write(caps, state, entry.index, entry.value, 0, policy);
        if (checked.what == access::outcome::general_protection) { return checked.broken; }
        state = access::apply(caps, state, entry.index, entry.value, code).state;
        return rule::none;
    });
    return {failed, state};
}

/// Source: REG-012..017, PRG-165, PRG-166.
template <class Capabilities>
constexpr auto store(Capabilities const& caps, msr_list list, msr_state const& state,
                     bool as_failure) noexcept -> violation {
    bool const tracing = state.ctl.get<ia32_rtit_ctl::TraceEn>();
    return first_broken(caps, list, step::exit_store, [&](msr_list_entry const& entry) {
        auto const checked = access::check_read(caps, entry.index);
        bool const faults = checked.what == access::outcome::general_protection;
        if (as_failure || faults) { return faults ? checked.broken : rule::none; }
        bool const changes = entry.index == access::ia32_rtit_status::address ||
                             entry.index == access::ia32_rtit_output_base::address ||
                             entry.index == access::ia32_rtit_output_mask_ptrs::address;
        return tracing && changes ? rule::PRG_166 : rule::none;
    });
}

/// The state in VMX non-root operation before the MSR-load list.
///
/// Source: REG-125.
template <class Capabilities>
constexpr auto load_guest(Capabilities const& caps, vmcs_fields const& fields, msr_state state,
                          access::processor_context const& code) noexcept -> msr_state {
    state.in_vmx_operation = true;
    bool const load = fields.set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>();
    return load ? access::apply(caps, state, fields.guest_ctl, code).state : state;
}

/// Source: REG-126.
template <class Capabilities>
constexpr auto load_host(Capabilities const& caps, vmcs_fields const& fields, msr_state state,
                         access::processor_context const& code,
                         access::policy const& policy) noexcept -> transition {
    state.in_vmx_operation = true;
    bool const clear = fields.set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>();
    if (clear) { state = access::apply(caps, state, ia32_rtit_ctl{}, code).state; }
    return load(caps, fields.exit_load, step::exit_load, state, code, policy);
}

/// The value may break any rule that a WRMSR checks: no processor holds such a value, so that a
/// guest with it could not be stopped, saved or moved.
///
/// Source: REG-131.
template <class Capabilities>
constexpr auto is_bad_guest_ctl(Capabilities const& caps, controls const& set,
                                ia32_rtit_ctl guest_ctl) noexcept -> bool {
    return set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>() &&
           !access::is_legal(caps, guest_ctl);
}

}  // namespace detail

/// Executes a VM entry: the checks, the load of IA32_RTIT_CTL, then the MSR-load list, whose
/// entries are written in order as by WRMSR. `code` is the context of the guest.
///
/// Errors: those of `check`. A VM entry that fails after the control checks loads the host's
///         state as a VM exit does, without the MSR-store list.
/// Source: SDM vol. 3, "VM Entries"; REG-010, REG-125, REG-129..132, REG-135, PRG-162, PRG-165.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vm_entry(Capabilities const& caps, vmcs_fields const& fields,
                                      msr_state const& state,
                                      access::processor_context const& code = {},
                                      access::policy const& policy = {}) noexcept -> transition {
    rule const broken = broken_rule(caps, fields.set, state.ctl);
    if (broken != rule::none) { return {{broken, step::control_checks}, state}; }
    if (detail::is_bad_guest_ctl(caps, fields.set, fields.guest_ctl)) {
        return {{rule::REG_131, step::guest_state_checks}, state};
    }
    return detail::load(caps, fields.entry_load, step::entry_load,
                        detail::load_guest(caps, fields, state, code), code, policy);
}

/// Executes a VM exit: the MSR-store list, which does not change the state, then the clear of
/// IA32_RTIT_CTL, then the MSR-load list. `state` is the state of the guest, `code` the context of
/// the host. The guest-state field, where it exists, has `state.ctl` afterwards.
///
/// Errors: a VMX abort, with the rule and the entry of the list.
/// Source: SDM vol. 3, "VM Exits"; REG-010, REG-126, REG-127, PRG-165..167.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vm_exit(Capabilities const& caps, vmcs_fields const& fields,
                                     msr_state const& state,
                                     access::processor_context const& code = {},
                                     access::policy const& policy = {}) noexcept -> transition {
    if (auto const violated = detail::store(caps, fields.exit_store, state, true);
        violated.broken != rule::none) {
        return {violated, state};
    }
    return detail::load_host(caps, fields, state, code, policy);
}

/// Calls `found` with every violation of a VM entry from the state `host` and of the VM exit that
/// follows it: every rule of the control checks, REG-131, and the first entry of each list that
/// fails. The guest is assumed not to change IA32_RTIT_CTL; else check the VM exit with `vm_exit`.
///
/// Errors: REG-129, REG-130, REG-132, REG-135 as for the controls alone; REG-131 the guest-state
///         field has a value that this processor cannot hold; PRG-165 bits 63:32 of an entry, or
///         too many entries; PRG-166 an MSR that changes while it is stored; for other entries the
///         rule by which WRMSR, or RDMSR in the MSR-store list, raises #GP.
/// Source: SDM vol. 3, "VM Entries", "VM Exits"; REG-010, REG-129..132, REG-135, PRG-162,
///         PRG-165, PRG-166.
template <same_as<capabilities> Capabilities, callable<violation> Found>
constexpr void check(Capabilities const& caps, vmcs_fields const& fields, msr_state const& host,
                     Found&& found, access::policy const& policy = {}) noexcept {
    find_broken_rules(caps, fields.set, host.ctl,
                      [&](rule broken) { found(violation{broken, step::control_checks}); });
    if (detail::is_bad_guest_ctl(caps, fields.set, fields.guest_ctl)) {
        found(violation{rule::REG_131, step::guest_state_checks});
    }
    auto const entered = detail::load(caps, fields.entry_load, step::entry_load,
                                      detail::load_guest(caps, fields, host, {}), {}, policy);
    if (!entered) { found(entered.violated); }
    if (entered) {
        auto const stored = detail::store(caps, fields.exit_store, entered.state, false);
        if (stored.broken != rule::none) { found(stored); }
    }
    auto const left = detail::load_host(caps, fields, entered.state, {}, policy);
    if (!left) { found(left.violated); }
}

// ------------------------------------------------------------------------------------ usage models

/// An MSR list with its entries.
struct stored_list {
    msr_list_entry entries[1]{};
    size_t count = 0;

    [[nodiscard]] constexpr auto view() const& noexcept -> msr_list { return {entries, count}; }
    [[nodiscard]] auto view() const&& -> msr_list = delete;
};

namespace detail {

constexpr void append(stored_list& list, msr_index index, uint64_t value = 0) noexcept {
    list.entries[list.count] = {index, 0, value};
    ++list.count;
}
constexpr void append(stored_list& list, ia32_rtit_ctl value, bool trace_en) noexcept {
    append(list, ia32_rtit_ctl::address, value.with(ia32_rtit_ctl::TraceEn{trace_en}).raw);
}

}  // namespace detail

/// The VMCS fields of a usage model, with the entries of the MSR lists.
struct [[nodiscard]] usage {
    rule broken = rule::none;  ///< why the processor cannot do this
    controls set{};
    ia32_rtit_ctl guest_ctl{};
    stored_list entry_load{};
    stored_list exit_store{};
    stored_list exit_load{};

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
    /// The fields; the lists are views of this object.
    [[nodiscard]] constexpr auto fields() const& noexcept -> vmcs_fields {
        return {set, guest_ctl, entry_load.view(), exit_store.view(), exit_load.view()};
    }
    [[nodiscard]] auto fields() const&& -> vmcs_fields = delete;
};

namespace detail {

/// Source: REG-121, REG-132, REG-135.
template <class Capabilities>
constexpr auto usage_with(Capabilities const& caps, controls set) noexcept -> usage {
    bool const none = caps.vmx() == cpu::vmx_support::none;
    return {none ? rule::REG_121 : broken_rule(caps, set, {}), set};
}
/// Concealed tracing of one side: the MSR lists switch TraceEn at VM entry and at VM exit.
template <same_as<capabilities> Capabilities>
constexpr auto usage_by_lists(Capabilities const& caps, controls set, ia32_rtit_ctl value,
                              bool in_guest) noexcept -> usage {
    auto made = usage_with(caps, with_conceal(set, true));
    append(made.entry_load, value, in_guest);
    append(made.exit_load, value, !in_guest);
    return made;
}

}  // namespace detail

/// The host traces itself and all guests: nothing is concealed, and TraceEn stays 1. Hide Intel PT
/// from the guests (`without_pt`). TSC packets in a guest include its TSC offset and scaling.
///
/// Errors: `broken` is REG-121 where Intel PT is not allowed in VMX operation.
/// Source: SDM vol. 3, "System-Wide Tracing"; PRG-163, PRG-164.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto system_wide(Capabilities const& caps, controls set) noexcept -> usage {
    return detail::usage_with(caps, detail::with_conceal(set, false));
}

/// The host traces itself only: VM entry clears TraceEn, VM exit sets it. `host` is the host's
/// IA32_RTIT_CTL while it traces.
///
/// Errors: as `system_wide`; REG-135 where the controls that conceal VMX are missing.
/// Source: SDM vol. 3, "Host-Only Tracing"; PRG-163, PRG-165.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vmm_only(Capabilities const& caps, controls set,
                                      ia32_rtit_ctl host) noexcept -> usage {
    return detail::usage_by_lists(caps, set, host, false);
}

/// The host traces a guest only: VM entry sets TraceEn, VM exit clears it. `guest` is IA32_RTIT_CTL
/// while the guest runs; the host writes the other MSRs before the first VM entry.
///
/// Errors: as `vmm_only`.
/// Source: SDM vol. 3, "Guest-Only Tracing"; PRG-163, PRG-165, PRG-166.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vm_only(Capabilities const& caps, controls set,
                                     ia32_rtit_ctl guest) noexcept -> usage {
    return detail::usage_by_lists(caps, set, guest, true);
}

/// The guest traces itself: `guest` is the IA32_RTIT_CTL that the processor must have: `ctl` in the
/// result of `enter`. The VMM swaps the other MSRs before and after it: `enter` and `leave`.
///
/// Where the processor has the controls, VM entry loads IA32_RTIT_CTL from the guest-state field
/// and VM exit clears it. Without them the MSR lists load it, store it, and clear it.
///
/// Errors: as `vmm_only`; PRG-170 where `output` is guest-physical and the processor cannot
///         translate it.
/// Source: SDM vol. 3, "Guest-Only Tracing"; PRG-163, PRG-165..167, PRG-170, PRG-184.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto pt_aware_guest(Capabilities const& caps, controls set,
                                            guest_output output, ia32_rtit_ctl guest) noexcept
    -> usage {
    controls const given = with_guest_pt(caps, detail::with_conceal(set, true), output);
    auto made = detail::usage_with(caps, given);
    if (made && guest_output_of(given) != output) { made.broken = rule::PRG_170; }
    if (given.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>()) {
        made.guest_ctl = guest;
        return made;
    }
    detail::append(made.entry_load, ia32_rtit_ctl::address, guest.raw);
    detail::append(made.exit_store, ia32_rtit_ctl::address);
    detail::append(made.exit_load, ia32_rtit_ctl::address);
    return made;
}

}  // namespace ptspec::vmx
