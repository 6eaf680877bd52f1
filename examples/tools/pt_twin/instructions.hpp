// SPDX-License-Identifier: BSL-1.0
#pragma once

// Transactions, and values that PTWRITE wrote.

#include "outside.hpp"

namespace pt_twin {

inline auto take_transaction(twin_state& state, std::size_t i) -> std::size_t {
    auto const mode = state.all[i].as<packet::mode_tsx>();
    bool const aborts = mode.get<packet::mode_tsx::TXAbort>();
    bool const has_fup = state.evidence.is_at(i + 1, kind::fup);
    std::size_t const next = i + (has_fup ? 2 : 1);
    std::uint64_t const at = has_fup ? state.all[i + 1].ip : state.run.outside();
    if (state.now == tracing::out) { state.run.visit_context(true); }
    std::size_t target = after_times(state.all, next);
    bool const has_mode = state.evidence.is_at(target, kind::mode_exec);
    if (has_mode) { target = after_times(state.all, target + 1); }
    bool const has_target = state.evidence.is_at(target, kind::tip) ||
                            state.evidence.is_at(target, kind::tip_pge) ||
                            (state.evidence.is_at(target, kind::tip_pgd) &&
                             state.all[target].has_ip);
    bool const is_one = next >= state.all.size() || has_fup ||
                        state.all[next].offset == state.all[i].end;
    if (aborts && has_target && state.choices.ask(question::transfer, is_one)) {
        if (has_mode) {
            state.run.set_mode(state.all[after_times(state.all, next)].as<packet::mode_exec>());
            if (state.now == tracing::out &&
                state.run.state().code.width != state.run.traced.width) {
                state.run.go(state.run.code(true), state.run.outside());
            }
        }
        time_within within;
        for (std::size_t k = next; k <= target; ++k) { within.add(state.all[k]); }
        auto const takes = state.run.takes_of(within);
        state.run.execute(action::transaction_abort{at, state.all[target].ip}, takes);
        state.now = state.evidence.is_at(target, kind::tip_pgd) ? tracing::out : tracing::on;
        return target + 1;
    }
    if (aborts) {
        state.run.execute(action::transaction_abort{at, state.run.outside()});
        return next;
    }
    execute_transaction(state, is_in_transaction(mode), at, has_fup ? at + 3 : state.run.outside());
    return next;
}

inline auto take_value(twin_state& state, std::size_t i) -> std::size_t {
    auto const one = state.all[i].as<packet::ptw>();
    bool const has_ip = one.get<packet::ptw::IP>() && state.evidence.is_at(i + 1, kind::fup);
    std::uint64_t const at = has_ip ? state.all[i + 1].ip : state.run.ip();
    bool const is_wide = state.all[i].end - state.all[i].offset > 6;
    state.run.execute(action::ptwrite{at, at + 4, one.payload(), is_wide});
    return has_ip ? i + 2 : i + 1;
}

}  // namespace pt_twin
