// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/image.hpp>
#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/reg/perf.hpp>
#include <ptspec/vmx/guest_pt.hpp>
#include <ptspec/vmx/shadow.hpp>

/// The world switch of a guest with its own Intel PT: the accesses before VM entry and after VM
/// exit, in host-guest mode. In host-only mode guests have no Intel PT, and nothing is switched.
namespace ptspec::vmx {

/// The host's trace while a guest runs. `enter` saves it, `leave` and `cancel` restore it.
struct host_pt {
    access::msr_state msrs{};
    bool is_saved = false;   ///< all MSRs that the guest has, not CTL alone
    bool is_loaded = false;  ///< the processor has the guest's
};

/// The result of `enter`.
struct [[nodiscard]] entry_state : driver::procedure_result {
    /// For the guest-state field of VM entry or, where the processor has no such control, for the
    /// last entry of its MSR-load list. VM exit then loads 0.
    access::ia32_rtit_ctl ctl{};
    /// Nothing was done, because the guest traces and its shadow is missing, incomplete, or of an
    /// earlier enable.
    bool needs_shadow = false;
    rule broken = rule::none;  ///< nothing was done: the guest cannot be entered in this state

    /// True if VM entry may follow.
    constexpr explicit operator bool() const noexcept {
        return !fault.happened && !needs_shadow && broken == rule::none;
    }
};

namespace detail {

/// Calls `use(index)` for each MSR that is exchanged: those that the guest has, except CTL.
///
/// Source: PRG-170.
constexpr void for_each_exchanged_msr(cpu::capabilities const& guest_caps, auto&& use) noexcept {
    for (access::pt_msr const& msr : access::pt_msrs) {
        if (msr.index != access::ia32_rtit_ctl::address && access::exists(guest_caps, msr.index)) {
            use(msr.index);
        }
    }
}

/// False for a guest that reads PacketByteCnt as 0, and whose enables all have a PSB+. The
/// processor's count is kept until the guest enables tracing.
///
/// Source: REG-055, REG-063.
constexpr auto has_byte_count(guest_pt const& guest) noexcept -> bool {
    return guest.caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>();
}

/// False for a guest that no ToPA PMI can interrupt. Its processor may have ToPA, and raise one.
///
/// Source: REG-204.
constexpr auto has_topa(guest_pt const& guest) noexcept -> bool {
    return guest.caps.supports(cpu::output_scheme::topa);
}

/// The rule by which VM entry would give the guest what it may not have, or none: control 24
/// differs from how output is translated; an MSR has a value that the guest cannot have, because
/// `caps` was narrowed later.
///
/// Source: REG-128, PRG-173, PRG-180, PRG-184.
constexpr auto broken_rule_of_entry(guest_pt const& guest, controls const& set) noexcept -> rule {
    auto const& msrs = guest.msrs;
    rule broken = access::broken_rule(guest.caps, msrs.ctl);
    if (!guest.trace_en()) { return broken; }
    for (access::pt_msr const& msr : access::pt_msrs) {
        if (broken != rule::none) { break; }
        broken = access::broken_rule_of_value(guest.caps, msr.index,
                                              access::value_of(msrs, msr.index));
    }
    bool const differs = guest_output_of(set) != guest.current_output();
    return broken == rule::none && differs ? rule::REG_128 : broken;
}

/// The MSRs that the processor gets while the guest traces.
constexpr auto msrs_of_processor(guest_pt const& guest) noexcept -> access::msr_state {
    using status = access::ia32_rtit_status;
    using ctl = access::ia32_rtit_ctl;
    auto msrs = guest.msrs;
    if (!detail::has_byte_count(guest)) {
        uint64_t const count = guest.starts ? 0 : guest.hidden_byte_count;
        msrs.status = msrs.status.with(status::PacketByteCnt{wrapped{count}});
    }
    if (guest.hides_pend_topa_pmi) { msrs.status = msrs.status.with(status::PendToPAPMI{false}); }
    if (guest.shadow_paging) { msrs.cr3_match = guest.host_cr3_match; }
    if (guest.current_output() == guest_output::shadow) {
        msrs.output = guest.host_output;
        if (!msrs.ctl.get<ctl::FabricEn>()) {
            msrs.ctl = msrs.ctl.with(ctl::ToPA{guest.host_topa});
        }
    }
    return msrs;
}

/// Whether the guest can be entered. `is_placed`: its shadow is complete, or it needs none.
constexpr auto check_of_entry(guest_pt const& guest, controls const& set, bool is_placed) noexcept
    -> entry_state {
    entry_state result;
    result.needs_shadow = guest.trace_en() && !is_placed;
    result.broken = broken_rule_of_entry(guest, set);
    return result;
}

/// Stops the host's trace, saves it, and loads the guest's MSRs.
template <msr_port Msrs>
constexpr auto exchange(guest_pt& guest, host_pt& host, Msrs& msrs) noexcept -> entry_state {
    using ctl = access::ia32_rtit_ctl;
    using status = access::ia32_rtit_status;
    driver::msr_sequence sequence{msrs};
    entry_state result;
    host.msrs.ctl = sequence.template read<ctl>();
    if (host.msrs.ctl.get<ctl::TraceEn>()) { sequence.write(ctl{}); }
    guest.hides_pend_topa_pmi = guest.trace_en() && (!guest.starts || !has_topa(guest)) &&
                                guest.msrs.ctl.get<ctl::InjectPsbPmiOnEnable>() &&
                                guest.msrs.status.get<status::PendToPAPMI>();
    auto const wanted = msrs_of_processor(guest);
    if (guest.trace_en()) {
        for_each_exchanged_msr(guest.caps, [&](msr_index index) {
            access::set_raw(host.msrs, index, sequence.read(index));
        });
        host.is_saved = static_cast<bool>(sequence);
        for_each_exchanged_msr(guest.caps, [&](msr_index index) {
            sequence.write(index, access::value_of(wanted, index));
        });
        host.is_loaded = static_cast<bool>(sequence);
    }
    result.fault = sequence.fault();
    result.trace = sequence ? driver::trace_state::disabled : driver::trace_state::unknown;
    result.ctl = wanted.ctl;
    return result;
}

/// Takes the guest's values from the processor, if it has them. Returns the access that faulted:
/// then nothing was taken.
template <msr_port Msrs>
constexpr auto take_guest(guest_pt& guest, host_pt const& host, Msrs& msrs) noexcept
    -> driver::msr_fault {
    using status = access::ia32_rtit_status;
    if (!host.is_loaded) { return {}; }
    driver::msr_sequence sequence{msrs};
    access::msr_state got = guest.msrs;
    for_each_exchanged_msr(
        guest.caps, [&](msr_index index) { access::set_raw(got, index, sequence.read(index)); });
    if (!sequence) { return sequence.fault(); }
    guest.hidden_byte_count = has_byte_count(guest) ? 0 : got.status.get<status::PacketByteCnt>();
    got.status = visible_status(guest.caps, got.status);
    if (guest.hides_pend_topa_pmi) { got.status = got.status.with(status::PendToPAPMI{true}); }
    if (guest.shadow_paging) { got.cr3_match = guest.msrs.cr3_match; }
    if (guest.current_output() == guest_output::shadow) {
        guest.host_output = got.output;
        guest.shadow = shadow_use::placed;
        got.output = guest.msrs.output;
    }
    got.status = got.status.with(status::TriggerEn{access::trigger_en(got.ctl, got.status)});
    guest.msrs = got;
    guest.starts = false;
    return {};
}

}  // namespace detail

/// Prepares VM entry: stops the host's trace, saves it, and loads the guest's MSRs. CTL is loaded
/// by VM entry. The host's TraceEn must stay 0 until `leave`, also in a PMI handler. Then
/// `update_msr_bitmap`. `set` are the controls of the VMCS that is entered: those of
/// `with_guest_pt` or `pt_aware_guest`, through `merged_controls` where the guest may run L2.
///
/// TraceEn is cleared even if the guest does not trace: VM entry that loads CTL fails otherwise.
///
/// If the host's own ToPA PMI is pending now (`find_topa_pmi`), it cannot be told apart from one of
/// the guest later: `cancel`, handle it, and call `enter` again.
///
/// A guest in which a PMI is pending by PendToPAPMI is entered without that bit unless TraceEn has
/// just risen: else each VM entry would raise the interrupt again. A guest without ToPA output has
/// no such interrupt, and is always entered without the bit.
///
/// Errors: the access that faulted: do not enter; `cancel` restores the host. With shadow tables
///         `needs_shadow` unless the VMM has set `host_output` and `guest_pt::shadow` itself: use
///         the function below. REG-128 if control 24 and `current_output` of a guest that traces
///         differ: its output would go to the wrong memory. The rule by which a value of CTL, or
///         of another MSR of a guest that traces, is not one that `guest.caps` allow.
/// Source: REG-128, REG-130, OUT-086, PRG-170, PRG-171, PRG-173, PRG-180.
template <msr_port Msrs>
constexpr auto enter(guest_pt& guest, controls const& set, host_pt& host, Msrs& msrs) noexcept
    -> entry_state {
    host = {};
    bool const is_placed = guest.current_output() != guest_output::shadow ||
                           guest.shadow == shadow_use::placed;
    auto const allowed = detail::check_of_entry(guest, set, is_placed);
    return allowed ? detail::exchange(guest, host, msrs) : allowed;
}

/// Restores the host's trace after a VM entry that failed: the guest did not run.
///
/// Errors: the access that faulted: the call can be repeated.
/// Source: PRG-170.
template <msr_port Msrs>
constexpr auto cancel(guest_pt& guest, host_pt& host, Msrs& msrs) noexcept
    -> driver::procedure_result {
    driver::msr_sequence sequence{msrs};
    host.is_loaded = guest.hides_pend_topa_pmi = false;
    auto const ctl = host.msrs.ctl;
    if (host.is_saved) {
        detail::for_each_exchanged_msr(guest.caps, [&](msr_index index) {
            sequence.write(index, access::value_of(host.msrs, index));
        });
    }
    if (ctl.raw != 0) { sequence.write(ctl); }
    if (sequence) { host = {}; }
    return {sequence.fault(),
            sequence ? driver::trace_state_of(ctl) : driver::trace_state::unknown};
}

/// Continues after VM exit, which has cleared CTL: reads the guest's MSRs, and restores the host's
/// trace. After `enter` that failed or was refused it restores what `enter` changed. If the host's
/// trace cannot be restored now, `cancel` tries again.
///
/// With shadow tables the position is in `guest.host_output`: translate it to `guest.msrs`, as
/// `leave` with a shadow does.
///
/// Errors: the access that faulted. The guest's values are then those before VM entry.
/// Source: PRG-167, PRG-170.
template <msr_port Msrs>
constexpr auto leave(guest_pt& guest, host_pt& host, Msrs& msrs) noexcept
    -> driver::procedure_result {
    auto const failed = detail::take_guest(guest, host, msrs);
    auto result = cancel(guest, host, msrs);
    if (failed.happened) { result.fault = failed; }
    return result;
}

// ------------------------------------------------------------------------------------ shadow

/// Begins the shadow of a guest that has set TraceEn: `guest.needs_shadow()`. Then `shadow::build`
/// until it is complete.
///
/// Errors: those of `shadow::begin`.
/// Source: PRG-184.
[[nodiscard]] constexpr auto begin_shadow(guest_pt& guest, shadow& shadow,
                                          cpu::capabilities const& host_caps,
                                          shadow_page const* pages, size_t page_count) noexcept
    -> rule {
    rule const broken = shadow.begin(host_caps, guest.caps, guest.msrs, pages, page_count);
    guest.shadow = broken == rule::none ? shadow_use::begun : shadow_use::needed;
    return broken;
}

/// `enter` with the shadow that was begun for the guest, or that continues where the last exit was.
///
/// Errors: those of `enter`; `needs_shadow` if the guest traces and needs a shadow, or the one that
///         was begun is not complete.
template <msr_port Msrs>
constexpr auto enter(guest_pt& guest, shadow const& shadow, controls const& set, host_pt& host,
                     Msrs& msrs) noexcept -> entry_state {
    host = {};
    bool const is_shadowed = guest.current_output() == guest_output::shadow;
    bool const is_placed = !guest.needs_shadow() && (!is_shadowed || shadow.is_complete());
    auto const allowed = detail::check_of_entry(guest, set, is_placed);
    if (!allowed) { return allowed; }
    if (is_shadowed && guest.trace_en() && guest.shadow == shadow_use::begun) {
        auto const wanted = shadow.host();
        guest.host_output = wanted.at;
        guest.host_topa = wanted.topa;
    }
    return detail::exchange(guest, host, msrs);
}

/// The result of `leave` with a shadow.
struct [[nodiscard]] shadow_exit : driver::procedure_result {
    bool is_placed = true;  ///< false: the processor's position is not in the shadow

    constexpr explicit operator bool() const noexcept { return !fault.happened && is_placed; }
};

/// `leave`, and the guest's position from that of the processor.
///
/// Errors: those of `leave`; `is_placed`.
template <msr_port Msrs>
constexpr auto leave(guest_pt& guest, shadow const& shadow, host_pt& host, Msrs& msrs) noexcept
    -> shadow_exit {
    bool const was_loaded = host.is_loaded;
    auto const failed = detail::take_guest(guest, host, msrs);
    shadow_exit result{cancel(guest, host, msrs)};
    if (failed.happened) { result.fault = failed; }
    if (!was_loaded || failed.happened || guest.current_output() != guest_output::shadow) {
        return result;
    }
    auto const found = shadow.to_guest(guest.host_output);
    result.is_placed = found.found;
    if (found) { guest.msrs.output = found.at; }
    return result;
}

// ------------------------------------------------------------------------------------ PMI

/// Whether a ToPA PMI is pending.
struct [[nodiscard]] topa_pmi : driver::procedure_result {
    bool is_pending = false;
};

/// Reads whether a ToPA PMI was raised and not handled: Trace_ToPA_PMI of IA32_PERF_GLOBAL_STATUS.
///
/// Errors: the access that faulted.
/// Source: PRG-177.
template <msr_port Msrs>
constexpr auto find_topa_pmi(Msrs& msrs) noexcept -> topa_pmi {
    using global_status = reg::ia32_perf_global_status;
    driver::msr_sequence sequence{msrs};
    auto const status = sequence.template read<global_status>();
    return {{sequence.fault()}, sequence && status.template get<global_status::Trace_ToPA_PMI>()};
}

/// Takes a ToPA PMI that the guest's output raised from the processor: `is_pending` if there was
/// one. Call it after each VM exit, before `leave`, so that an interrupt which arrives together
/// with another exit is not lost. If `enter` loaded no MSRs of the guest, because the guest does
/// not trace, or if the guest has no ToPA output, nothing is read: the interrupt is the host's.
///
/// A handler of the host that runs between VM exit and this call, as for an NMI, must leave the
/// interrupt alone while `host_pt::is_loaded`; where it masked the LVT entry, unmask it.
///
/// Errors: the access that faulted.
/// Source: SDM vol. 3, "ToPA PMI"; PRG-177, REG-204.
template <msr_port Msrs>
constexpr auto take_topa_pmi(guest_pt& guest, host_pt const& host, Msrs& msrs) noexcept
    -> topa_pmi {
    using status = reg::ia32_perf_global_status;
    using reset = reg::ia32_perf_global_status_reset;
    if (!host.is_loaded || !detail::has_topa(guest)) { return {}; }
    auto result = find_topa_pmi(msrs);
    if (!result.is_pending) { return result; }
    driver::msr_sequence sequence{msrs};
    sequence.write(reset{}.with(reset::Trace_ToPA_PMI{true}));
    result.fault = sequence.fault();
    guest.msrs.perf_global_status = guest.msrs.perf_global_status.with(
        status::Trace_ToPA_PMI{true});
    guest.pmi_pending = true;
    return result;
}

}  // namespace ptspec::vmx
