// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>

/// What the delivery of a performance-monitoring interrupt does next to Intel PT.
namespace ptspec::access {

struct pmi_result {
    msr_state state{};
    bool clears_global_ctrl = false;  ///< IA32_PERF_GLOBAL_CTRL becomes 0
};

/// What a ToPA interrupt freezes, which is what any interrupt of performance monitoring does. From
/// version 4 of performance monitoring on bits of IA32_PERF_GLOBAL_STATUS freeze, before it the
/// enables are cleared. Intel PT goes on.
///
/// Source: SDM vol. 3, "ToPA PMI"; REG-205.
[[nodiscard]] constexpr auto deliver_pmi(cpu::capabilities const& of, msr_state now) noexcept
    -> pmi_result {
    using debugctl = reg::ia32_debugctl;
    using status = reg::ia32_perf_global_status;
    auto const version = of.leaf_0a_eax.get<reg::cpuid_0ah_eax::VersionID>();
    bool const counters = version >= 2 && now.debugctl.get<debugctl::FREEZE_PERFMON_ON_PMI>();
    bool const branches = version >= 2 && now.debugctl.get<debugctl::FREEZE_LBRS_ON_PMI>();
    if (version < 4) {
        if (branches) { now.debugctl = now.debugctl.with(debugctl::LBR{false}); }
        return {now, counters};
    }
    if (counters) { now.perf_global_status = now.perf_global_status.with(status::CTR_Frz{true}); }
    if (branches) { now.perf_global_status = now.perf_global_status.with(status::LBR_Frz{true}); }
    return {now, false};
}

}  // namespace ptspec::access
