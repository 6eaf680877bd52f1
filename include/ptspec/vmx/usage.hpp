// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/transition.hpp>

/// The usage models of Intel PT with VMX: the fields of a VMCS for each.
namespace ptspec::vmx {

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
