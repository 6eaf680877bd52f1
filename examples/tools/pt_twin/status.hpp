// SPDX-License-Identifier: BSL-1.0
#pragma once

// PSB+, and packets that were lost.

#include "transfers.hpp"

namespace pt_twin {

inline auto take_psb(twin_state& state, std::size_t i) -> std::size_t {
    auto const in = psb_plus_at(state.all, i);
    std::size_t const next = in.next;
    std::size_t const pge = after_times(state.all, next);
    bool const is_cut_before_pge = state.is_broadwell && pge == state.all.size() && in.exec();
    bool const is_of_pge = is_cut_before_pge ||
                           (in.fup() && state.evidence.is_at(pge, kind::tip_pge));
    bool const is_rise = state.is_broadwell
                             ? !in.fup() && i != 0 && state.all[i - 1].is(kind::tip_pgd)
                             : state.evidence.must_have_fallen(i) || is_of_pge ||
                                   (state.evidence.may_have_fallen(i) &&
                                    state.evidence.has_other_os(i, state.run.traced.who));
    if (state.now == tracing::out && state.run.can_fall_outside() &&
        state.choices.ask(question::fell, is_rise)) {
        disable(state, 0, {});
    }
    if (state.now == tracing::off) { return rise_with_psb(state, i, in); }
    state.run.set_clocks(in);
    if (state.is_broadwell && state.now == tracing::out && is_of_pge) {
        return enter_with_psb(state, i, in);
    }
    if (in.fup()) {
        state.run.execute(action::sequential{*in.fup()});
    } else if (state.now == tracing::out && in.is_complete) {
        settle(state, i, false);
        bool const tells = state.with.has_tsx || state.run.traced.who.os || vmcs_tells(state);
        visit_context(state, tells ? has_context(state, in) : state.run.is_in_context());
    }
    state.run.execute(action::psb_due{}, state.run.takes_of(in));
    return next;
}

/// Packets were lost. The FUP after OVF, and a PSB+ before or after it, show what changed.
inline auto take_overflow(twin_state& state, std::size_t i) -> std::size_t {
    state.run.execute(packet_loss{});
    std::size_t next = i + 1;
    group in;
    bool const has_cyc = i != 0 && state.evidence.is_at(i - 1, kind::cyc);
    bool const may_rise = state.evidence.may_be_rise(next) ||
                          state.evidence.is_at(next, kind::mtc) ||
                          state.evidence.is_at(next, kind::cyc);
    // TraceEn fell while packets were lost
    if (may_rise &&
        state.choices.ask(question::lost_fall, state.evidence.rises_at(next) && !has_cyc)) {
        disable(state, 0, {});
        state.run.execute(action::overflow_end{state.run.ip()});
        return next;
    }
    bool is_psb_first = state.evidence.is_at(next, kind::psb);
    if (is_psb_first) {
        in = psb_plus_at(state.all, next);
        bool const is_of_pge = in.fup() &&
                               state.evidence.is_at(after_times(state.all, in.next), kind::tip_pge);
        if (state.is_broadwell && is_of_pge) {
            is_psb_first = false;
            in = {};
        } else {
            next = in.next;
        }
    }
    bool const is_on = state.evidence.is_at(next, kind::fup);
    if (!is_psb_first && is_on && state.evidence.is_at(next + 1, kind::psb)) {
        in = psb_plus_at(state.all, next + 1);
    }
    if (in.pip()) { state.run.set_pip(*in.pip()); }
    if (in.exec()) { state.run.set_mode(*in.exec()); }
    if (in.vmcs() && state.run.state().vmcs != in.vmcs()->get<packet::vmcs::base>()) {
        state.run.set_vmcs(*in.vmcs());
    }
    settle(state, i + 1, true);
    std::uint64_t const to = is_on ? state.all[next].ip : state.run.outside();
    bool const is_in_context = is_on || state.choices.ask(
                                            question::context,
                                            has_context(state, in) ||
                                                (!is_psb_first && !state.with.filters.empty()));
    state.run.go(state.run.code(is_in_context), to);
    state.now = is_on ? tracing::on : tracing::out;
    moments takes;
    if (is_psb_first) {
        state.run.set_clocks(in);
        takes = state.run.takes_of(in);
        state.run.execute(action::psb_due{});
    }
    state.run.execute(action::overflow_end{to}, takes);
    return is_on ? next + 1 : next;
}

}  // namespace pt_twin
