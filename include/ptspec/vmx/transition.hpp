// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/vmx/controls.hpp>

/// VM entry and VM exit: the MSR lists of a VMCS, and what both check and load of Intel PT.
namespace ptspec::vmx {

using access::msr_state;

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

}  // namespace ptspec::vmx
