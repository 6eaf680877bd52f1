// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>

/// TriggerEn, ContextEn, FilterEn and PacketEn, as pure functions.
namespace ptspec::access {

/// True when TraceEn is 1, and Stopped and Error are 0.
///
/// Source: SDM vol. 3, "Trigger Enable"; REG-056.
[[nodiscard]] constexpr auto trigger_en(ia32_rtit_ctl ctl, ia32_rtit_status status) noexcept
    -> bool {
    return ctl.get<ia32_rtit_ctl::TraceEn>() && !status.get<ia32_rtit_status::Stopped>() &&
           !status.get<ia32_rtit_status::Error>();
}

/// True when IA32_RTIT_CR3_MATCH equals CR3 in the bits that are compared.
///
/// Source: SDM vol. 3, "Filtering by CR3"; REG-075, GEN-060.
[[nodiscard]] constexpr auto cr3_matches(ia32_rtit_cr3_match match, uint64_t cr3, bool pae) noexcept
    -> bool {
    return ((match.raw ^ cr3) & ~low_bits(pae ? 5 : 12)) == 0;
}

/// True when the running context may be traced: CPL, CR3 and enclave allow it.
///
/// Source: SDM vol. 3, "Context Enable"; REG-057, REG-113.
[[nodiscard]] constexpr auto context_en(ia32_rtit_ctl ctl, ia32_rtit_cr3_match match,
                                        processor_context const& context) noexcept -> bool {
    bool const at_this_cpl = context.cpl == 0 ? ctl.get<ia32_rtit_ctl::OS>()
                                              : ctl.get<ia32_rtit_ctl::User>();
    return at_this_cpl && !context.production_enclave &&
           (!ctl.get<ia32_rtit_ctl::CR3Filter>() || cr3_matches(match, context.cr3, context.pae));
}

/// True if `accepted` returns true for an address range of this kind. The ranges after that one are
/// not visited.
///
/// Source: REG-037.
[[nodiscard]] constexpr auto any_range_of_kind(msr_state const& state, reg::addr_cfg kind,
                                               auto accepted) noexcept -> bool {
    for (unsigned n = 0; n < ia32_rtit_addr::count; ++n) {
        if (use_of_range(state.ctl, n) == kind && accepted(state.addr[n])) { return true; }
    }
    return false;
}

/// What the address ranges say of `ip`, the target of a taken branch or event.
struct range_hit {
    bool filter_en = true;    ///< FilterEn afterwards
    bool trace_stop = false;  ///< `ip` lies in a TraceStop range
};

/// True when at least one address range is a filter.
///
/// Source: REG-058.
[[nodiscard]] constexpr auto has_filter(msr_state const& state) noexcept -> bool {
    return any_range_of_kind(state, reg::addr_cfg::filter,
                             [](address_range const&) { return true; });
}

/// True when at least one address range is a TraceStop range.
///
/// Source: REG-068.
[[nodiscard]] constexpr auto has_trace_stop(msr_state const& state) noexcept -> bool {
    return any_range_of_kind(state, reg::addr_cfg::trace_stop,
                             [](address_range const&) { return true; });
}

/// True when FilterEn is 1 for an instruction: it lies in a filter range, or no range is a filter.
///
/// Source: REG-058, REG-078, GEN-081, GEN-082.
[[nodiscard]] constexpr auto in_filter(msr_state const& state, uint64_t ip) noexcept -> bool {
    return !has_filter(state) ||
           any_range_of_kind(state, reg::addr_cfg::filter,
                             [=](address_range const& range) { return range.contains(ip); });
}

/// True when an instruction lies in a TraceStop range.
///
/// Source: REG-068, REG-078, GEN-081.
[[nodiscard]] constexpr auto in_trace_stop(msr_state const& state, uint64_t ip) noexcept -> bool {
    return any_range_of_kind(state, reg::addr_cfg::trace_stop,
                             [=](address_range const& range) { return range.contains(ip); });
}

/// Finds an instruction in the address ranges. Where a filter range and a TraceStop range overlap,
/// TraceStop wins.
///
/// Source: SDM vol. 3, "Filtering by IP"; REG-058, REG-068, GEN-085.
[[nodiscard]] constexpr auto match_ranges(msr_state const& state, uint64_t ip) noexcept
    -> range_hit {
    bool const stop = in_trace_stop(state, ip);
    return {!stop && in_filter(state, ip), stop};
}

/// The effective FilterEn. Without IP filtering STATUS.FilterEn reads 0, but FilterEn counts as 1.
///
/// Source: REG-051, REG-058.
[[nodiscard]] constexpr auto filter_en(cpu::capabilities const& caps,
                                       ia32_rtit_status status) noexcept -> bool {
    return !caps.has_ip_filtering() || status.get<ia32_rtit_status::FilterEn>();
}

/// The enables at one point.
///
/// Source: SDM vol. 3, "Packet Generation Enable Controls"; GEN-020..027.
struct enables {
    bool trigger = false;
    bool context = false;
    bool filter = false;
    bool branch = false;

    /// True if control flow is traced: PacketEn, which no register shows.
    ///
    /// Source: SDM vol. 3, "Packet Enable (PacketEn)"; REG-059.
    [[nodiscard]] constexpr auto packet() const noexcept -> bool {
        return trigger && context && filter && branch;
    }
    friend constexpr auto operator==(enables const&, enables const&) -> bool = default;
};

/// Source: GEN-020..027.
[[nodiscard]] constexpr auto enables_of(cpu::capabilities const& caps,
                                        msr_state const& state) noexcept -> enables {
    using status = ia32_rtit_status;
    return {state.status.get<status::TriggerEn>(), state.status.get<status::ContextEn>(),
            filter_en(caps, state.status), state.ctl.get<ia32_rtit_ctl::BranchEn>()};
}

/// PacketEn. Source: REG-059.
[[nodiscard]] constexpr auto packet_en(cpu::capabilities const& caps,
                                       msr_state const& state) noexcept -> bool {
    return enables_of(caps, state).packet();
}

/// The enables after a branch, an event or a write of CR3.
struct evaluated {
    ia32_rtit_status status{};
    /// At the target. Of what a TraceStop clears, only `filter` is here; `status` has the rest.
    enables after{};
    bool trace_stop = false;
};

/// Evaluates the enables at a target. `context` is the context there, `context.ip` the target;
/// `stop_ip` is compared with the TraceStop ranges. TraceEn stays as it is; a TraceStop sets
/// STATUS.Stopped.
///
/// Source: REG-057, REG-058, REG-068, GEN-005, GEN-024..027, GEN-080..090.
[[nodiscard]] constexpr auto evaluate(cpu::capabilities const& caps, msr_state const& state,
                                      processor_context const& context, uint64_t stop_ip) noexcept
    -> evaluated {
    using status = ia32_rtit_status;
    evaluated result{state.status, enables_of(caps, state), false};
    if (!result.after.trigger) { return result; }
    result.after.context = context_en(state.ctl, state.cr3_match, context);
    result.status = result.status.with(status::ContextEn{result.after.context});
    if (result.after.context && caps.has_ip_filtering()) {
        result.trace_stop = in_trace_stop(state, stop_ip);
        result.after.filter = !result.trace_stop && in_filter(state, context.ip);
        result.status = result.status.with(status::FilterEn{result.after.filter});
        if (result.trace_stop) {
            result.status = result.status.with(status::Stopped{true}, status::TriggerEn{false});
        }
    }
    return result;
}

/// The state after a branch or an event whose target is `context.ip`.
///
/// Source: REG-057, REG-058, REG-068, GEN-024, GEN-025, GEN-090.
[[nodiscard]] constexpr auto after_branch(cpu::capabilities const& caps, msr_state state,
                                          processor_context const& context) noexcept -> msr_state {
    state.status = evaluate(caps, state, context, context.ip).status;
    return state;
}

}  // namespace ptspec::access
