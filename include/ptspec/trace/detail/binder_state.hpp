// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/packet/kind_set.hpp>
#include <ptspec/trace/binding.hpp>
#include <ptspec/trace/detail/pending.hpp>
#include <ptspec/trace/known_state.hpp>
#include <ptspec/trace/psb_plus.hpp>

namespace ptspec::trace::detail {

using packet::kind;

/// A packet that waits for others.
struct pending_packet {
    uint64_t offset = 0;
    packet::kind kind = packet::kind::pad;
};

/// What the binding of the next packet depends on.
struct binder_state {
    execution_state execution{};
    uint32_t flags = pending::at_start;  ///< of `pending`
    cpu::quirk_set quirks{};
    known_state known{};         ///< the values that a PSB+ must repeat
    psb_plus psb{};              ///< the open PSB+, or the last one
    violation violated{};        ///< the first rule that the packet breaks
    pending_packet here{};       ///< the packet that is bound
    pending_packet mode_at{};    ///< the MODE.Exec of `pending::mode`
    pending_packet owner_at{};   ///< the last packet of `pending::owners_of_fup`
    uint64_t event_data_at = 0;  ///< the offset of the EVD of `pending::event_data`
    uint64_t event_at = 0;       ///< the offset of the FUP of `pending::event` and `aborting`

    [[nodiscard]] constexpr auto has(uint32_t any_of) const noexcept -> bool {
        return (flags & any_of) != 0;
    }
    constexpr void set(uint32_t these, bool value = true) noexcept {
        flags = value ? flags | these : flags & ~these;
    }
    constexpr void set(tracing value) noexcept {
        execution.enabled = value;
        set(pending::needs_tip_pge, false);
        if (value != tracing::off) { set(pending::after_pgd, false); }
        set(pending::off, value == tracing::off);
        set(pending::entering, value == tracing::entering);
        if (value == tracing::off || value == tracing::unknown) { known.forget(); }
    }
    [[nodiscard]] constexpr auto is_on() const noexcept -> bool {
        return execution.enabled == tracing::on || execution.enabled == tracing::entering;
    }
    /// Sets tracing to on: the IP is known.
    constexpr void resume() noexcept {
        set(pending::at_start | pending::lost | pending::overflow, false);
        set(tracing::on);
    }
    [[nodiscard]] constexpr auto is_any_of(packet::kind_set kinds) const noexcept -> bool {
        return kinds.has(here.kind);
    }
    /// Records a violation. Only the first one of a packet counts.
    constexpr void violate(rule broken, pending_packet const& packet) noexcept {
        if (violated.broken == rule::none) { violated = {packet.offset, broken, packet.kind}; }
    }
    constexpr void violate(rule broken) noexcept { violate(broken, here); }
    /// Takes the value of a packet. Returns false if earlier packets contradict it.
    template <packet::packet_type Packet>
    constexpr auto take(Packet packet, bool is_on) noexcept -> bool {
        execution.take(packet);
        return known.take(packet, is_on);
    }
    /// Marks the control flow as lost until the next packet with an IP.
    constexpr void lose_flow() noexcept {
        set(tracing::unknown);
        set(pending::at_start, false);
        set(pending::lost);
    }
    /// Confirms that PacketEn is 1, as the last PSB+ reported: no TIP.PGE followed it.
    constexpr void confirm_enabled() noexcept {
        if (execution.enabled == tracing::entering) { set(tracing::on); }
    }
    /// TIP.PGD or TraceStop: tracing is off, and nothing that was pending or lost matters now.
    constexpr void end_tracing(uint32_t flag) noexcept {
        set(pending::waiting | pending::overflow | pending::at_start | pending::lost |
                pending::doubts,
            false);
        set(tracing::off);
        set(flag);
    }
    constexpr void begin_event(uint32_t flag) noexcept {
        set(flag);
        event_at = here.offset;
    }
    constexpr void check_stop() noexcept {
        if (has(pending::stopped)) { violate(rule::GEN_020); }
        set(pending::stopped, false);
    }
    /// While PacketEn is 0, no FUP follows MODE.TSX: PKT-093.
    constexpr void drop_lone_transaction() noexcept {
        if (owner_at.kind == kind::mode_tsx) { set(pending::owners_of_fup, false); }
    }
};

}  // namespace ptspec::trace::detail
