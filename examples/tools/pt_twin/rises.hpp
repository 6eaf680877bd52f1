// SPDX-License-Identifier: BSL-1.0
#pragma once

// TraceEn falls and rises.

#include "outside.hpp"

namespace pt_twin {

inline void disable(twin_state& state, std::uint64_t at, time_within const& within) {
    if (state.now == tracing::on && !state.run.traced.who.os) {  // WRMSR needs CPL 0
        state.run.execute(
            action::interrupt{at, state.run.outside(), state.run.code(false), interrupt_vector},
            state.run.takes_of(within));
        state.run.execute(trace_en_write{false, at, at + 2});
    } else {
        if (state.run.state().code.cpl != 0) {
            state.run.go(state.run.kernel_code(state.run.traced.who.os), state.run.outside());
        }
        state.run.execute(trace_en_write{false, at, at + 2}, state.run.takes_of(within));
    }
    state.now = tracing::off;
}

/// OS and User as the access that sets TraceEn, at this packet, changes them.
inline auto change_privilege(twin_state& state, std::size_t i) -> privilege_change {
    auto const before = state.run.traced.who;
    auto const evident = state.evidence.privilege_from(i, state.now == tracing::off, before);
    if (state.with.os) {
        state.run.traced.who.os = before.os !=
                                  state.choices.ask(question::os, evident.os != before.os);
        bool const is_other = !state.run.traced.who.os ? !before.user : evident.user != before.user;
        state.run.traced.who.user = before.user != state.choices.ask(question::user, is_other);
    }
    auto const now = state.run.traced.who;
    privilege_change made;
    if (now.os != before.os) { made.os = now.os; }
    if (now.user != before.user) { made.user = now.user; }
    return made;
}

/// TraceEn rises with a PSB+, by WRMSR, or by a VM entry to code that has no WRMSR.
inline auto rise_with_psb(twin_state& state, std::size_t i, group const& in) -> std::size_t {
    auto const who = change_privilege(state, i);
    state.run.set_clocks(in);
    state.run.set_context(in);
    settle(state, i, true);
    state.run.execute(packet_byte_cnt_write{0});
    std::size_t const mode = after_times(state.all, in.next);
    bool const has_mode = state.evidence.is_at(mode, kind::mode_exec);
    std::size_t pge = has_mode ? after_times(state.all, mode + 1) : mode;
    if (state.is_broadwell &&
        state.evidence.is_at(mode, kind::psb)) {  // the PSB+ before each TIP.PGE
        auto const before = psb_plus_at(state.all, mode);
        if (before.fup() && state.run.traced.who.os && before.tsc() == in.tsc()) {
            state.run.set_context(before);
            pge = after_times(state.all, before.next);
        }
    }
    bool const in_context = in.fup() || in.pip() || in.tsx();
    // Time passes before TIP.PGE.
    bool const waits = !state.is_broadwell && pge != in.next + (has_mode ? 1 : 0);
    bool const is_on = state.evidence.is_at(pge, kind::tip_pge) &&
                       state.choices.ask(question::traced,
                                         !(waits && state.run.can_be_out()) &&
                                             (state.run.state().options.psb_of_enable_has_fup
                                                  ? in.fup().has_value()
                                                  : in_context || !state.run.can_be_out()));
    if (!is_on) {
        state.run.go(state.run.kernel_code(in_context), state.run.outside());
        state.run.execute(
            trace_en_write{true, in.fup().value_or(state.run.outside()), state.run.outside(), who},
            state.run.takes_of(in));
        state.now = tracing::out;
        return in.next;
    }
    time_within within = in.takes;
    for (std::size_t k = in.next; k <= pge; ++k) { within.add(state.all[k]); }
    auto const takes = within.all(state.run.reported_by(in));
    if (has_mode) { state.run.set_mode(state.all[mode].as<packet::mode_exec>()); }
    std::uint64_t const to = state.all[pge].ip;
    std::uint64_t const at = in.fup().value_or(to - 2);
    if (at == to || !state.run.traced.who.os) {
        state.run.execute(tracing_vm_entry{at, to, state.run.code(true), who}, takes);
    } else {
        state.run.go(state.run.kernel_code(true), at);
        state.run.execute(trace_en_write{true, at, to, who}, takes);
    }
    state.now = tracing::on;
    return pge + 1;
}

/// TraceEn rises without a PSB+: PacketByteCnt is not 0.
inline auto rise(twin_state& state, std::size_t i, group const& in) -> std::size_t {
    auto const who = change_privilege(state, i);
    state.run.set_clocks(in);
    std::size_t const next = after_times(state.all, in.next);
    std::size_t pge = next;
    if (state.is_broadwell &&
        state.evidence.is_at(next, kind::psb)) {  // the PSB+ before each TIP.PGE
        auto const before = psb_plus_at(state.all, next);
        state.run.set_context(before);
        pge = after_times(state.all, before.next);
    } else if (state.evidence.is_at(next, kind::mode_exec)) {
        pge = after_times(state.all, next + 1);
    }
    bool const is_on = pge != next && state.evidence.is_at(pge, kind::tip_pge) &&
                       state.choices.ask(question::traced,
                                         state.run.traced.who.os && state.with.filters.empty());
    settle(state, i, true);
    state.run.execute(packet_byte_cnt_write{5});
    if (is_on) {
        if (state.evidence.is_at(next, kind::mode_exec)) {
            state.run.set_mode(state.all[next].as<packet::mode_exec>());
        }
        std::uint64_t const to = state.all[pge].ip;
        time_within within = in.takes;
        for (std::size_t k = in.next; k <= pge; ++k) { within.add(state.all[k]); }
        state.run.go(state.run.kernel_code(true), to - 2);
        state.run.execute(trace_en_write{true, to - 2, to, who},
                          within.all(state.run.reported_by(in)));
        state.now = tracing::on;
        return pge + 1;
    }
    auto changed = who;
    if (state.run.traced.who.os && state.with.filters.empty() &&
        !state.with.cr3_filter) {  // a TIP.PGE would follow
        state.run.traced.who.os = false;
        changed = {.os = false};
    }
    state.run.go(state.run.kernel_code(false), state.run.outside());
    state.run.execute(trace_en_write{true, state.run.outside(), state.run.outside(), changed},
                      state.run.takes_of(in));
    state.now = tracing::out;
    return in.next;
}

}  // namespace pt_twin
