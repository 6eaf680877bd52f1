// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/reg/perf.hpp>
#include <ptspec/vmx/guest_pt.hpp>
#include <ptspec/vmx/shadow.hpp>

/// The world switch of a guest with its own Intel PT: the accesses before VM entry and after VM
/// exit, in host-guest mode. In host-only mode guests have no Intel PT, and nothing is switched.
namespace ptspec::vmx {

/// The host's trace while a guest runs. Made by `enter`, used up by `leave`.
struct host_pt {
    access::msr_state msrs{};
    bool is_saved = false;  ///< all MSRs of the guest were exchanged, not CTL alone
};

/// The result of `enter`.
struct [[nodiscard]] entry_state : driver::procedure_result {
    /// For the guest-state field of VM entry or, where the processor has no such control, for the
    /// last entry of its MSR-load list. VM exit then loads 0.
    access::ia32_rtit_ctl ctl{};
    bool needs_shadow =
        false;  ///< nothing was done: the guest traces, and its shadow is incomplete

    /// True if VM entry may follow.
    constexpr explicit operator bool() const noexcept { return !failed && !needs_shadow; }
};

namespace detail {

/// Calls `use(index)` for each MSR that is exchanged: those that the guest has, except CTL.
///
/// Source: PRG-170.
constexpr void for_each_exchanged_msr(cpu::capabilities const& guest, auto&& use) noexcept {
    auto const use_if_present = [&](uint32_t index) {
        if (access::detail::rule_of_absence(guest, index) == rule::none) { use(index); }
    };
    use_if_present(access::ia32_rtit_status::address);
    use_if_present(access::ia32_rtit_output_base::address);
    use_if_present(access::ia32_rtit_output_mask_ptrs::address);
    use_if_present(access::ia32_rtit_cr3_match::address);
    for (uint32_t index = access::detail::first_addr_msr; index <= access::detail::last_pt_msr;
         ++index) {
        use_if_present(index);
    }
}

/// The MSRs that the processor gets while the guest traces.
constexpr auto msrs_of_processor(guest_pt const& guest) noexcept -> access::msr_state {
    using status = access::ia32_rtit_status;
    using ctl = access::ia32_rtit_ctl;
    auto msrs = guest.msrs;
    if (guest.hides_pend_topa_pmi) { msrs.status = msrs.status.with(status::PendToPAPMI{false}); }
    if (guest.shadow_paging) { msrs.cr3_match = guest.host_cr3_match; }
    if (guest.output == guest_output::shadow) {
        msrs.output_base = guest.host_output.base;
        msrs.output_mask_ptrs = guest.host_output.mask_ptrs;
        if (!msrs.ctl.get<ctl::FabricEn>()) {
            msrs.ctl = msrs.ctl.with(ctl::ToPA{guest.host_topa});
        }
    }
    return msrs;
}

}  // namespace detail

/// Prepares VM entry: stops the host's trace, saves it, and loads the guest's MSRs. CTL is loaded
/// by VM entry. The host's TraceEn must stay 0 until `leave`, also in a PMI handler.
///
/// TraceEn is cleared even if the guest does not trace: VM entry that loads CTL fails otherwise.
///
/// A guest in which a PMI is pending by PendToPAPMI is entered without that bit unless TraceEn has
/// just risen: else each VM entry would raise the interrupt again.
///
/// Errors: the access that faulted: do not enter; `leave` restores the host.
/// Source: REG-130, OUT-086, PRG-170, PRG-171.
template <msr_port Msrs>
constexpr auto enter(guest_pt& guest, host_pt& host, Msrs& msrs) noexcept -> entry_state {
    using ctl = access::ia32_rtit_ctl;
    using status = access::ia32_rtit_status;
    driver::detail::msr_sequence to{msrs};
    entry_state result;
    host = {};
    host.msrs.ctl = to.template read<ctl>();
    if (host.msrs.ctl.get<ctl::TraceEn>()) { to.write(ctl{}); }
    guest.hides_pend_topa_pmi = guest.trace_en() && !guest.starts &&
                                guest.msrs.ctl.get<ctl::InjectPsbPmiOnEnable>() &&
                                guest.msrs.status.get<status::PendToPAPMI>();
    auto const wanted = detail::msrs_of_processor(guest);
    if (guest.trace_en()) {
        detail::for_each_exchanged_msr(
            guest.caps, [&](uint32_t index) { access::set_raw(host.msrs, index, to.read(index)); });
        host.is_saved = static_cast<bool>(to);
        detail::for_each_exchanged_msr(
            guest.caps, [&](uint32_t index) { to.write(index, access::value_of(wanted, index)); });
    }
    result.failed = to.failed();
    result.trace = to ? driver::trace_state::disabled : driver::trace_state::unknown;
    result.ctl = wanted.ctl;
    return result;
}

/// Continues after VM exit, which has cleared CTL: reads the guest's MSRs, and restores the host's
/// trace. Also after a VM entry that failed: `entered` is false then.
///
/// With shadow tables the position is in `guest.host_output`: translate it to `guest.msrs`, as
/// `leave` with a shadow does.
///
/// Errors: the access that faulted. The guest's values are then incomplete.
/// Source: PRG-167, PRG-170.
template <msr_port Msrs>
constexpr auto leave(guest_pt& guest, host_pt const& host, Msrs& msrs, bool entered = true) noexcept
    -> driver::procedure_result {
    using status = access::ia32_rtit_status;
    driver::detail::msr_sequence on{msrs};
    if (host.is_saved) {
        access::msr_state got = guest.msrs;
        detail::for_each_exchanged_msr(
            guest.caps, [&](uint32_t index) { access::set_raw(got, index, on.read(index)); });
        if (on && entered) {
            if (guest.hides_pend_topa_pmi) {
                got.status = got.status.with(status::PendToPAPMI{true});
            }
            if (guest.shadow_paging) { got.cr3_match = guest.msrs.cr3_match; }
            if (guest.output == guest_output::shadow) {
                guest.host_output = {got.output_base, got.output_mask_ptrs};
                got.output_base = guest.msrs.output_base;
                got.output_mask_ptrs = guest.msrs.output_mask_ptrs;
            }
            got.status = got.status.with(
                status::TriggerEn{access::trigger_en(got.ctl, got.status)});
            guest.msrs = got;
        }
        detail::for_each_exchanged_msr(guest.caps, [&](uint32_t index) {
            on.write(index, access::value_of(host.msrs, index));
        });
    }
    if (entered) { guest.starts = guest.needs_position = false; }
    guest.hides_pend_topa_pmi = false;
    if (host.msrs.ctl.raw != 0) { on.write(host.msrs.ctl); }
    return {on.failed(), on ? driver::trace_state_of(host.msrs.ctl) : driver::trace_state::unknown};
}

// ------------------------------------------------------------------------------------ shadow

/// `enter` with the shadow that was built when the guest enabled its trace, or that continues where
/// the last exit was.
///
/// Errors: those of `enter`; `needs_shadow` if the guest traces and the shadow is not complete.
template <msr_port Msrs>
constexpr auto enter(guest_pt& guest, shadow const& from, host_pt& host, Msrs& msrs) noexcept
    -> entry_state {
    if (guest.trace_en() && !from.is_complete()) {
        entry_state refused;
        refused.needs_shadow = true;
        return refused;
    }
    if (guest.trace_en() && guest.needs_position) {
        auto const wanted = from.host();
        guest.host_output = wanted.at;
        guest.host_topa = wanted.topa;
    }
    return enter(guest, host, msrs);
}

/// `leave`, and the guest's position from that of the processor.
///
/// Errors: those of `leave`; `placed` is false if the processor's position is not in the shadow.
template <msr_port Msrs>
constexpr auto leave(guest_pt& guest, shadow const& from, host_pt const& host, Msrs& msrs,
                     bool& placed, bool entered = true) noexcept -> driver::procedure_result {
    auto const result = leave(guest, host, msrs, entered);
    placed = true;
    if (!host.is_saved || !entered || !result) { return result; }
    auto const found = from.to_guest(guest.host_output);
    placed = found.found;
    if (found) {
        guest.msrs.output_base = found.at.base;
        guest.msrs.output_mask_ptrs = found.at.mask_ptrs;
    }
    return result;
}

// ------------------------------------------------------------------------------------ PMI

/// Takes a ToPA PMI that the guest's output raised from the processor. Call it after each VM exit
/// of a guest that traces, before `leave`, so that an interrupt which arrives together with another
/// exit is not lost, and the host's handler does not take it for its own. True if there was one.
///
/// Source: SDM vol. 3, "ToPA PMI"; PRG-177.
template <msr_port Msrs>
[[nodiscard]] constexpr auto take_topa_pmi(guest_pt& guest, Msrs& msrs) noexcept -> bool {
    using global_status = reg::ia32_perf_global_status;
    using reset = reg::ia32_perf_global_status_reset;
    auto const now = driver::read<global_status>(msrs);
    if (!now || !now.value.template get<global_status::Trace_ToPA_PMI>()) { return false; }
    (void)driver::write(msrs, reset{}.with(reset::Trace_ToPA_PMI{true}));
    guest.msrs.perf_global_status = guest.msrs.perf_global_status.with(
        global_status::Trace_ToPA_PMI{true});
    guest.pmi_pending = true;
    return true;
}

}  // namespace ptspec::vmx
