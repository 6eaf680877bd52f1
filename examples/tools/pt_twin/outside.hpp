// SPDX-License-Identifier: BSL-1.0
#pragma once

// What happened where no packet shows it.

#include "twin_state.hpp"

namespace pt_twin {

/// XBEGIN or XEND.
inline void execute_transaction(twin_state& state, bool begins, std::uint64_t at,
                                std::uint64_t next) {
    if (begins) {
        state.run.execute(action::transaction_begin{at, next});
    } else {
        state.run.execute(action::transaction_end{at, next});
    }
}

inline auto is_in_transaction(packet::mode_tsx const& one) -> bool {
    return one.get<packet::mode_tsx::InTX>();
}

inline auto vmcs_tells(twin_state const& state) -> bool {
    return state.with.has_vmcs && state.run.state().options.vmcs_needs_context;
}

/// True if ContextEn is 1, as a PSB+ shows it.
inline auto has_context(twin_state const& state, group const& in) -> bool {
    return in.tsx() || in.pip() || (vmcs_tells(state) && in.vmcs());
}

/// Goes to code outside of the filters that is in the context or not, as evidence has it.
inline void visit_context(twin_state& state, bool evident) {
    if (state.with.filters.empty()) { return; }
    state.run.visit_context(state.choices.ask(question::context, evident));
}

inline auto has_other_transaction(twin_state const& state, std::size_t i) -> bool {
    for (std::size_t k = i; k < state.all.size(); ++k) {
        if (state.all[k].is(kind::ovf)) { return false; }
        std::optional<packet::mode_tsx> tsx;
        bool const begins_or_ends = state.all[k].is(kind::mode_tsx);
        if (begins_or_ends) { tsx = state.all[k].as<packet::mode_tsx>(); }
        if (state.all[k].is(kind::psb)) { tsx = psb_plus_at(state.all, k).tsx(); }
        if (!tsx) { continue; }
        return (is_in_transaction(*tsx) != begins_or_ends) != (state.run.state().tx_depth != 0);
    }
    return false;
}

/// The PIP of the next PSB+ that has one, unless another PIP precedes it.
inline auto next_pip(twin_state const& state, std::size_t i) -> std::optional<packet::pip> {
    for (std::size_t k = i; k < state.all.size() && !state.all[k].is(kind::pip); ++k) {
        if (!state.all[k].is(kind::psb)) { continue; }
        auto const in = psb_plus_at(state.all, k);
        if (in.pip()) { return in.pip(); }
        k = in.next - 1;
    }
    return std::nullopt;
}

inline auto next_vmcs(twin_state const& state, std::size_t i) -> std::optional<packet::vmcs> {
    for (std::size_t k = i; k < state.all.size() && !state.all[k].is(kind::vmcs); ++k) {
        if (!state.all[k].is(kind::psb)) { continue; }
        auto const in = psb_plus_at(state.all, k);
        if (in.vmcs()) { return in.vmcs(); }
        k = in.next - 1;
    }
    return std::nullopt;
}

/// What changed where no packet shows it: transactions, CR3 and the VMCS. The next PSB+ does.
/// `is_silent`: TraceEn is 0, or packets are lost.
inline void settle(twin_state& state, std::size_t i, bool is_silent) {
    bool const is_other_transaction = state.with.has_transactions &&
                                      state.choices.ask(question::transaction,
                                                        has_other_transaction(state, i));
    auto const pip = next_pip(state, i);
    bool const is_other_cr3 = pip &&
                              state.choices.ask(
                                  question::cr3,
                                  pip->get<packet::pip::CR3>() != state.run.traced.cr3 ||
                                      pip->get<packet::pip::NR>() != state.run.traced.non_root);
    auto const vmcs = next_vmcs(state, i);
    bool const is_other_vmcs = vmcs &&
                               state.choices.ask(question::vmcs, vmcs->get<packet::vmcs::base>() !=
                                                                     state.run.state().vmcs);
    if (!is_other_transaction && !is_other_cr3 && !is_other_vmcs) { return; }
    if (!is_silent) { state.run.visit_context(false); }
    if (!is_silent && state.run.is_in_context()) { return; }  // packets would show it
    if (is_other_transaction) {
        std::uint64_t const ip = state.run.ip();
        execute_transaction(state, state.run.state().tx_depth == 0, ip, ip);
    }
    if (is_other_cr3) {
        state.run.set_pip(*pip);
        if (!is_silent) { state.run.go(state.run.code(false), state.run.outside()); }
    }
    if (is_other_vmcs) { state.run.set_vmcs(*vmcs); }
}

}  // namespace pt_twin
