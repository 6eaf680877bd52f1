// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/enable.hpp>

/// Pausing a trace.
namespace ptspec::driver {

/// Clears TraceEn and changes nothing else: PacketByteCnt and the position are kept. No store fence
/// is executed, so other logical processors may not see the whole trace yet: see `disable`.
///
/// Errors: the fault of the write; then `trace` is `still_tracing` if TraceEn is 1 in `written`.
/// Source: PRG-043.
template <msr_port Msrs>
constexpr auto pause(Msrs& msrs, ia32_rtit_ctl written) noexcept -> procedure_result {
    msr_sequence sequence{msrs};
    trace_state const state = detail::clear_trace_en(sequence, written);
    return {sequence.fault(), state};
}

/// Sets TraceEn after `pause`. If Stopped or Error is 1, TraceEn is not written, and `status` of
/// the result shows the reason; nor if TriggerEn is 1, since tracing runs already. `output` of the
/// result is the position before TraceEn was set, if it was read; `ctl` is what was to be written.
///
/// Errors: the fault of the first access that failed.
///
/// Source: PRG-031, PRG-041, PRG-102.
template <msr_port Msrs>
constexpr auto resume(Msrs& msrs, ia32_rtit_ctl written) noexcept -> stopped_trace {
    using status = ia32_rtit_status;
    msr_sequence sequence{msrs};
    stopped_trace result;
    result.ctl = written.with(ia32_rtit_ctl::TraceEn{true});
    result.trace = trace_state::disabled;
    result.status = sequence.template read<status>();
    if (result.status.get<status::TriggerEn>()) {
        result.trace = trace_state::enabled;
        return result;
    }
    detail::read_output(sequence, result);
    detail::set_trace_en_again(sequence, result);
    return result;
}

}  // namespace ptspec::driver
