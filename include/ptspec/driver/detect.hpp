// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/compare.hpp>
#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_status.hpp>

/// Detection of Intel PT, and of another owner of it.
namespace ptspec::driver {

/// What a logical processor has.
struct [[nodiscard]] detection : procedure_result {
    cpu::capabilities caps{};
    reg::ia32_rtit_ctl ctl{};  ///< as found

    /// True if Intel PT exists and may be programmed.
    constexpr explicit operator bool() const noexcept {
        return caps.has_pt() && !fault.happened && trace == trace_state::disabled;
    }
    /// True if another agent traces. Leave all MSRs of Intel PT alone then.
    [[nodiscard]] constexpr auto is_in_use() const noexcept -> bool {
        return trace == trace_state::enabled;
    }
};

/// Detects Intel PT on the logical processor that executes this, and reads TraceEn. Call it on each
/// logical processor: capabilities can differ. Without Intel PT no MSR is accessed.
///
/// Errors: the access to IA32_RTIT_CTL that faulted, as under a hypervisor that hides Intel PT;
///         `trace` is then `unknown`.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; PRG-001,
///         PRG-005, PRG-030, PRG-260.
template <cpuid_port Cpuid, msr_port Msrs>
constexpr auto detect(Cpuid& cpuid, Msrs& msrs) noexcept -> detection {
    detection found{{.trace = trace_state::disabled}, cpu::detect(cpuid, msrs)};
    if (!found.caps.has_pt()) { return found; }
    auto const ctl = read<reg::ia32_rtit_ctl>(msrs);
    if (!ctl) { found.fault = {.happened = true, .index = reg::ia32_rtit_ctl::address}; }
    found.ctl = ctl.value;
    found.trace = ctl ? trace_state_of(ctl.value) : trace_state::unknown;
    return found;
}

/// What several logical processors have in common.
struct common_detection {
    cpu::capabilities value{};
    bool same_ip_payload = true;  ///< false: some compare RIPs, some LIPs: plan for each separately
    bool all_same = true;         ///< all have the same capabilities
    flag_set<cpu::aspect> differing{};  ///< what some lack and others have
};

/// The capabilities that a configuration for all of these processors may use.
///
/// Source: REG-164..166, PRG-005.
template <same_as<cpu::capabilities> Capabilities>
[[nodiscard]] constexpr auto common(Capabilities const* all, size_t count) noexcept
    -> common_detection {
    if (count == 0) { return {}; }
    common_detection result{.value = all[0]};
    for (size_t i = 1; i < count; ++i) {
        auto const both = cpu::common(result.value, all[i]);
        result.same_ip_payload = result.same_ip_payload && both.same_ip_payload;
        result.value = both.value;
        result.all_same = result.all_same && all[i] == all[0];
    }
    for (size_t i = 0; i < count; ++i) {
        result.differing = result.differing | cpu::is_superset(result.value, all[i]).lacking;
    }
    return result;
}

}  // namespace ptspec::driver
