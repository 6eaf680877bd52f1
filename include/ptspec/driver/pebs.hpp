// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/pebs.hpp>

/// PEBS records in the trace.
namespace ptspec::driver {

/// The value of IA32_PEBS_ENABLE for records in the trace, or why the processor has none.
struct [[nodiscard]] pebs_plan {
    rule why = rule::none;
    reg::ia32_pebs_enable enable{};  ///< write it before the counters run, and 0 after them

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

/// Directs the records of the counters in `wanted` to the trace: all of them, since one field
/// selects the output of all counters. Reload values are then those of MSR_RELOAD_PMCx and
/// MSR_RELOAD_FIXED_CTRx. IA32_RTIT_CTL needs no bit for them.
///
/// Errors: REG-200 the processor does not write PEBS records to the trace; REG-201 it has
///         architectural PEBS, whose records have a buffer of their own.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200, REG-201.
[[nodiscard]] constexpr auto plan_pebs(cpu::capabilities const& caps,
                                       reg::ia32_pebs_enable wanted) noexcept -> pebs_plan {
    using enable = reg::ia32_pebs_enable;
    using perf = reg::ia32_perf_capabilities;
    constexpr uint64_t architectural = 0xF;
    if (caps.perf_capabilities.get<perf::PEBS_FMT>() == architectural) {
        return {.why = rule::REG_201};
    }
    if (!caps.has_pt() || !caps.perf_capabilities.get<perf::PEBS_OUTPUT_PT_AVAIL>()) {
        return {.why = rule::REG_200};
    }
    return {.enable = wanted.with(enable::PEBS_OUTPUT{reg::pebs_output::intel_pt})};
}

}  // namespace ptspec::driver
