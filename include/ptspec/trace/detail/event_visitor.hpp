// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/packet_events.hpp>
#include <ptspec/trace/detail/whole_psb_plus.hpp>
#include <ptspec/trace/visitor.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::trace::detail {

/// Writes an event without its time, member by member: one that is built and copied takes 2 % more
/// instructions (g++ 12). It has no target.
///
/// always_inline: for the reason given at `event_buffer`.
#if defined(__clang__)
PTSPEC_ATTRIBUTE(always_inline)
#endif
constexpr void write_event(event& to, event_type what, tracing enabled, known_ip at,
                           packet::any_packet const& packet, uint64_t offset) noexcept {
    to.what = what;
    to.enabled = enabled;
    to.is_status = false;
    to.has_ip = at.is_known;
    to.has_to = false;
    to.error = packet::error::none;
    to.broken = rule::none;
    to.skipped = 0;
    to.offset = offset;
    to.ip = at.ip;
    to.to = 0;
    to.packet = packet;
}

/// Writes the events of branches into a buffer: `next` is before `end`. A function returns false if
/// the buffer is full then.
///
/// always_inline: else clang keeps the visitor in memory, and events with times take 2.3 times as
/// long (clang 19).
struct event_buffer {
    static constexpr bool skips_packets = false;
    static constexpr bool takes_psb_plus = true;

    event* next;
    event* end;

    template <packet::packet_type Packet, class Clock>
#if defined(__clang__)
    PTSPEC_ATTRIBUTE(always_inline)
#endif
    constexpr auto add_tnt(Packet const& packet, packet_place place, Clock& clock) noexcept
        -> bool {
        return write(event_type::branches, packet, place, clock, false, false, 0, 0);
    }
    template <class Clock>
#if defined(__clang__)
    PTSPEC_ATTRIBUTE(always_inline)
#endif
    constexpr auto add_tip(packet::tip const& packet, packet_place place, Clock& clock) noexcept
        -> bool {
        bool const has_to = packet.has_ip();
        return write(event_type::indirect_branch, packet, place, clock, false, has_to, 0,
                     has_to ? place.ip : 0);
    }
    template <class Clock>
    constexpr auto add_tip_pgd(packet::tip_pgd const& packet, packet_place place,
                               Clock& clock) noexcept -> bool {
        bool const has_to = packet.has_ip();
        return write(event_type::disabled, packet, place, clock, false, has_to, 0,
                     has_to ? place.ip : 0);
    }
    template <class Clock>
    constexpr auto add_tip_pge(packet::tip_pge const& packet, packet_place place,
                               Clock& clock) noexcept -> bool {
        bool const has_ip = packet.has_ip();
        return write(event_type::enabled, packet, place, clock, has_ip, false,
                     has_ip ? place.ip : 0, 0);
    }
    template <class Clock>
    constexpr auto add_ptw(packet::ptw const& packet, packet_place place, Clock& clock) noexcept
        -> bool {
        return write(event_type::ptwrite, packet, place, clock, false, false, 0, 0);
    }
    template <class Clock>
    constexpr auto add_fup(packet::fup const& packet, packet_place place, Clock& clock) noexcept
        -> bool {
        event& one = *next;
        bool const has_room = write(event_type::async_branch, packet, place, clock, true, false,
                                    place.ip, 0);
        if constexpr (!__is_empty(Clock)) { one.when = clock.now_without_cyc(); }
        return has_room;
    }

private:
    template <packet::packet_type Packet, class Clock>
#if defined(__clang__)
    PTSPEC_ATTRIBUTE(always_inline)
#endif
    constexpr auto write(event_type what, Packet const& packet, packet_place place, Clock& clock,
                         bool has_ip, bool has_to, uint64_t ip, uint64_t target) noexcept -> bool {
        auto const enabled = what == event_type::disabled ? tracing::off : tracing::on;
        write_event(*next, what, enabled, {has_ip, ip}, {packet, place.length}, place.offset);
        next->has_to = has_to;
        next->to = target;
        if constexpr (!__is_empty(Clock)) { next->when = clock.now(); }
        clock.pass();
        ++next;
        return next != end;
    }
};

/// The result of `bind_after`: how a visitor continues.
struct after_binding {
    event* next = nullptr;  ///< where the next event is written
    bool nothing_pending = false;
    bool takes_branches = false;
    bool continues = false;
};

/// The result of `write_psb_plus`.
struct written_psb_plus {
    taken_psb_plus taken{};
    event* next = nullptr;  ///< where the next event is written
};

/// Binds a whole PSB+ that reports what the packets before it reported, and writes its events to
/// `first` and the elements after it. No event is pending before and after the call. Any other PSB+
/// is not taken. If there may be too little room, reading stops before the PSB+. See
/// `read_whole_psb_plus`.
///
/// noinline: for the reason given at `bind_after`.
template <class Packets, class State>
PTSPEC_ATTRIBUTE(noinline)
constexpr auto write_psb_plus(State& s, uint8_t const* bytes, size_t room, uint64_t offset,
                              bool strict, event* const first) noexcept -> written_psb_plus {
    constexpr unsigned most = 6;  // CBR, PIP, VMCS, MODE.Exec, MODE.TSX, and that of the PSB+
    if (first != s.events.all && first + most >= s.events.end()) {
        return {.taken = {.continues = false}};
    }
    auto const read = read_whole_psb_plus<Packets>(bytes, room, offset, strict,
                                                   s.binds.last_psb_plus());
    psb_plus const& status = read.status;
    if (read.size == 0 || !s.binds.try_psb_plus(status, true)) { return {}; }
    known_ip const ip{status.has_ip, status.has_ip ? status.ip : 0};
    event* next = first;
    for (size_t place = 0; place < read.size;) {
        uint8_t const* const at = bytes + place;
        size_t const row = row_at<Packets>(at, strict);
        unsigned const length = opcode_infos<Packets>.length[row];
        auto const id = opcode_infos<Packets>.kind[row];
        switch (id) {
            case packet::kind::psb:
            case packet::kind::psbend: (void)s.clock.add(packet::any_packet::of_kind(id)); break;
            case packet::kind::tsc: (void)s.clock.add(status.tsc); break;
            case packet::kind::tma: (void)s.clock.add(status.tma); break;
            case packet::kind::cbr: (void)s.clock.add(status.cbr); break;
            case packet::kind::pip: (void)s.clock.add(status.pip); break;
            default: break;
        }
        bool const is_end = id == packet::kind::psbend;
        auto const what = is_end ? event_type::psb : type_of(id);
        if (what != event_type::end) {
            wide_bits const mask = first_bytes_mask(length);
            write_event(*next, what, s.binds.state().enabled, ip,
                        {id, {load_le64(at) & mask.low, load_le64(at + 8) & mask.high}, length},
                        offset + place);
            next->is_status = !is_end;
            ++next;
        }
        place += length;
    }
    if constexpr (!__is_empty(bare_t<decltype(s.clock)>)) {
        auto const when = s.clock.now_of_psb_plus();
        for (event* each = first; each != next; ++each) { each->when = when; }
    }
    return {{read.size, ip.ip, true}, next};
}

/// Binds a packet after events that a visitor has written up to `next`. The packet is not bound but
/// kept as `waiting`, for the caller, if it may change more of the state than PacketEn while events
/// are ready, if there is no room, or if the processor has quirks.
///
/// noinline: `read_batch` of an event reader inlines all else that it calls.
template <class State>
PTSPEC_ATTRIBUTE(noinline)
constexpr auto bind_after(State& s, packet::any_packet const& packet, packet_place place,
                          event* next, bool nothing_pending) noexcept -> after_binding {
    constexpr packet::kind_set changes_state = packet::kinds_of(kind::pip, kind::vmcs,
                                                                kind::mode_exec, kind::mode_tsx);
    if (nothing_pending) { s.events.set_end_of_ready(next); }
    auto const enabled = s.binds.state().enabled;
    bool const is_known = enabled == tracing::on || enabled == tracing::off;
    bool const keeps_state = s.events.ready == 0 || (is_known && !changes_state.has(packet.kind()));
    if (s.quirks.bits != 0 || s.is_full() || !keeps_state) {
        // Here and not in the visitor: else events with times take 10 % more instructions (g++ 12).
        s.has_waiting = true;
        s.waiting = item_of(packet, place);
        return {.next = next, .nothing_pending = nothing_pending};
    }
    bool const had_ready = s.events.ready != 0;
    add_packet(s, packet, place);
    bool const is_ready = s.events.is_ready();
    return {.next = s.events.all + s.events.count,
            .nothing_pending = is_ready,
            .takes_branches = is_ready && s.binds.binds_branches(),
            .continues = had_ready || s.events.ready == 0 || s.binds.state() == s.before};
}

/// Visits the packets of a reader of events. While no event is pending, branches need no binding:
/// `Out` gets TNT, TIP, TIP.PGE and TIP.PGD, and returns false to stop. PAD, TSC, MTC and CYC have
/// no event, and are handled here. The other packets are bound if `Out` is an `event_buffer`; else,
/// and at an item that is no packet, the visitor stops.
///
/// always_inline: for the reason given at `event_buffer`.
template <class State, class Out>
struct event_visitor {
    Out out;
    State* state;
    bool takes_branches;
    bool nothing_pending;

    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tnt_short, packet::tnt_long>
#if defined(__clang__)
    PTSPEC_ATTRIBUTE(always_inline)
#endif
    constexpr auto operator()(Packet const& packet, packet_place place) -> bool {
        if (!takes_branches) { return bind(packet, place); }
        return out.add_tnt(packet, place, state->clock);
    }
#if defined(__clang__)
    PTSPEC_ATTRIBUTE(always_inline)
#endif
    constexpr auto operator()(packet::tip const& packet, packet_place place) -> bool {
        if (!takes_branches) {
            bool const ends = try_end_event(event_type::async_branch, packet.has_ip(), place.ip);
            return ends ? complete() : bind(packet, place);
        }
        return out.add_tip(packet, place, state->clock);
    }
    constexpr auto operator()(packet::tip_pgd const& packet, packet_place place) -> bool {
        if (!end_tracing({packet.has_ip(), place.ip})) {
            bool const ends = try_end_event(event_type::async_disabled, packet.has_ip(), place.ip);
            return ends ? complete() : bind(packet, place);
        }
        return out.add_tip_pgd(packet, place, state->clock);
    }
    constexpr auto operator()(packet::tip_pge const& packet, packet_place place) -> bool {
        if (!start_tracing()) { return bind(packet, place); }
        return out.add_tip_pge(packet, place, state->clock);
    }
    template <packet::packet_type Packet>
        requires same_as<Packet, packet::ptw>
    constexpr auto operator()(Packet const& packet, packet_place place) -> bool {
        if constexpr (same_as<Out, event_buffer>) {
            bool const has_fup = packet.template get<typename Packet::IP>();
            if (may_add() && state->binds.try_ptw(has_fup, place)) {
                (void)out.add_ptw(packet, place, state->clock);
                out.next[-1].enabled = state->binds.state().enabled;
                if (has_fup) { make_last_pending(); }
                return true;
            }
        }
        return bind(packet, place);
    }
    constexpr auto operator()(packet::fup const& packet, packet_place place) -> bool {
        if constexpr (same_as<Out, event_buffer>) {
            if (!packet.has_ip()) { return bind(packet, place); }
            if (may_add() && state->binds.try_event(place)) {
                (void)out.add_fup(packet, place, state->clock);
                make_last_pending();
                return true;
            }
            if (may_complete() && state->binds.try_end_ptw()) {
                state->events.set_ip_of_pending(place.ip);
                state->clock.pass();
                return complete();
            }
        }
        return bind(packet, place);
    }
    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tsc, packet::mtc, packet::cyc>
    constexpr void operator()(Packet const& packet, packet_place place) {
        if constexpr (same_as<Packet, packet::tsc>) { (void)state->binds.add(packet, place); }
        (void)state->clock.add(packet);
    }
    constexpr void pads(unsigned, packet_place) {}
    using ignores_skip = choose_t<Out::skips_packets, void, event_visitor>;
    constexpr auto skip(uint8_t const* bytes, size_t room, uint64_t offset, uint64_t last_ip)
        -> skipped_packets {
        return nothing_pending ? out.skip(bytes, room, offset, last_ip, *this) : skipped_packets{};
    }
    static constexpr bool takes_whole_psb_plus = Out::takes_psb_plus;
    /// Applies a whole PSB+ to the binder, and gives it to `Out`. See `read_whole_psb_plus`.
    template <class Packets>
    constexpr auto take_psb_plus(uint8_t const* bytes, size_t room, uint64_t offset, bool strict)
        -> taken_psb_plus {
        if (!nothing_pending || state->quirks.bits != 0 || !state->has_last_ip) { return {}; }
        if constexpr (same_as<Out, event_buffer>) {
            auto const made = write_psb_plus<Packets>(*state, bytes, room, offset, strict,
                                                      out.next);
            if (made.taken.size != 0) { out.next = made.next; }
            return made.taken;
        } else {
            return give_psb_plus<Packets>(bytes, room, offset, strict);
        }
    }
    /// Applies a TIP.PGD to the binder. Returns false, and changes nothing, if it needs binding.
    constexpr auto end_tracing(known_ip ip) -> bool {
        if (!nothing_pending || !state->binds.try_end_tracing()) { return false; }
        state->disabled = ip;
        takes_branches = false;
        return true;
    }
    /// The same for a TIP.PGE.
    constexpr auto start_tracing() -> bool {
        if (!nothing_pending || !state->binds.try_start_tracing()) { return false; }
        takes_branches = state->binds.binds_branches();
        return true;
    }
    template <packet::packet_type Packet>
    constexpr auto operator()(Packet const& packet, packet_place place) -> bool {
        return bind(packet, place);
    }
    constexpr auto operator()(item const& one) -> bool {
        state->waiting = one;
        state->has_waiting = true;
        return false;
    }

private:
    template <class Packets>
    constexpr auto give_psb_plus(uint8_t const* bytes, size_t room, uint64_t offset, bool strict)
        -> taken_psb_plus {
        auto const read = read_whole_psb_plus<Packets>(bytes, room, offset, strict,
                                                       state->binds.last_psb_plus());
        if (read.size == 0 || !out.may_take(read.status, read.end_at)) { return {}; }
        if (!state->binds.try_psb_plus(read.status)) { return {}; }
        state->before = state->binds.state();
        return {read.size, read.status.has_ip ? read.status.ip : 0,
                out.add_psb_plus(read.status, read.end_at)};
    }
    /// True if nothing is pending, and there is room for the events of a packet.
    [[nodiscard]] constexpr auto may_add() const -> bool {
        return nothing_pending && state->quirks.bits == 0 &&
               out.next <= state->events.all + State::max_waiting;
    }
    /// The event that was written last is pending.
    constexpr void make_last_pending() {
        state->events.set_end_of_ready(out.next - 1);
        ++state->events.count;
        nothing_pending = takes_branches = false;
    }
    /// True if only pending events follow those that are ready.
    [[nodiscard]] constexpr auto may_complete() const -> bool {
        return !nothing_pending && state->quirks.bits == 0;
    }
    /// The pending events become ready, and nothing is pending in the binder.
    constexpr auto complete() -> bool {
        bool const continues = state->events.ready != 0 || state->binds.state() == state->before;
        state->events.complete(false);
        nothing_pending = true;
        takes_branches = state->binds.binds_branches();
        return continues;
    }
    /// Ends an asynchronous event whose packets are only its FUP and a TIP or TIP.PGD. Returns
    /// false, and changes nothing, for any other TIP or TIP.PGD.
    [[nodiscard]] constexpr auto try_end_event(event_type what, bool has_to, uint64_t to) -> bool {
        if constexpr (same_as<Out, event_buffer>) {
            if (!may_complete()) { return false; }
            event& one = out.next[-1];
            bool const disables = what == event_type::async_disabled;
            bool const is_event = one.what == event_type::async_branch;
            if (!is_event || !state->binds.try_end_event(disables)) { return false; }
            if (disables) { state->disabled = {has_to, has_to ? to : 0}; }
            one.what = what;
            one.enabled = disables ? tracing::off : tracing::on;
            one.has_to = has_to;
            one.to = has_to ? to : 0;
            if constexpr (!__is_empty(bare_t<decltype(state->clock)>)) {
                one.when = state->clock.now();
            }
            state->clock.pass();
            return true;
        } else {
            return false;
        }
    }
    template <packet::packet_type Packet>
    constexpr auto bind(Packet const& packet, packet_place place) -> bool {
        packet::any_packet const any{packet, place.length};
        if constexpr (same_as<Out, event_buffer>) {
            auto const after = bind_after(*state, any, place, out.next, nothing_pending);
            out.next = after.next;
            nothing_pending = after.nothing_pending;
            takes_branches = after.takes_branches;
            return after.continues;
        } else {
            return (*this)(item_of(any, place));
        }
    }
};

}  // namespace ptspec::trace::detail

#undef PTSPEC_ATTRIBUTE
