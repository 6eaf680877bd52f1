// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/enable.hpp>
#include <ptspec/engine/output/explain.hpp>

/// Why tracing ended, and what to do before it is enabled again.
namespace ptspec::driver {

enum class end_reason : uint8_t {
    none,                ///< neither Error nor Stopped is set
    trace_stop,          ///< a branch into a TraceStop range
    topa_stop,           ///< a region with STOP is full
    trace_stop_or_topa,  ///< Stopped is set; the tables were not read
    operational_error,   ///< Error is set: the end of the trace may be lost
    set_by_software,     ///< nothing explains the bit: software set it, or repaired the cause
};

/// Why tracing ended.
struct end_of_trace {
    end_reason reason = end_reason::none;
    engine::explanation explanation{};  ///< the rule, the entry and the field, if they are known

    /// STATUS to write before enabling: Error and Stopped are 0, PacketByteCnt is kept.
    ia32_rtit_status status{};
    /// The output MSRs must change before enabling, or an operational error follows. Source:
    /// PRG-041, PRG-086.
    bool needs_new_position = false;
    /// A table or the value of an MSR must be repaired before enabling.
    bool needs_repair = false;
};

namespace detail {

[[nodiscard]] constexpr auto without_end_bits(ia32_rtit_status status) noexcept
    -> ia32_rtit_status {
    return status.with(ia32_rtit_status::Error{false}, ia32_rtit_status::Stopped{false});
}

[[nodiscard]] constexpr auto state_of(stopped_trace const& stopped) noexcept -> access::msr_state {
    return {.ctl = stopped.ctl, .status = stopped.status, .output = stopped.output};
}

}  // namespace detail

/// Why tracing ended, from the MSRs after `disable` alone. ToPA STOP and TraceStop look the same.
///
/// Source: SDM vol. 3, "Disabling Packet Generation"; PRG-041, PRG-042.
[[nodiscard]] constexpr auto triage(stopped_trace const& stopped) noexcept -> end_of_trace {
    using status = ia32_rtit_status;
    end_of_trace result{.status = detail::without_end_bits(stopped.status)};
    if (stopped.status.get<status::Error>()) {
        result.reason = end_reason::operational_error;
        result.needs_repair = true;
    } else if (stopped.status.get<status::Stopped>()) {
        bool const is_topa = detail::uses_output_msrs(stopped.ctl) &&
                             stopped.ctl.get<ia32_rtit_ctl::ToPA>();
        bool const ranges = access::has_trace_stop(detail::state_of(stopped));
        result.reason = is_topa && ranges ? end_reason::trace_stop_or_topa
                        : is_topa         ? end_reason::topa_stop
                        : ranges          ? end_reason::trace_stop
                                          : end_reason::set_by_software;
        result.needs_new_position = is_topa;
    }
    return result;
}

/// The same with the tables, which must not have changed since.
///
/// Errors: `explanation.fault` if a table could not be read; the reason is then as without tables.
/// Source: PRG-041, PRG-086, PRG-088; as `engine::explain`.
template <memory_port Memory>
[[nodiscard]] constexpr auto triage(stopped_trace const& stopped, cpu::capabilities const& caps,
                                    Memory& memory,
                                    engine::output_options const& options = {}) noexcept
    -> end_of_trace {
    end_of_trace result = triage(stopped);
    if (result.reason == end_reason::none) { return result; }
    result.explanation = engine::explain(caps, detail::state_of(stopped), memory, options);
    if (result.explanation.fault.happened) { return result; }
    result.needs_new_position = false;
    switch (result.explanation.ended_by) {
        case rule::OUT_080:
            result.reason = end_reason::topa_stop;
            result.needs_new_position = true;
            break;
        case rule::REG_068: result.reason = end_reason::trace_stop; break;
        case rule::REG_053:
            result.reason = end_reason::set_by_software;
            result.needs_repair = false;
            break;
        case rule::OUT_024:
        case rule::OUT_064:
            result.needs_new_position = true;
            result.needs_repair = false;
            break;
        default: break;
    }
    return result;
}

/// Continues after a TraceStop: clears TraceEn, reads STATUS and the position, clears Stopped, and
/// sets TraceEn again at the same position. With Error set TraceEn stays 0, and STATUS is not
/// written.
///
/// Do not use it after ToPA STOP: the position must change, see `restart`.
/// Errors: the access that faulted. `still_tracing` if TraceEn could not be cleared.
/// Source: SDM vol. 3, "Disabling Packet Generation"; PRG-020, PRG-041, PRG-042, PRG-061.
template <msr_port Msrs>
constexpr auto recover(Msrs& msrs, ia32_rtit_ctl written) noexcept -> stopped_trace {
    msr_sequence sequence{msrs};
    stopped_trace result;
    result.ctl = written;
    result.trace = detail::clear_trace_en(sequence, written);
    detail::read_status_and_output(sequence, result);
    if (sequence && !result.status.get<ia32_rtit_status::Error>()) {
        (void)sequence.write(detail::without_end_bits(result.status));
        if (sequence && written.get<ia32_rtit_ctl::TraceEn>()) {
            result.trace = detail::set_trace_en(sequence, written);
        }
    }
    result.fault = sequence.fault();
    return result;
}

}  // namespace ptspec::driver
