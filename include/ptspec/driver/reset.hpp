// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/ring_reader.hpp>

/// The last trace before a reset or a sleep state.
namespace ptspec::driver {

/// What a reset left.
struct [[nodiscard]] reset_trace : stopped_trace {
    bool is_preserved = false;  ///< the MSRs have their values from before the reset
};

/// Reads the MSRs after a warm reset: where the last trace ended, if the processor preserves them.
/// The bytes in its internal buffer are lost. STATUS must be written before tracing is enabled.
///
/// Errors: the access that faulted. `enabled` if TraceEn is 1: another agent enabled it since.
/// Source: SDM vol. 3, "Warm Reset"; PRG-070, PRG-071, PRG-260.
template <msr_port Msrs>
constexpr auto after_warm_reset(Msrs& msrs, cpu::capabilities const& caps) noexcept -> reset_trace {
    msr_sequence sequence{msrs};
    reset_trace result;
    result.ctl = sequence.template read<ia32_rtit_ctl>();
    result.fault = sequence.fault();
    if (!sequence) { return result; }
    result.trace = trace_state_of(result.ctl);
    if (result.trace == trace_state::enabled) { return result; }
    result.is_preserved = caps.has_ip_filtering();
    if (caps.has_output_msrs()) { detail::read_status_and_output(sequence, result); }
    return result;
}

/// The trace that memory still has after a cold reset.
struct [[nodiscard]] cold_reset_trace : procedure_result {
    ring_part part{};  ///< from the start of the ring to its last byte that is not 0
};

/// Finds the last trace after a cold reset, or a sleep state such as S3 with the same effect: all
/// MSRs are 0, and the position is lost. If memory kept its contents, and the ring was 0 when
/// tracing began and has not wrapped, the trace ends after the last byte that is not 0, or after
/// PADs. In a ring that wrapped, decoding can begin at each PSB.
///
/// Program every MSR again with `restore` or `enable`, also those that the driver remembers as
/// written.
///
/// Errors: the access that faulted. `enabled` if TraceEn is 1: another agent enabled it since.
///         Memory that cannot be read counts as 0.
/// Source: PRG-030, PRG-070, PRG-140, PRG-260.
template <msr_port Msrs, memory_port Memory>
constexpr auto after_cold_reset(Msrs& msrs, ring const& in, Memory& memory) noexcept
    -> cold_reset_trace {
    cold_reset_trace result;
    msr_sequence sequence{msrs};
    auto const ctl = sequence.template read<ia32_rtit_ctl>();
    result.fault = sequence.fault();
    if (!sequence) { return result; }
    result.trace = trace_state_of(ctl);
    if (result.trace == trace_state::enabled) { return result; }
    result.part = part_in_memory(in, memory);
    return result;
}

}  // namespace ptspec::driver
