// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/lbr.hpp>
#include <ptspec/driver/enable.hpp>
#include <ptspec/topa/validate.hpp>

/// Pausing a trace, and what to check before enabling one.
namespace ptspec::driver {

/// Clears TraceEn and changes nothing else: PacketByteCnt and the position are kept. The trace is
/// not ordered for other logical processors: see `disable`.
///
/// Errors: `still_tracing` if the write faulted.
/// Source: PRG-043.
template <msr_port Msrs>
constexpr auto pause(Msrs& msrs, ia32_rtit_ctl written) noexcept -> procedure_result {
    detail::msr_sequence on{msrs};
    trace_state const state = detail::clear_trace_en(on, written);
    return {on.failed(), state};
}

/// The result of `resume`.
struct [[nodiscard]] resumed_trace : procedure_result {
    ia32_rtit_status status{};
};

/// Sets TraceEn after `pause`, unless tracing runs, or ended by Stopped or Error meanwhile: then
/// TraceEn is not written, and `status` shows why.
///
/// Source: PRG-031, PRG-041, PRG-102.
template <msr_port Msrs>
constexpr auto resume(Msrs& msrs, ia32_rtit_ctl written) noexcept -> resumed_trace {
    using status = ia32_rtit_status;
    detail::msr_sequence on{msrs};
    resumed_trace result;
    result.trace = trace_state::disabled;
    result.status = on.template read<status>();
    if (result.status.get<status::TriggerEn>()) {
        result.trace = trace_state::enabled;
    } else if (on && !result.status.get<status::Error>() && !result.status.get<status::Stopped>()) {
        result.trace = detail::set_trace_en(on, written);
    }
    result.failed = on.failed();
    return result;
}

/// The conflict of a trace with branch records.
struct [[nodiscard]] lbr_conflict : procedure_result {
    bool excludes = false;  ///< this processor does not record both
    bool records = false;   ///< LBR, BTS or branch trace messages are enabled now

    /// True if both would be enabled where they exclude each other.
    constexpr explicit operator bool() const noexcept { return excludes && records; }
};

/// Checks for branch records that a trace would suspend and clear. On processors where both exist
/// IA32_DEBUGCTL is not read.
///
/// Source: SDM vol. 3, "Interaction of Intel Processor Trace and LBR"; PRG-150..152, PRG-044.
template <msr_port Msrs>
constexpr auto lbr_guard(Msrs& msrs, cpu::capabilities const& caps) noexcept -> lbr_conflict {
    using debugctl = reg::ia32_debugctl;
    lbr_conflict result;
    result.excludes = access::excludes_lbr(caps.leaf_01_eax);
    if (!result.excludes) { return result; }
    detail::msr_sequence from{msrs};
    debugctl const now = from.template read<debugctl>();
    result.failed = from.failed();
    result.records = now.get<debugctl::LBR>() || now.get<debugctl::BTS>() ||
                     now.get<debugctl::TR>();
    return result;
}

/// The rule by which memory is unsuitable for trace or for a table of `bytes` bytes: OUT-111 it
/// overlaps restricted memory, OUT-113 the page of the local APIC, for which the processor signals
/// no error. Disable tracing before the SMRRs or the APIC base change.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; PRG-095..097, OUT-110..114.
[[nodiscard]] constexpr auto restricted_check(topa::output_hazards const& hazards, uint64_t base,
                                              uint64_t bytes) noexcept -> rule {
    if (bytes == 0) { return rule::none; }
    if (hazards.restricted.touches(base, bytes)) { return rule::OUT_111; }
    return topa::touches(hazards.apic, base, bytes) ? rule::OUT_113 : rule::none;
}

}  // namespace ptspec::driver
