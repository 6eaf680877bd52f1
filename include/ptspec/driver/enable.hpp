// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/driver/plan.hpp>
#include <ptspec/base/attribute.hpp>

/// Enabling and disabling packet generation.
///
/// A PMI may interrupt any procedure, unless the caller blocks PMIs. While TraceEn is 0, the
/// handler (`on_topa_pmi`) neither reads nor changes the trace, so PMIs need not be blocked. But
/// the PMI is then lost. The procedures that set TraceEn again therefore return the position at
/// which it was 0: `wake_up_is_due` finds in it that a PMI was due, and `read_out` does the work of
/// the handler.
///
/// While TraceEn is 1, the handler drains the ring. Block PMIs where a position must stay the
/// newest, for example from `flush` until its position is drained.
///
/// Other logical processors see the trace after a store fence: `disable`, `flush` and `save`
/// execute one, because afterwards another processor may read the trace or continue it. In the
/// other procedures only this processor reads the trace, in their callbacks. It sees the trace
/// without a fence; stores by which it hands the trace to another processor are ordered after the
/// trace.
///
/// Source: PRG-062, PRG-063, PRG-121, PRG-122.
namespace ptspec::driver {

// ------------------------------------------------------------------------------------ enabling

namespace detail {

/// The MSRs other than IA32_RTIT_CTL that a procedure writes or reads, of those that are used.
enum class msr_choice : uint8_t {
    all,
    not_in_xsave_area,  ///< those that XSAVES does not save
};

constexpr auto is_chosen(msr_choice choice, ia32_rtit_ctl ctl, access::pt_msr const& msr) noexcept
    -> bool {
    bool const is_other = msr.index != ia32_rtit_ctl::address;
    return is_other && access::is_used(ctl, msr) && (choice == msr_choice::all || !msr.is_saved);
}

/// Writes the chosen MSRs of a state.
///
/// noinline: four procedures share it. Inlined, a driver has 0.6 KB more (g++ 12).
template <class Sequence>
PTSPEC_ATTRIBUTE(noinline)
constexpr void program(Sequence& sequence, access::msr_state const& state,
                       msr_choice choice = msr_choice::all) noexcept {
    for (access::pt_msr const& msr : access::pt_msrs) {
        if (is_chosen(choice, state.ctl, msr)) {
            (void)sequence.write(msr.index, access::value_of(state, msr.index));
        }
    }
}

template <class Sequence>
constexpr auto set_trace_en(Sequence& sequence, ia32_rtit_ctl ctl) noexcept -> trace_state {
    return sequence.write(ctl.with(ia32_rtit_ctl::TraceEn{true})) ? trace_state::enabled
                                                                  : trace_state::disabled;
}
/// Clears TraceEn. `still_tracing` if the write faulted and TraceEn is 1 in `ctl`.
template <class Sequence>
constexpr auto clear_trace_en(Sequence& sequence, ia32_rtit_ctl ctl) noexcept -> trace_state {
    auto const off = ctl.with(ia32_rtit_ctl::TraceEn{false});
    if (sequence.write(off)) { return trace_state::disabled; }
    return ctl.get<ia32_rtit_ctl::TraceEn>() ? trace_state::still_tracing : trace_state::disabled;
}

}  // namespace detail

/// Enables packet generation: writes STATUS, the output MSRs and the filters that the plan uses,
/// and IA32_RTIT_CTL last. TraceEn must be 0.
///
/// Errors: the access that faulted; TraceEn is then 0, and MSRs before it are written.
/// Source: SDM vol. 3, "Enabling and Configuration of Packet Generation"; PRG-030..032, PRG-035.
template <msr_port Msrs>
constexpr auto enable(Msrs& msrs, access::msr_state const& plan) noexcept -> procedure_result {
    msr_sequence sequence{msrs};
    detail::program(sequence, plan);
    if (!sequence) { return {sequence.fault(), trace_state::disabled}; }
    trace_state const state = detail::set_trace_en(sequence, plan.ctl);
    return {sequence.fault(), state};
}

/// The MSRs some time after enabling.
struct [[nodiscard]] enable_check : procedure_result {
    ia32_rtit_ctl ctl{};        ///< as read
    ia32_rtit_status status{};  ///< transient while TraceEn is 1
    bool is_ours = false;       ///< IA32_RTIT_CTL has the value that was written

    /// True if tracing runs as programmed. An operational error may be signaled later.
    constexpr explicit operator bool() const noexcept {
        return !fault.happened && is_ours && !status.get<ia32_rtit_status::Error>();
    }
};

/// Reads back IA32_RTIT_CTL, to detect another agent that programs the trace unit, and
/// IA32_RTIT_STATUS, to detect an operational error of the configuration.
///
/// Source: PRG-033, PRG-034, PRG-261.
template <msr_port Msrs>
constexpr auto check_enabled(Msrs& msrs, access::msr_state const& plan) noexcept -> enable_check {
    msr_sequence sequence{msrs};
    enable_check result;
    result.ctl = sequence.template read<ia32_rtit_ctl>();
    result.status = sequence.template read<ia32_rtit_status>();
    result.fault = sequence.fault();
    result.is_ours = sequence && result.ctl == plan.ctl.with(ia32_rtit_ctl::TraceEn{true});
    if (sequence) { result.trace = trace_state_of(result.ctl); }
    return result;
}

// ------------------------------------------------------------------------------------ disabling

/// The MSRs after TraceEn was cleared.
struct [[nodiscard]] stopped_trace : procedure_result {
    ia32_rtit_ctl ctl{};  ///< before TraceEn was cleared
    ia32_rtit_status status{};
    output_registers output{};  ///< where the trace ends; not read for a fabric
};

namespace detail {

template <class Sequence>
constexpr void read_output(Sequence& sequence, stopped_trace& stopped) noexcept {
    if (uses_output_msrs(stopped.ctl)) {
        stopped.output.base = sequence.template read<ia32_rtit_output_base>();
        stopped.output.mask_ptrs = sequence.template read<ia32_rtit_output_mask_ptrs>();
    }
    stopped.fault = sequence.fault();
}
template <class Sequence>
constexpr void read_status_and_output(Sequence& sequence, stopped_trace& stopped) noexcept {
    stopped.status = sequence.template read<ia32_rtit_status>();
    read_output(sequence, stopped);
}

template <class Sequence>
constexpr auto disable(Sequence& sequence, stopped_trace result) noexcept -> stopped_trace {
    result.trace = clear_trace_en(sequence, result.ctl);
    sequence.fence();
    read_status_and_output(sequence, result);
    return result;
}

/// True if tracing ended by itself: it does not continue until software changes something.
[[nodiscard]] constexpr auto has_ended(ia32_rtit_status status) noexcept -> bool {
    return status.get<ia32_rtit_status::Stopped>() || status.get<ia32_rtit_status::Error>();
}

/// Sets TraceEn after `stopped` was read, unless it was 0 or tracing ended.
template <class Sequence>
constexpr void set_trace_en_again(Sequence& sequence, stopped_trace& stopped) noexcept {
    if (sequence && !has_ended(stopped.status) &&
        stopped.ctl.template get<ia32_rtit_ctl::TraceEn>()) {
        stopped.trace = set_trace_en(sequence, stopped.ctl);
    }
    stopped.fault = sequence.fault();
}

}  // namespace detail

/// Disables packet generation: reads IA32_RTIT_CTL, clears TraceEn, which writes all packets to
/// memory, orders these stores before later ones, and reads where the trace ends. Call it also when
/// Stopped or Error is set, which do not write all packets.
///
/// Errors: the access that faulted. `unknown` if IA32_RTIT_CTL could not be read, `still_tracing`
///         if it could not be written.
/// Source: SDM vol. 3, "Disabling Packet Generation", "Flushing Trace Output"; PRG-040, PRG-043,
///         PRG-060..063.
template <fenced_msr_port Msrs>
constexpr auto disable(Msrs& msrs) noexcept -> stopped_trace {
    msr_sequence sequence{msrs};
    stopped_trace result;
    result.ctl = sequence.template read<ia32_rtit_ctl>();
    result.fault = sequence.fault();
    return sequence ? detail::disable(sequence, result) : result;
}
/// The same for the owner, who knows what it wrote to IA32_RTIT_CTL and does not read it.
template <fenced_msr_port Msrs>
constexpr auto disable(Msrs& msrs, ia32_rtit_ctl written) noexcept -> stopped_trace {
    msr_sequence sequence{msrs};
    stopped_trace result;
    result.ctl = written;
    return detail::disable(sequence, result);
}

/// Writes all packets to memory and continues: disables as `disable`, and sets TraceEn again
/// without other changes. The result is that of `disable`; `enabled` if tracing continues. Tracing
/// that ended by Stopped or Error is not continued: TraceEn stays 0.
///
/// Errors: as `disable`; an access after TraceEn was cleared that faults leaves it 0.
/// Source: SDM vol. 3, "Flushing Trace Output"; PRG-060..063, PRG-086.
template <fenced_msr_port Msrs>
constexpr auto flush(Msrs& msrs, ia32_rtit_ctl written) noexcept -> stopped_trace {
    msr_sequence sequence{msrs};
    stopped_trace result;
    result.ctl = written;
    result = detail::disable(sequence, result);
    detail::set_trace_en_again(sequence, result);
    return result;
}

// ------------------------------------------------------------------------------------ changes

/// Clears TraceEn and programs everything again, for example after STOP ended a full buffer. The
/// trace up to here is given up unless it was read: its position, and a wake-up for it, are lost.
/// A ring that was drained continues where `continue_after` puts the plan; one that begins again
/// needs a new `ring_reader`.
///
/// Errors: as `disable` and `enable`.
/// Source: PRG-041, PRG-086.
template <msr_port Msrs>
constexpr auto restart(Msrs& msrs, access::msr_state const& plan) noexcept -> stopped_trace {
    msr_sequence sequence{msrs};
    stopped_trace result;
    result.ctl = plan.ctl;
    result.trace = detail::clear_trace_en(sequence, plan.ctl.with(ia32_rtit_ctl::TraceEn{true}));
    result.status = sequence.template read<ia32_rtit_status>();
    detail::program(sequence, plan);
    if (sequence) { result.trace = detail::set_trace_en(sequence, plan.ctl); }
    result.fault = sequence.fault();
    return result;
}

/// Calls `edit()` while TraceEn is 0, and sets it again: the trace unit may cache entries of ToPA
/// tables while it is 1. The position does not change. The result is as that of `flush`: tracing
/// that ended by Stopped or Error is not continued.
///
/// Errors: the access that faulted. `edit` is not called if TraceEn could not be cleared, or the
///         position could not be read.
/// Source: PRG-086, PRG-091, PRG-124, OUT-072.
template <msr_port Msrs, class Edit>
constexpr auto while_disabled(Msrs& msrs, ia32_rtit_ctl written, Edit&& edit) noexcept
    -> stopped_trace {
    msr_sequence sequence{msrs};
    stopped_trace result;
    result.ctl = written;
    result.trace = detail::clear_trace_en(sequence, written);
    detail::read_status_and_output(sequence, result);
    if (sequence) { edit(); }
    detail::set_trace_en_again(sequence, result);
    return result;
}

}  // namespace ptspec::driver

#undef PTSPEC_ATTRIBUTE
