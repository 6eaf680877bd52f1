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
    output_buffer output{};
    ring_reader* reader = nullptr;  ///< is told of the new position

    /// The trace continues at `output`.
    constexpr void tell_reader() const noexcept {
        if (has_new_output && reader != nullptr) { reader->restarted(); }
    }
};

/// How a handler handled a PMI.
enum class pmi_outcome : uint8_t {
    not_topa,  ///< another source of the PMI: no MSR of Intel PT was accessed
    deferred,  ///< TraceEn is 0: the PMI belongs to a context that was switched out
    handled,
};

/// The result of `on_topa_pmi`.
struct [[nodiscard]] pmi_result : stopped_trace {
    pmi_outcome outcome = pmi_outcome::not_topa;
    pmi_decision next{.resume = false};  ///< of `drain`; for `continue_after` if an access faulted
};

/// Handles a PMI: finds out whether it is a ToPA PMI, clears TraceEn, calls
/// `drain(stopped_trace const&)`, which reads the trace and returns a `pmi_decision`, acknowledges
/// the PMI, calls `unmask_lvt()`, and sets TraceEn again.
///
/// PMIs may merge: `drain` compares positions, and never counts interrupts. Stopped and, with PMI
/// preservation, PendToPAPMI are cleared; Error is not, and ends tracing.
///
/// Errors: the access that faulted. If it is the one that clears TraceEn, `still_tracing`, and
///         `drain` is not called. After any fault the LVT is still unmasked, so that PMIs of others
///         are not lost, and TraceEn is not set again. Then the output MSRs may have half of a new
///         position: if the PMI is `handled`, do not read it, but continue at the position of
///         `next`, with `continue_after(result.next, plan)` and `restore`. If it is `deferred`,
///         nothing was read: call `disable`, `drain` and `continue_after` before `restore`.
/// Source: SDM vol. 3, "ToPA PMI", "PMI Preservation"; PRG-087, PRG-115, PRG-120..126, OUT-084,
///         OUT-087.
template <msr_port Msrs, class Drain, class UnmaskLvt>
constexpr auto on_topa_pmi(Msrs& msrs, Drain&& drain, UnmaskLvt&& unmask_lvt) noexcept
    -> pmi_result {
    using global_status = reg::ia32_perf_global_status;
    using acknowledge = reg::ia32_perf_global_status_reset;
    using status = ia32_rtit_status;
    detail::msr_sequence on{msrs};
    pmi_result result;
    global_status const causes = on.template read<global_status>();
    result.failed = on.failed();
    if (!on || !causes.template get<global_status::Trace_ToPA_PMI>()) {
        if (!on) { unmask_lvt(); }
        return result;
    }
    result.outcome = pmi_outcome::deferred;
    result.ctl = on.template read<ia32_rtit_ctl>();
    bool const was_on = result.ctl.template get<ia32_rtit_ctl::TraceEn>();
    auto& next = result.next;
    if (on && was_on) {
        result.trace = detail::clear_trace_en(on, result.ctl);
        detail::read_status_and_output(on, result);
        if (on) {
            next = drain(static_cast<stopped_trace const&>(result));
            result.outcome = pmi_outcome::handled;
            auto const after = result.status.template get<status::Error>()
                                   ? result.status
                                   : detail::without_end_bits(result.status);
            auto const settled = after.with(status::PendToPAPMI{false});
            if (settled != result.status) { (void)on.write(settled); }
            if (next.has_new_output) {
                (void)on.write(next.output.base);
                (void)on.write(next.output.mask_ptrs);
                if (on) { next.tell_reader(); }
            }
        }
    } else if (on) {
        result.trace = trace_state::disabled;
    }
    (void)on.write(acknowledge{}.with(acknowledge::Trace_ToPA_PMI{true}));
    unmask_lvt();
    if (on && was_on && next.resume && !result.status.template get<status::Error>()) {
        result.trace = detail::set_trace_en(on, result.ctl);
    }
    result.failed = on.failed();
    return result;
}

}  // namespace ptspec::driver
