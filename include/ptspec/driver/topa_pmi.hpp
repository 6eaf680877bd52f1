// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/ring_reader.hpp>
#include <ptspec/driver/triage.hpp>
#include <ptspec/reg/perf.hpp>

/// The handler of a ToPA PMI.
namespace ptspec::driver {

/// What a PMI handler does after it read the trace.
struct pmi_decision {
    bool resume = true;           ///< set TraceEn again, if it was 1
    bool has_new_output = false;  ///< continue at `output`, not where the trace ended
    output_registers output{};
    ring_reader* reader = nullptr;  ///< its `restarted()` is called

    /// Tells the reader that the trace continues at `output`.
    constexpr void tell_reader() const noexcept {
        if (has_new_output && reader != nullptr) { reader->restarted(); }
    }
};

/// How a handler handled a PMI.
enum class pmi_outcome : uint8_t {
    not_topa,  ///< another source of the PMI: no MSR of Intel PT was accessed
    deferred,  ///< TraceEn is 0: nothing was read, see `on_topa_pmi`
    handled,
};

/// The result of `on_topa_pmi` and of `read_out`.
struct [[nodiscard]] pmi_result : stopped_trace {
    pmi_outcome outcome = pmi_outcome::not_topa;
    pmi_decision next{.resume = false};  ///< of `drain`; for `continue_after` if an access faulted
};

namespace detail {

/// Clears TraceEn, lets `drain` read the trace, and writes STATUS and the position.
template <class Sequence, class Drain>
constexpr void stop_and_drain(Sequence& sequence, pmi_result& result, Drain&& drain) noexcept {
    using status = ia32_rtit_status;
    result.outcome = pmi_outcome::deferred;
    result.trace = clear_trace_en(sequence, result.ctl);
    read_status_and_output(sequence, result);
    if (!sequence) { return; }
    result.next = drain(static_cast<stopped_trace const&>(result));
    result.outcome = pmi_outcome::handled;
    auto const after = result.status.template get<status::Error>()
                           ? result.status
                           : without_end_bits(result.status);
    auto const settled = after.with(status::PendToPAPMI{false});
    if (settled != result.status) { (void)sequence.write(settled); }
    if (result.next.has_new_output) {
        (void)sequence.write(result.next.output.base);
        (void)sequence.write(result.next.output.mask_ptrs);
        if (sequence) { result.next.tell_reader(); }
    }
}
template <class Sequence>
constexpr void resume_after_drain(Sequence& sequence, pmi_result& result) noexcept {
    bool const resumes = result.next.resume && result.ctl.template get<ia32_rtit_ctl::TraceEn>() &&
                         !result.status.template get<ia32_rtit_status::Error>();
    if (sequence && resumes) { result.trace = set_trace_en(sequence, result.ctl); }
    result.fault = sequence.fault();
}

}  // namespace detail

/// What follows a handler in which an access faulted.
enum class pmi_recovery : uint8_t {
    /// Nothing: no access faulted, `drain` or Error ended tracing, or TraceEn was 0. A procedure
    /// that was interrupted sets TraceEn itself; a context that was switched out is restored later.
    none,
    retry,     ///< nothing was changed, and it is not known whether TraceEn is 1: handle it again
    read_out,  ///< nothing was read: `disable`, `drain` and `continue_after`, then `restore`
    /// The trace was read. The output MSRs may have half of a new position: do not read them, but
    /// call `continue_after(result.next, plan)`, then `restore`.
    restore,
};

/// What follows `on_topa_pmi` or `read_out`, by the outcome, IA32_RTIT_CTL and the next position.
///
/// Source: PRG-122..125.
[[nodiscard]] constexpr auto recovery_of(pmi_result const& result) noexcept -> pmi_recovery {
    if (!result.fault.happened) { return pmi_recovery::none; }
    if (result.outcome == pmi_outcome::not_topa || result.trace == trace_state::unknown) {
        return pmi_recovery::retry;
    }
    if (!result.ctl.get<ia32_rtit_ctl::TraceEn>()) { return pmi_recovery::none; }
    if (result.outcome == pmi_outcome::deferred) { return pmi_recovery::read_out; }
    bool const resumes = result.next.resume && !result.status.get<ia32_rtit_status::Error>();
    return resumes ? pmi_recovery::restore : pmi_recovery::none;
}

/// Reads out a trace without a PMI: clears TraceEn, calls `drain(stopped_trace const&)`, which
/// reads the trace and returns a `pmi_decision`, and sets TraceEn again. For a wake-up whose PMI
/// came while TraceEn was 0 (see `wake_up_is_due`), and for a reader that does not wait for PMIs.
///
/// Stopped and PendToPAPMI are cleared; Error is not, and ends tracing.
///
/// Errors: as `on_topa_pmi`.
/// Source: PRG-041, PRG-086, PRG-121..125.
template <msr_port Msrs, class Drain>
constexpr auto read_out(Msrs& msrs, ia32_rtit_ctl written, Drain&& drain) noexcept -> pmi_result {
    msr_sequence sequence{msrs};
    pmi_result result;
    result.ctl = written;
    detail::stop_and_drain(sequence, result, drain);
    detail::resume_after_drain(sequence, result);
    return result;
}

/// Handles a PMI: finds out whether it is a ToPA PMI, clears TraceEn, calls
/// `drain(stopped_trace const&)`, which reads the trace and returns a `pmi_decision`, acknowledges
/// the PMI, calls `unmask_lvt()`, and sets TraceEn again.
///
/// PMIs may merge: `drain` compares positions, and never counts interrupts. Stopped and, with PMI
/// preservation, PendToPAPMI are cleared; Error is not, and ends tracing.
///
/// While TraceEn is 0 the PMI is `deferred`: it belongs to a context that was switched out, or came
/// inside a procedure of this driver. It is acknowledged, and nothing else is read or changed. With
/// PMI preservation enabling the trace raises it again. Without it, the owner of the trace finds
/// the wake-up in the position: see `wake_up_is_due`.
///
/// Errors: the access that faulted. If it is the one that clears TraceEn, `still_tracing`, and
///         `drain` is not called. After any fault the LVT is still unmasked, so that PMIs of others
///         are not lost, and TraceEn is not set again: `recovery_of(result)` is what to do then.
/// Source: SDM vol. 3, "ToPA PMI", "PMI Preservation"; PRG-087, PRG-115, PRG-120..126, OUT-084,
///         OUT-087.
template <msr_port Msrs, class Drain, class UnmaskLvt>
constexpr auto on_topa_pmi(Msrs& msrs, Drain&& drain, UnmaskLvt&& unmask_lvt) noexcept
    -> pmi_result {
    using global_status = reg::ia32_perf_global_status;
    using acknowledge = reg::ia32_perf_global_status_reset;
    msr_sequence sequence{msrs};
    pmi_result result;
    global_status const causes = sequence.template read<global_status>();
    result.fault = sequence.fault();
    if (!sequence || !causes.template get<global_status::Trace_ToPA_PMI>()) {
        if (!sequence) { unmask_lvt(); }
        return result;
    }
    result.outcome = pmi_outcome::deferred;
    result.ctl = sequence.template read<ia32_rtit_ctl>();
    if (sequence) {
        result.trace = trace_state_of(result.ctl);
        if (result.trace == trace_state::enabled) {
            detail::stop_and_drain(sequence, result, drain);
        }
    }
    (void)sequence.write(acknowledge{}.with(acknowledge::Trace_ToPA_PMI{true}));
    unmask_lvt();
    detail::resume_after_drain(sequence, result);
    return result;
}

}  // namespace ptspec::driver
