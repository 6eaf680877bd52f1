// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/transaction.hpp>
#include <ptspec/engine/detail/control_transfer.hpp>

/// Transactions of TSX.
///
/// Source: GEN-250..258.
namespace ptspec::engine::detail {

/// Source: GEN-250, GEN-251, GEN-255.
template <class Sink>
constexpr void emit_mode_tsx(generator_state& s, uint64_t at, Sink& to) noexcept {
    auto const now = s.enables();
    if (!now.trigger || !now.context || !now.branch) { return; }
    put_packets(s, to, [&](auto& batch) {
        add_mode_tsx(s, batch);
        if (now.packet()) { batch.template add_ip<packet::fup>(s.in_packets(at)); }
    });
}

template <class Sink>
constexpr void handle(generator_state& s, action::transaction_begin const& e, Sink& to) noexcept {
    if (s.tx_depth < 0xFF) { ++s.tx_depth; }
    s.ip = e.next;
    if (s.tx_depth == 1) { emit_mode_tsx(s, e.at, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::transaction_end const& e, Sink& to) noexcept {
    bool const ends = s.tx_depth == 1;
    if (s.tx_depth != 0) { --s.tx_depth; }
    s.ip = e.next;
    if (ends) { emit_mode_tsx(s, e.at, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::transaction_abort const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.from = s.in_packets(e.at);
    how.has_fup = true;
    how.aborts_transaction = true;
    s.tx_depth = 0;
    transfer(s, to, how, s.code);
}

}  // namespace ptspec::engine::detail
