// SPDX-License-Identifier: BSL-1.0
#pragma once

// Far transfers and asynchronous events, and what leaves or enters the code that is traced.

#include "rises.hpp"

namespace pt_twin {

/// An address that the filters do not exclude.
inline auto inside(twin_state const& state) -> std::uint64_t {
    return state.with.filters.empty() ? state.run.ip() : state.with.filters.front().first;
}

/// True for an IP that code of the current width cannot have: a far transfer leads to it.
inline auto is_wide(twin_state const& state, seen const& one) -> bool {
    return one.has_ip && state.run.traced.width != engine::code_width::bits_64 && one.ip >> 32 != 0;
}

/// The moments of a PSB+ and of the TIP.PGE after it.
inline auto joined(twin_state const& state, group const& in, time_within const& within) -> moments {
    auto all = state.run.takes_of(in);
    auto const after = within.all(std::nullopt);
    all.insert(all.end(), after.begin(), after.end());
    return all;
}

/// PIP, MODE.Exec and the target of a far transfer, or a TIP.PGE.
inline auto take_far_transfer(twin_state& state, std::size_t i) -> std::size_t {
    time_within within;
    std::size_t k = i;
    if (state.evidence.is_at(k, kind::pip)) { within.add(state.all[k++]); }
    for (; state.evidence.is_at(k, kind::mtc) || state.evidence.is_at(k, kind::cyc); ++k) {
        within.add(state.all[k]);
    }
    if (state.evidence.is_at(k, kind::mode_exec)) {
        state.run.set_mode(state.all[k].as<packet::mode_exec>());
        within.add(state.all[k++]);
    }
    for (; state.evidence.is_at(k, kind::mtc) || state.evidence.is_at(k, kind::cyc); ++k) {
        within.add(state.all[k]);
    }
    bool const enters = state.evidence.is_at(k, kind::tip_pge);
    if (k == state.all.size()) {  // the target is not stored
        state.run.go(state.run.code(true), inside(state), state.run.takes_of(within));
        return k;
    }
    if (!enters && !state.evidence.is_at(k, kind::tip) && !state.evidence.is_at(k, kind::tip_pgd)) {
        return k;
    }
    if (enters && !state.is_broadwell) {  // whose PSB+ before TIP.PGE has shown it
        if (!state.evidence.is_at(i, kind::pip)) { settle(state, i, false); }
    }
    auto const& target = state.all[k];
    within.add(target);
    bool const is_traced = enters || target.has_ip;
    auto const takes = state.run.takes_of(within);
    state.run.go(state.run.code(is_traced, is_wide(state, target)),
                 is_traced ? target.ip : state.run.outside(), takes);
    state.now = state.evidence.is_at(k, kind::tip_pgd) ? tracing::out : tracing::on;
    return k + 1;
}

/// A PSB+ before a TIP.PGE: broadwell generates one before each.
inline auto enter_with_psb(twin_state& state, std::size_t i, group const& in) -> std::size_t {
    settle(state, i, false);
    if (in.pip()) { state.run.set_pip(*in.pip()); }
    if (in.exec()) { state.run.set_mode(*in.exec()); }
    std::size_t const pge = after_times(state.all, in.next);
    time_within within;
    for (std::size_t k = in.next; k <= pge && k < state.all.size(); ++k) {
        within.add(state.all[k]);
    }
    bool const is_stored = pge < state.all.size();
    state.run.go(state.run.code(true, is_stored && is_wide(state, state.all[pge])),
                 is_stored ? state.all[pge].ip : in.fup().value_or(inside(state)),
                 joined(state, in, within));
    state.now = tracing::on;
    return is_stored ? pge + 1 : pge;
}

inline void leave(twin_state& state, seen const& one) {
    // With an IP the filter range is left, without one the context.
    if (one.has_ip && is_wide(state, one)) {
        state.run.go(state.run.code(true, true), one.ip);
    } else if (one.has_ip) {
        state.run.execute(action::indirect_jump{one.ip});
    } else if (state.with.cr3_filter && !state.run.cpl_leaves()) {
        state.run.execute(
            action::mov_cr3{state.run.ip(), state.run.ip() + 3, state.run.other_cr3()});
    } else if (state.run.can_leave_context()) {
        state.run.go(state.run.code(false), state.run.outside());
    } else {
        state.run.execute(
            conditional_branches{{true}, state.run.outside()});  // a branch that would be in a TNT
    }
    state.now = tracing::out;
}

/// MOV CR3, or the PIP of a far transfer.
inline auto take_pip(twin_state& state, std::size_t i) -> std::size_t {
    if (state.now == tracing::out) {
        settle(state, i, false);
        state.run.visit_context(true);
    }
    state.run.set_pip(state.all[i].as<packet::pip>());
    std::size_t const after = after_times(state.all, i + 1);
    bool const is_far = state.evidence.is_at(after, kind::mode_exec) ||
                        (state.now == tracing::out && state.evidence.is_at(after, kind::tip_pge));
    bool const is_new = state.run.state().code.cr3 !=
                        state.run.traced.cr3;  // a far transfer has no PIP without a new CR3
    constexpr std::size_t max_moments = 6;
    if (is_far && state.choices.ask(question::transfer, is_new && after - i <= max_moments)) {
        return take_far_transfer(state, i);
    }
    state.run.execute(action::mov_cr3{state.run.ip(), state.run.ip(), state.run.traced.cr3});
    return i + 1;
}

/// An asynchronous event, or another one with a FUP: its packets up to the target.
inline auto take_fup(twin_state& state, std::size_t i) -> std::size_t {
    std::uint64_t const from = state.all[i].ip;
    time_within within;
    std::size_t k = i + 1;
    auto const skip_times = [&] {
        for (; state.evidence.is_at(k, kind::mtc) || state.evidence.is_at(k, kind::cyc); ++k) {
            within.add(state.all[k]);
        }
    };
    auto const take = [&](kind which) {
        skip_times();
        if (!state.evidence.is_at(k, which)) { return false; }
        within.add(state.all[k++]);
        return true;
    };
    bool const has_pip = take(kind::pip);
    std::size_t const at_pip = k - 1;
    bool const has_mode = take(kind::mode_exec);
    std::size_t const at_mode = k - 1;
    skip_times();
    bool const is_tip = state.evidence.is_at(k, kind::tip);
    if (k == state.all.size()) {  // the target is not stored
        state.run.execute(action::interrupt{from, from, state.run.code(true), interrupt_vector});
        return k;
    }
    if (!is_tip && !state.evidence.is_at(k, kind::tip_pgd)) { return i + 1; }
    if (has_pip) { state.run.set_pip(state.all[at_pip].as<packet::pip>()); }
    if (has_mode) { state.run.set_mode(state.all[at_mode].as<packet::mode_exec>()); }
    auto const& last = state.all[k];
    within.add(last);
    bool const is_traced = is_tip || last.has_ip;
    if (!is_traced && state.choices.ask(question::fell, state.run.traced.who.os)) {
        disable(state, from, within);
        return k + 1;
    }
    state.run.execute(action::interrupt{from, is_traced ? last.ip : state.run.outside(),
                                        state.run.code(is_traced, is_wide(state, last)),
                                        interrupt_vector},
                      state.run.takes_of(within));
    state.now = is_tip ? tracing::on : tracing::out;
    return k + 1;
}

}  // namespace pt_twin
