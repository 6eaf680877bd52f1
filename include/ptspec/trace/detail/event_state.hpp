// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/binder.hpp>
#include <ptspec/trace/detail/event_queue.hpp>
#include <ptspec/trace/item.hpp>
#include <ptspec/trace/no_clock.hpp>

namespace ptspec::trace::detail {

/// An IP, if it is known.
struct known_ip {
    bool is_known = false;
    uint64_t ip = 0;
};

/// What the events of the next packet depend on: the binder, which says what the packet belongs
/// to, the clock, and the events that wait for later packets.
///
/// Shape:  a value of fixed size, with room for `Room` events.
template <event_clock Clock, unsigned Room>
struct event_state {
    binder binds;
    Clock clock;
    cpu::quirk_set quirks;
    bool has_last_ip;             ///< a PSB was read
    bool awaits_abort = false;    ///< BDM64: the first pending event is an indirect branch
    bool is_interrupted = false;  ///< other packets came after the packets of an INIT
    known_ip disabled{};          ///< the IP of the last TIP.PGD
    known_ip stopped{};           ///< where the core clock stopped
    execution_state before{};     ///< before the events that are ready
    time own_time{};              ///< of the packet that is added, if it has a CYC
    bool has_waiting = false;
    item waiting{};  ///< the next item, which the reader has read but not added
    event_queue<Room> events{};

    constexpr event_state(Clock const& first, cpu::quirk_set set, bool starts_at_psb) noexcept
        : binds{set}, clock{first}, quirks{set}, has_last_ip{starts_at_psb} {}

    /// The state of the processor after the last event that was taken from the queue.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state {
        if (!events.has_ready()) { return binds.state(); }
        execution_state state = before;
        state.enabled = events.all[events.first - 1].enabled;
        return state;
    }
    /// PacketEn, for an event.
    [[nodiscard]] constexpr auto known_enabled() const noexcept -> tracing {
        return binds.in_overflow() ? tracing::unknown : binds.state().enabled;
    }

    // ------------------------------------------------------------------------- room

    /// One packet adds at most those set aside, a damage, its own and `resumed`.
    static constexpr unsigned max_added = event_queue<Room>::max_aside + 3;
    /// The maximum number of events that wait for a packet. If more events wait, the pending events
    /// are returned without an IP. `event_buffer` needs room for one more.
    static constexpr unsigned max_waiting = Room - max_added - 1;

    /// True if there may be no room for the events of a packet.
    [[nodiscard]] constexpr auto is_full() const noexcept -> bool {
        return events.count > max_waiting;
    }
    /// Makes the held events other than `resumed` ready. If no event is held, makes the pending
    /// events ready without an IP.
    constexpr void make_room() noexcept {
        events.held == 0 ? complete_pending() : events.release_some();
    }

    // ------------------------------------------------------------------------- new events

    /// Gives the packet to the clock, and sets `own_time`. A CYC directly before the packet gives
    /// its time, but with a threshold not that of the next packet: GEN-213. At an OVF, the clock
    /// loses the upper bound.
    constexpr auto add_to_clock(packet::any_packet const& packet) noexcept -> rule {
        if constexpr (__is_empty(Clock)) {
            return clock.add(packet);
        } else {
            own_time = clock.now();
            rule const broken = clock.add(packet);
            if (packet.is<packet::ovf>()) { own_time = clock.now(); }
            return broken;
        }
    }
    /// The event of a packet that was given to the clock. Only some packets have a CYC, and the
    /// status packets of a PSB+ have none: GEN-213.
    constexpr auto made(event_type what, packet::any_packet const& packet,
                        packet_place place) noexcept -> event {
        bool const has_cyc = packet::cyc_kinds.has(packet.kind()) && !binds.in_psb_plus();
        return {.what = what,
                .enabled = known_enabled(),
                .offset = place.offset,
                .packet = packet,
                .when = has_cyc ? own_time : clock.now_without_cyc()};
    }
    /// Appends the event of a packet, which is pending.
    constexpr auto put(event_type what, packet::any_packet const& packet,
                       packet_place place) noexcept -> event& {
        events.put(made(what, packet, place));
        return events.all[events.count - 1];
    }
    constexpr void put_ready(event_type what, packet::any_packet const& packet,
                             packet_place place) noexcept {
        (void)put(what, packet, place);
        complete_pending();
    }
    constexpr auto made(event_type what, item const& got) noexcept -> event {
        return {.what = what,
                .enabled = known_enabled(),
                .offset = got.offset,
                .packet = got.packet,
                .when = clock.now_without_cyc()};
    }

    // ------------------------------------------------------------------------- pending events

    constexpr void add_ready(event const& one) noexcept {
        events.put(one);
        complete_pending();
    }
    constexpr void complete_pending() noexcept {
        awaits_abort = false;
        events.complete(binds.may_have_resumed());
    }
    constexpr void complete_pending_at(uint64_t ip) noexcept {
        events.set_ip_of_pending(ip);
        complete_pending();
    }
    constexpr void release() noexcept {
        if (!binds.may_have_resumed()) [[likely]] { events.release(); }
    }
    constexpr void insert(unsigned index, event const& one) noexcept {
        events.insert(index, one);
        release();
    }
    /// After an OVF: keeps or removes the held events `resumed`.
    constexpr void settle(resumption resumed) noexcept {
        if (resumed >= resumption::withdrawn) {
            events.withdraw(resumed == resumption::refuted);
            if (resumed == resumption::at_fup) { events.resume_at_fup(); }
        }
        release();
    }

    // ------------------------------------------------------------------------- INIT

    /// Called after each packet while an asynchronous event is pending. The events of an INIT wait
    /// for the TIP of the SIPI; the events between are returned first. Source: GEN-290.
    constexpr void continue_event(packet::any_packet const& packet, binding bound) noexcept {
        bool const is_fup = packet.is<packet::fup>();
        if (!binds.in_event() || (is_fup && bound.to == owner::asynchronous)) {
            bool const ends = bound.to == owner::asynchronous && !is_fup;
            return ends ? return_to_event() : leave_event();
        }
        if (bound.to == owner::asynchronous) { return return_to_event(); }
        if (is_interrupted || packet::unbound_kinds.has(packet.kind())) { return; }
        is_interrupted = true;
        if (!events.set_aside_pending()) { complete_pending(); }
    }
    /// Makes the events of an INIT pending again.
    constexpr void return_to_event() noexcept {
        if (!is_interrupted) { return; }
        is_interrupted = false;
        complete_pending();
        events.restore_pending();
    }
    /// Returns the events of an INIT without its end.
    constexpr void leave_event() noexcept {
        if (!is_interrupted) { return; }
        is_interrupted = false;
        if (!binds.in_psb_plus()) { complete_pending(); }  // in a PSB+ they belong to it
        events.restore_held();
        release();
    }

    // ------------------------------------------------------------------------- losses

    /// Adds the event of an item that is no packet. Packets may be lost there, so what is pending
    /// stays incomplete.
    constexpr void lose(event_type what, item const& got) noexcept {
        settle(binds.end_doubt());
        leave_event();
        binds.restart();
        clock.lose();
        auto one = made(what, got);
        one.error = got.error;
        one.broken = got.broken;
        one.skipped = got.skipped < 0             ? 0
                      : got.skipped > 0xFFFF'FFFF ? 0xFFFF'FFFF
                                                  : static_cast<uint32_t>(got.skipped);
        add_ready(one);
    }
};

}  // namespace ptspec::trace::detail
