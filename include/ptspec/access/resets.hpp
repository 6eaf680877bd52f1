// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/access/lbr.hpp>

/// Events that change the MSRs without an access to them: resets, INIT, SMM, VMX, measured launch.
namespace ptspec::access {

/// The state after power-up.
///
/// Source: REG-090.
[[nodiscard]] constexpr auto cold_reset() noexcept -> msr_state { return {}; }

/// The state after a warm reset. With IP filtering all MSRs of Intel PT survive, but TraceEn is
/// cleared. The related MSRs (IA32_XSS, IA32_PERF_GLOBAL_STATUS, IA32_DEBUGCTL) are not changed
/// here: the caller models them.
///
/// Source: REG-091..093.
[[nodiscard]] constexpr auto warm_reset(capabilities const& caps, msr_state const& state) noexcept
    -> msr_state {
    auto next = disabled(state);
    if (!caps.has_ip_filtering()) {
        next = cold_reset();
        next.xss = state.xss;
        next.perf_global_status = state.perf_global_status;
        next.debugctl = state.debugctl;
    }
    next.in_vmx_operation = false;
    next.in_smm = false;
    next.smram_trace_en = false;
    return next;
}

/// The state after INIT: tracing continues in the context `code`.
///
/// Source: REG-094.
[[nodiscard]] constexpr auto init(capabilities const& caps, msr_state const& state,
                                  processor_context const& code = {}) noexcept -> msr_state {
    return after_branch(caps, state, code);
}

// ------------------------------------------------------------------------------------ SMM

/// How the processor treats an SMI.
enum class smm_treatment : uint8_t {
    by_default,
    dual_monitor,  ///< a VM exit to the SMI-transfer monitor, which saves and restores MSRs itself
};

/// The state after the delivery of an SMI. In SMM an SMI stays pending, and the state does not
/// change.
///
/// Source: SDM vol. 3, "System Management Mode (SMM)"; REG-100, REG-104..106.
[[nodiscard]] constexpr auto smi(msr_state const& state,
                                 smm_treatment treatment = smm_treatment::by_default) noexcept
    -> msr_state {
    if (state.in_smm || treatment == smm_treatment::dual_monitor) { return state; }
    auto next = disabled(state);
    next.smram_trace_en = state.ctl.get<ia32_rtit_ctl::TraceEn>();
    next.in_smm = true;
    return next;
}

enum class rsm_outcome : uint8_t {
    resumed,
    shutdown,          ///< the processor shut down; `broken` has the rule
    undefined_opcode,  ///< #UD: the processor was not in SMM
};

struct rsm_result {
    rsm_outcome outcome = rsm_outcome::resumed;
    rule broken = rule::none;
    access::effect effect{};  ///< the effect, where the processor resumed

    constexpr explicit operator bool() const noexcept { return outcome == rsm_outcome::resumed; }
};

/// The effect of RSM: it restores TraceEn and resumes the context `code`.
///
/// Errors: `shutdown` with REG-102, REG-103, or the rule by which a WRMSR that sets TraceEn in the
///         IA32_RTIT_CTL that SMM left would raise #GP: REG-025, REG-040, REG-121. Nothing has
///         changed then.
/// Source: SDM vol. 3, "System Management Mode (SMM)"; REG-101..103, REG-108.
[[nodiscard]] constexpr auto rsm(capabilities const& caps, msr_state const& state,
                                 processor_context const& code = {},
                                 policy const& policy = {}) noexcept -> rsm_result {
    if (!state.in_smm) { return {rsm_outcome::undefined_opcode, rule::none, {.state = state}}; }
    if (state.ctl.get<ia32_rtit_ctl::TraceEn>()) {
        return {rsm_outcome::shutdown, rule::REG_102, {.state = state}};
    }
    bool const would_enable_both = state.smram_trace_en &&
                                   state.debugctl.get<reg::ia32_debugctl::LBR>() &&
                                   excludes_lbr(caps.leaf_01_eax);
    if (would_enable_both && policy.lbr_after_rsm_shuts_down) {
        return {rsm_outcome::shutdown, rule::REG_103, {.state = state}};
    }
    auto next = state;
    next.in_smm = false;
    next.smram_trace_en = false;
    if (!state.smram_trace_en) { return {rsm_outcome::resumed, rule::none, {.state = next}}; }
    next.ctl = next.ctl.with(ia32_rtit_ctl::TraceEn{true});
    rule const broken = broken_rule(caps, state, ia32_rtit_ctl::address, next.ctl.raw, policy);
    if (broken != rule::none) { return {rsm_outcome::shutdown, broken, {.state = state}}; }
    return {rsm_outcome::resumed, rule::none, detail::enabled(caps, next, code)};
}

// ------------------------------------------------------------------------------------ VMX, SMX

/// The state after VMXON, which clears TraceEn where Intel PT is not allowed in VMX operation.
///
/// Source: REG-110.
[[nodiscard]] constexpr auto vmxon(capabilities const& caps, msr_state const& state) noexcept
    -> msr_state {
    auto next = caps.vmx() == cpu::vmx_support::none ? disabled(state) : state;
    next.in_vmx_operation = true;
    return next;
}

/// The state after VMXOFF.
[[nodiscard]] constexpr auto vmxoff(msr_state state) noexcept -> msr_state {
    state.in_vmx_operation = false;
    return state;
}

/// The state after GETSEC[SENTER] or GETSEC[ENTERACCS], which clear TraceEn and do not restore it.
/// SENTER does so on the other logical processors, too.
///
/// Source: REG-111.
[[nodiscard]] constexpr auto measured_launch(msr_state const& state) noexcept -> msr_state {
    return disabled(state);
}

/// The state at the start of an authenticated code module: TraceEn is cleared without any packet.
///
/// Source: REG-112.
[[nodiscard]] constexpr auto acm_entry(msr_state const& state) noexcept -> msr_state {
    return disabled(state);
}

/// The state after the module. `trace_en` is the value of TraceEn before the module started. It is
/// restored unless the module left an IA32_RTIT_CTL in which a WRMSR could not set it.
///
/// Source: REG-108, REG-112.
[[nodiscard]] constexpr auto acm_exit(capabilities const& caps, msr_state state, bool trace_en,
                                      processor_context const& code = {}) noexcept -> msr_state {
    auto const ctl = state.ctl.with(ia32_rtit_ctl::TraceEn{trace_en});
    rule const broken = broken_rule(caps, state, ia32_rtit_ctl::address, ctl.raw);
    if (!trace_en || broken != rule::none) { return state; }
    state.ctl = ctl;
    return detail::enabled(caps, state, code).state;
}

}  // namespace ptspec::access
