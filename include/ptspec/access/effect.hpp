// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>
#include <ptspec/access/enables.hpp>
#include <ptspec/access/pt_msrs.hpp>

/// The effect of a WRMSR on the state of a logical processor.
namespace ptspec::access {

/// Whether an access or an event makes the processor generate a PSB+.
enum class psb_plus_generation : uint8_t {
    no,
    yes,
    may,  ///< the processor may generate one or not
};

/// The effect of an access or an event.
struct effect {
    access::verdict verdict{};
    msr_state state{};  ///< the new state; unchanged where the access faulted
    psb_plus_generation psb = psb_plus_generation::no;
    bool pmi = false;         ///< a performance-monitoring interrupt was pended
    bool trace_stop = false;  ///< tracing resumed inside a TraceStop range, and stopped

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(verdict); }
};

/// True if setting TraceEn pends the PMI that PendToPAPMI preserved.
///
/// Source: REG-066, REG-204, OUT-086.
[[nodiscard]] constexpr auto pends_preserved_pmi(capabilities const& caps,
                                                 msr_state const& state) noexcept -> bool {
    return state.ctl.get<ia32_rtit_ctl::InjectPsbPmiOnEnable>() &&
           state.status.get<ia32_rtit_status::PendToPAPMI>() &&
           caps.supports(cpu::output_scheme::topa);
}

namespace detail {

/// Source: REG-063..067.
constexpr auto psb_when_enabled(capabilities const& caps, msr_state const& state) noexcept
    -> psb_plus_generation {
    using status = ia32_rtit_status;
    bool const has_byte_count = caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>();
    bool const pending = state.ctl.get<ia32_rtit_ctl::InjectPsbPmiOnEnable>() &&
                         state.status.get<status::PendPSB>();
    return !has_byte_count || pending || state.status.get<status::PacketByteCnt>() == 0
               ? psb_plus_generation::yes
               : psb_plus_generation::may;
}

/// TraceEn changes from 0 to 1, for any reason. `state.ctl` already holds the 1.
///
/// Source: REG-043, REG-056, REG-058, REG-063..067, REG-204, GEN-024, GEN-025, GEN-088, OUT-086.
constexpr auto enabled(capabilities const& caps, msr_state state,
                       processor_context const& code) noexcept -> effect {
    using ctl = ia32_rtit_ctl;
    using status = ia32_rtit_status;
    effect result;
    bool const triggered = trigger_en(state.ctl, state.status);
    state.status = state.status.with(status::TriggerEn{triggered});
    if (caps.has_ip_filtering() && !has_filter(state)) {
        state.status = state.status.with(status::FilterEn{true});
    }
    bool const inject = state.ctl.get<ctl::InjectPsbPmiOnEnable>();
    result.pmi = pends_preserved_pmi(caps, state);
    if (result.pmi) {
        state.perf_global_status = state.perf_global_status.with(
            reg::ia32_perf_global_status::Trace_ToPA_PMI{true});
    }
    if (triggered) {
        result.psb = psb_when_enabled(caps, state);
        if (inject) { state.status = state.status.with(status::PendPSB{false}); }
        state = after_branch(caps, state, code);
        result.trace_stop = state.status.get<status::Stopped>();
    }
    result.state = state;
    return result;
}

/// A write of a covered MSR that exists, other than IA32_RTIT_CTL. Write-ignored bits keep their
/// values.
///
/// Source: REG-050, REG-203.
constexpr void store(msr_state& state, msr_index index, uint64_t value) noexcept {
    switch (index.value) {
        case ia32_rtit_status::address: {
            constexpr auto kept = ia32_rtit_status::write_ignored_mask();
            state.status = {(value & ~kept) | (state.status.raw & kept)};
            break;
        }
        case reg::ia32_perf_global_status_reset::address:
            state.perf_global_status = {state.perf_global_status.raw & ~value};
            break;
        case reg::ia32_perf_global_status_set::address:
            state.perf_global_status = {state.perf_global_status.raw | value};
            break;
        default: set_raw(state, index, value); break;
    }
}

}  // namespace detail

/// The state with TraceEn cleared, for any reason.
///
/// Source: REG-061, REG-093.
[[nodiscard]] constexpr auto disabled(msr_state state) noexcept -> msr_state {
    state.ctl = state.ctl.with(ia32_rtit_ctl::TraceEn{false});
    state.status = state.status.with(ia32_rtit_status::TriggerEn{false});
    return state;
}

/// The effect of a write of IA32_RTIT_CTL that was checked, by WRMSR or in another way, such as by
/// VM entry. `code` describes the code that runs when TraceEn becomes 1.
///
/// Errors: none: the caller has checked that the value is allowed.
/// Source: REG-020, REG-022, REG-023.
[[nodiscard]] constexpr auto apply(capabilities const& caps, msr_state state, ia32_rtit_ctl value,
                                   processor_context const& code) noexcept -> effect {
    bool const was_on = state.ctl.get<ia32_rtit_ctl::TraceEn>();
    state.ctl = value;
    bool const is_on = value.get<ia32_rtit_ctl::TraceEn>();
    if (was_on == is_on) { return {.state = state}; }
    return is_on ? detail::enabled(caps, state, code) : effect{.state = disabled(state)};
}
/// The same for any covered MSR: the effect of a WRMSR after `check_write` has allowed it.
///
/// Source: REG-020..023, REG-043, REG-050, REG-203.
[[nodiscard]] constexpr auto apply(capabilities const& caps, msr_state const& state,
                                   msr_index index, uint64_t value,
                                   processor_context const& code) noexcept -> effect {
    if (index == ia32_rtit_ctl::address) { return apply(caps, state, ia32_rtit_ctl{value}, code); }
    effect result{.state = state};
    detail::store(result.state, index, value);
    return result;
}

/// Executes a WRMSR. `code` describes the code that executes it.
///
/// Errors: those of `check_write`; the state is then unchanged.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR", "IA32_RTIT_STATUS MSR"; REG-009, REG-020..023, REG-043,
///         REG-050, REG-053, REG-056..068, REG-072, REG-080, REG-203.
[[nodiscard]] constexpr auto effect_of_write(capabilities const& caps, msr_state const& state,
                                             msr_index index, uint64_t value,
                                             processor_context const& code = {},
                                             policy const& policy = {}) noexcept -> effect {
    auto const checked = check_write(caps, state, index, value, code.cpl, policy);
    if (!checked) { return {.verdict = checked, .state = state}; }
    return apply(caps, state, index, value, code);
}

/// The result of an RDMSR.
struct read_result {
    access::verdict verdict{};
    uint64_t value = 0;

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(verdict); }
};

/// Source: REG-011, REG-080.
[[nodiscard]] constexpr auto read(capabilities const& caps, msr_state const& state, msr_index index,
                                  unsigned cpl = 0) noexcept -> read_result {
    auto const checked = check_read(caps, index, cpl);
    return {checked, checked ? value_of(state, index) : 0};
}

}  // namespace ptspec::access
