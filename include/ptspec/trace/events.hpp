// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/event_visitor.hpp>
#include <ptspec/trace/packet_errata.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/base/attribute.hpp>

/// What happened: the events that the packets of a trace describe, with their IPs and times.
namespace ptspec::trace {

/// Reads the events of a trace in order.
///
/// An event whose IP is in a later FUP, TIP or PSB+ is returned after that packet; its time is that
/// of its own packet, or of the TIP that ends a compound event. Events of a PSB+ have its time and
/// the IP of its FUP.
///
/// Damage is an event that names the violated rule. After bytes that are no packet, the reader
/// continues at the next PSB, as `reader` does. After a packet that violates only the order of
/// packets, it continues with that packet. If this loses the control flow, the event `resumed` has
/// the next IP. Branches before it, and before the first packet that shows PacketEn, are at unknown
/// IPs: their `enabled` is `unknown`.
///
/// After an OVF, a later packet may decide whether tracing resumed at an IP: GEN-343, APL12. Events
/// from `resumed` on are returned after that packet. If there are too many, the events other than
/// `resumed` are returned earlier.
///
/// The reader reads ahead up to the next packet other than TNT, TIP, PAD and timing packets.
///
/// Shape:  a value of about 4 KB with `Room` events, 16 or more. A copy continues independently.
/// Source: PKT-250..256, PKT-270..278; GEN-246; those of `binder` and `clock`.
template <event_clock Clock = no_clock, opcode_hook Hook = no_hook, class Packets = packet::all,
          unsigned Room = 32>
class event_reader : public read_by_next<event> {
public:
    /// Reads a whole trace from its first PSB on; from its first byte if `options.sync` is false.
    /// Then IPs, and the state of the processor, are unknown up to the first PSB.
    constexpr explicit event_reader(borrowed_bytes whole, Clock clock = {},
                                    cpu::quirk_set quirks = {}, Hook hook = {},
                                    reader_options options = from_first_psb) noexcept
        : reader_{whole, options, hook}, errata_{quirks}, state_{clock, quirks, options.sync} {}
    /// Reads a trace that arrives in chunks.
    constexpr explicit event_reader(Clock clock = {}, cpu::quirk_set quirks = {}, Hook hook = {},
                                    reader_options options = from_first_psb) noexcept
        : reader_{options, hook}, errata_{quirks}, state_{clock, quirks, options.sync} {}

    template <class Other>
        requires(!event_clock<Other>)
    event_reader(borrowed_bytes, Other const&) = delete;  // clock, quirks

    /// Gives the next chunk: at the start, and after `event_type::need_input`. At other times it
    /// returns false and changes nothing.
    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        return reader_.feed(chunk);
    }
    /// Ends the trace: no more chunks follow.
    constexpr void finish() noexcept { reader_.finish(); }
    /// Where reading continues, in bytes from the start of the trace. `next` may not have returned
    /// all events of the packets before it yet.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return state_.has_waiting ? state_.waiting.offset : reader_.offset();
    }

    /// The next event. It stays valid until the next call.
    [[nodiscard]] constexpr auto next() noexcept -> event const& {
        if (!state_.events.has_ready()) [[unlikely]] { refill(no_sink{}); }
        return state_.events.take();
    }
    /// Passes branches that need no binding to `out`, which is like `detail::event_buffer`. Returns
    /// the next event after them, or perhaps nullptr if a function of `out` returns false.
    template <class Out>
    [[nodiscard]] constexpr auto next_after(Out out) -> event const* {
        if (!state_.events.has_ready()) { refill(out); }
        return state_.events.has_ready() ? &state_.events.take() : nullptr;
    }
    /// The state of the processor after the last event that `next` returned.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state {
        return state_.state();
    }
    /// The clock, which may have read ahead.
    [[nodiscard]] constexpr auto clock() const noexcept -> Clock const& { return state_.clock; }

private:
    static constexpr reader_options from_first_psb{.sync = true};

    using state_type = detail::event_state<Clock, Room>;
    struct no_sink {};

    /// Reads until an event is ready, or `out` stops.
    template <class Out>
    constexpr void refill(Out out) {
        auto& events = state_.events;
        events.compact();
        if (events.count == 0 && events.aside_count == 0) { state_.before = state_.binds.state(); }
        while (events.ready == 0) {
            if (state_.is_full()) { return state_.make_room(); }
            if (state_.has_waiting) {
                state_.has_waiting = false;
                add(state_.waiting);
            } else if (needs_single_packets()) {
                (void)errata_.skip(reader_);
                add(reader_.next());
            } else if constexpr (same_as<Out, no_sink>) {
                read_batch();
            } else if (!pass_branches(out)) {
                return;
            }
        }
        if (!state_.has_last_ip) [[unlikely]] { events.hide_ips(); }
    }
    constexpr void add(item got) noexcept {
        if (errata_.is_needed()) [[unlikely]] {
            auto const more = errata_.correct(got, reader_);
            if (more.what == item_type::need_input) {
                state_.waiting = got;
                state_.has_waiting = true;
                return detail::add_item(state_, more);
            }
        }
        detail::add_item(state_, got);
    }
    /// Visits packets up to one that the visitor does not take.
    template <class Out>
    constexpr auto visit(Out out) -> detail::event_visitor<state_type, Out> {
        bool const nothing_pending = state_.events.count == 0;
        bool const takes_branches = state_.binds.binds_branches() && nothing_pending;
        detail::event_visitor<state_type, Out> visitor{out, &state_, takes_branches,
                                                       nothing_pending};
        (void)reader_.for_each(visitor);
        return visitor;
    }
    /// Adds the events of packets until one may change more of the state than PacketEn.
    ///
    /// noinline: inlined, a trace without CYCs takes 4 % more instructions (g++ 12). flatten: else
    /// g++ keeps the visitor in memory, and events with times take 5 to 7 % more.
    PTSPEC_ATTRIBUTE(noinline) PTSPEC_ATTRIBUTE(flatten)
    constexpr void read_batch() noexcept {
        auto& events = state_.events;
        auto const after = visit(
            detail::event_buffer{events.all + events.count, events.all + Room});
        if (after.nothing_pending) { events.set_end_of_ready(after.out.next); }
    }
    /// False if `out` has stopped.
    template <class Out>
    constexpr auto pass_branches(Out out) -> bool {
        auto const after = visit(out);
        return state_.has_waiting || !after.out.has_stopped();
    }
    [[nodiscard]] constexpr auto needs_single_packets() const noexcept -> bool {
        return state_.quirks.bits != 0 &&
               (errata_.needs_next() || state_.quirks.has(cpu::quirk::bdm64));
    }

    reader<Hook, Packets> reader_;
    packet_errata errata_;
    state_type state_;
};

}  // namespace ptspec::trace

#undef PTSPEC_ATTRIBUTE
