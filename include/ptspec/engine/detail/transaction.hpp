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
constexpr void emit_mode_tsx(generator_state& s, uint64_t at, Sink& sink) noexcept {
    auto const enables = s.enables();
    if (!enables.trigger || !enables.context || !enables.branch) { return; }
    put_packets(s, sink, [&](auto& batch) {
        add_mode_tsx(s, batch);
        if (enables.packet()) { batch.template add_ip<packet::fup>(s.in_packets(at)); }
    });
}

template <class Sink>
constexpr void handle(generator_state& s, action::transaction_begin const& e, Sink& sink) noexcept {
    if (s.tx_depth < 0xFF) { ++s.tx_depth; }
    s.ip = e.next;
    if (s.tx_depth == 1) { emit_mode_tsx(s, e.at, sink); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::transaction_end const& e, Sink& sink) noexcept {
    bool const ends = s.tx_depth == 1;
    if (s.tx_depth != 0) { --s.tx_depth; }
    s.ip = e.next;
    if (ends) { emit_mode_tsx(s, e.at, sink); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::transaction_abort const& e, Sink& sink) noexcept {
    control_transfer transfer{.to = e.to};
    transfer.from = s.in_packets(e.at);
    transfer.has_fup = true;
    transfer.aborts_transaction = true;
    s.tx_depth = 0;
    emit_transfer(s, sink, transfer, s.code);
}

}  // namespace ptspec::engine::detail
