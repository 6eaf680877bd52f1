// SPDX-License-Identifier: BSL-1.0
#pragma once

// Conditional branches: one event has many of them.

#include "twin_state.hpp"

namespace pt_twin {

/// Executes the branches that are not yet an event.
inline void flush_branches(twin_state& state) {
    if (state.branches.empty()) { return; }
    state.run.execute(conditional_branches{state.branches, state.run.ip()});
    state.branches.clear();
}

inline auto is_tnt(twin_state const& state, std::size_t i) -> bool {
    return state.evidence.is_at(i, kind::tnt_short) || state.evidence.is_at(i, kind::tnt_long);
}

inline auto is_unaligned(twin_state const& state, std::size_t i) -> bool {
    return (state.all[i].offset - state.begin) % 8 + (state.all[i].end - state.all[i].offset) > 8;
}

inline void pass_cycles(twin_state& state, seen const& one) {
    state.run.execute(action::cycles{one.as<packet::cyc>().value()});
}

/// A CYC after a TNT that is not aligned has the cycle in which the TNT was completed: its
/// cycles passed before the last branch of the TNT. Source: GEN-010.
inline void take_branches(twin_state& state, std::size_t i, packet::branches taken) {
    bool const is_told = state.evidence.is_at(i + 1, kind::cyc) &&
                         state.choices.ask(
                             question::told,
                             is_unaligned(state, i + 1) &&
                                 (is_tnt(state, i + 2) ||
                                  state.evidence.is_at(after_times(state.all, i + 1), kind::ovf)));
    for (unsigned left = taken.count; left != 0; --left) {
        if (is_told && left == 1) {
            flush_branches(state);
            pass_cycles(state, state.all[i + 1]);
            state.is_told = true;
        }
        state.branches.push_back((taken.bits >> (left - 1) & 1) != 0);
    }
    if (state.branches.size() > 1000) { flush_branches(state); }
}

}  // namespace pt_twin
