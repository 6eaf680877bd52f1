// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/lbr.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/topa/validate.hpp>

/// What to check before a trace is enabled.
namespace ptspec::driver {

/// Whether branch records allow a trace.
struct [[nodiscard]] lbr_check : procedure_result {
    bool excludes = false;  ///< this processor does not record both
    bool records = false;   ///< LBR, BTS or branch trace messages are enabled now

    /// Both would be enabled where they exclude each other.
    [[nodiscard]] constexpr auto conflicts() const noexcept -> bool { return excludes && records; }
    /// True if the trace may be enabled.
    constexpr explicit operator bool() const noexcept { return !fault.happened && !conflicts(); }
};

/// Checks for branch records that a trace would suspend and clear. On processors where both exist
/// IA32_DEBUGCTL is not read.
///
/// Errors: the access to IA32_DEBUGCTL that faulted; `records` is then not known.
/// Source: SDM vol. 3, "Interaction of Intel Processor Trace and LBR"; PRG-150..152, PRG-044.
template <msr_port Msrs>
constexpr auto check_lbr(Msrs& msrs, cpu::capabilities const& caps) noexcept -> lbr_check {
    using debugctl = reg::ia32_debugctl;
    lbr_check result;
    result.excludes = access::excludes_lbr(caps.leaf_01_eax);
    if (!result.excludes) { return result; }
    msr_sequence sequence{msrs};
    debugctl const ctl = sequence.template read<debugctl>();
    result.fault = sequence.fault();
    result.records = ctl.get<debugctl::LBR>() || ctl.get<debugctl::BTS>() ||
                     ctl.get<debugctl::TR>();
    return result;
}

/// The rule by which memory is unsuitable for trace or for a table of `bytes` bytes: OUT-111 it
/// overlaps restricted memory, OUT-113 the page of the local APIC, for which the processor signals
/// no error. Disable tracing before the SMRRs or the APIC base change.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; PRG-095..097, OUT-110..114.
[[nodiscard]] constexpr auto restricted_check(topa::output_hazards const& hazards, phys_addr base,
                                              uint64_t bytes) noexcept -> rule {
    if (bytes == 0) { return rule::none; }
    if (hazards.restricted.touches(base, bytes)) { return rule::OUT_111; }
    return topa::touches(hazards.apic, base, bytes) ? rule::OUT_113 : rule::none;
}

}  // namespace ptspec::driver
