// SPDX-License-Identifier: BSL-1.0
#pragma once

// Timing packets outside of a PSB+.

#include "branches.hpp"
#include "rises.hpp"

namespace pt_twin {

/// Timing packets outside of a PSB+: TraceEn rose, the clocks were off, the ratio changed, or
/// time passed.
inline auto take_time(twin_state& state, std::size_t i) -> std::size_t {
    auto const in = timing_at(state.all, i);
    bool const is_cut = in.next == state.all.size() && in.next != i && in.tsc();
    bool const is_rise = is_cut || state.evidence.is_timing_of_rise(in);
    if (state.now == tracing::out && is_rise && state.run.can_fall_outside() &&
        state.choices.ask(
            question::fell,
            state.evidence.must_have_fallen(i) ||
                (state.evidence.may_have_fallen(i) &&
                 (state.evidence.explains_mode(i, state.run.traced.who, state.run.state()) ||
                  state.evidence.has_other_os(in.next, state.run.traced.who))) ||
                (state.is_broadwell && state.evidence.rises_at(i)))) {
        disable(state, 0, {});
    }
    if (state.now == tracing::off && is_rise) { return rise(state, i, in); }
    bool const is_early = state.evidence.is_at(i, kind::mtc) || state.evidence.is_at(i, kind::cyc);
    bool const is_group = is_early && in.tsc() && state.choices.ask(question::stop, false);
    if (state.evidence.is_at(i, kind::mtc) && !is_group) {
        return state.run.mtc(state.all[i]), i + 1;
    }
    if (state.evidence.is_at(i, kind::cyc) && !is_group) {
        pass_cycles(state, state.all[i]);
        if (state.choices.ask(question::guard, state.evidence.is_alone(i))) {
            state.run.execute(action::cycle_guard{});
        }
        return i + 1;
    }
    if (in.next == i) { return i + 1; }
    state.run.set_clocks(in);
    if (!in.tsc()) {
        state.run.execute(action::ratio{state.run.state().clocks.core_to_bus});
    } else {
        state.run.execute(action::clock_stop{state.run.ip()});
        state.run.execute(action::clock_resume{}, state.run.takes_of(in));
    }
    return in.next;
}

}  // namespace pt_twin
