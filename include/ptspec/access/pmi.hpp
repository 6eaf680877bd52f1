// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/apic.hpp>

/// The effects of delivering a performance-monitoring interrupt (PMI), and a PMI handler's
/// decision.
namespace ptspec::access {

struct delivered_pmi {
    msr_state state{};
    bool clears_global_ctrl = false;  ///< IA32_PERF_GLOBAL_CTRL becomes 0
};

/// Delivers a PMI. A ToPA PMI freezes what any other PMI freezes. From version 4 of performance
/// monitoring on, bits of IA32_PERF_GLOBAL_STATUS freeze counters and LBRs; before, their enables
/// are cleared. Intel PT keeps tracing.
///
/// Source: SDM vol. 3, "ToPA PMI"; REG-205.
[[nodiscard]] constexpr auto deliver_pmi(cpu::capabilities const& caps, msr_state state) noexcept
    -> delivered_pmi {
    using debugctl = reg::ia32_debugctl;
    using status = reg::ia32_perf_global_status;
    auto const version = caps.leaf_0a_eax.get<reg::cpuid_0ah_eax::VersionID>();
    bool const freeze_counters = version >= 2 &&
                                 state.debugctl.get<debugctl::FREEZE_PERFMON_ON_PMI>();
    bool const freeze_lbrs = version >= 2 && state.debugctl.get<debugctl::FREEZE_LBRS_ON_PMI>();
    if (version < 4) {
        if (freeze_lbrs) { state.debugctl = state.debugctl.with(debugctl::LBR{false}); }
        return {state, freeze_counters};
    }
    if (freeze_counters) {
        state.perf_global_status = state.perf_global_status.with(status::CTR_Frz{true});
    }
    if (freeze_lbrs) {
        state.perf_global_status = state.perf_global_status.with(status::LBR_Frz{true});
    }
    return {state, false};
}

/// The performance-monitoring LVT entry after it delivered an interrupt: Mask is set, and no
/// further interrupt is delivered until software clears it.
///
/// Source: SDM vol. 3, "ToPA PMI"; OUT-084.
template <one_of<reg::ia32_x2apic_lvt_pmi, reg::apic_mmio_lvt_pmi> Word>
[[nodiscard]] constexpr auto after_delivery(Word entry) noexcept -> Word {
    return entry.with(typename Word::Mask{true});
}

/// True when a handler has to handle a ToPA PMI now. A PMI that arrives while TraceEn is 0 belongs
/// to another context: the handler ignores it and leaves PendToPAPMI set, and the PMI is raised
/// again when that context is enabled. A handler that handles the PMI clears the bit.
///
/// Source: SDM vol. 3, "PMI Preservation"; OUT-087.
[[nodiscard]] constexpr auto is_topa_pmi_for_now(msr_state const& state) noexcept -> bool {
    return state.perf_global_status.get<reg::ia32_perf_global_status::Trace_ToPA_PMI>() &&
           state.ctl.get<ia32_rtit_ctl::TraceEn>();
}

}  // namespace ptspec::access
