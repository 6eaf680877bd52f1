// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/event_state.hpp>

/// The events of each packet. The binder says what the packet belongs to; its events then wait in
/// the queue until later packets have given their IPs.
namespace ptspec::trace::detail {

// -------------------------------------------------------------------------------------- violations

template <class State>
constexpr void add_damage(State& s, packet::any_packet const& packet, packet_place place,
                          binding bound, rule broken) noexcept {
    auto one = s.made(bound.is_note ? event_type::note : event_type::damage, packet, place);
    one.broken = broken;
    if (bound.broken != rule::none && s.binds.violated().offset != place.offset) {
        one.offset = s.binds.violated().offset;
        one.packet = packet::any_packet::of_kind(s.binds.violated().kind);
    }
    unsigned index = s.events.first_pending();
    if (bound.resumed == resumption::confirmed && bound.broken == rule::GEN_227) {
        index = s.events.last_resumed(0);  // before the IP at which tracing resumed
    } else if (bound.to != owner::status &&
               (bound.to != owner::asynchronous || packet.is<packet::fup>())) {
        return s.add_ready(one);
    }
    s.insert(index, one);  // before a compound event that has not ended
}

// -------------------------------------------------------------------------------------------- PSB+

template <class State>
constexpr void add_end_of_psb_plus(State& s, packet::any_packet const& packet, packet_place place,
                                   binding bound) noexcept {
    auto one = s.made(event_type::psb, packet, place);
    if (bound.in_psb_plus) { one.when = s.clock.now_of_psb_plus(); }
    s.events.set_time_of_pending(one.when);
    psb_plus const& reported = s.binds.last_psb_plus();
    one.has_ip = bound.in_psb_plus && reported.has_ip;
    one.ip = one.has_ip ? reported.ip : 0;
    if (one.has_ip) { s.complete_pending_at(one.ip); }
    s.add_ready(one);
    if (bound.resumed == resumption::possible) {
        one.what = event_type::resumed;
        one.offset = reported.fup_offset;
        one.packet = reported.fup;
        s.add_ready(one);
    }
}

template <class State>
constexpr void add_without_owner(State& s, packet::any_packet const& packet, packet_place place,
                                 binding bound) noexcept {
    switch (packet.kind()) {
        case kind::cbr:
        case kind::mnt: {
            auto one = s.made(type_of(packet.kind()), packet, place);
            one.is_status = s.binds.in_psb_plus();
            // A CBR or MNT inside a compound event is returned before that event.
            return one.is_status || s.awaits_abort ? s.events.put(one)
                                                   : s.insert(s.events.first_pending(), one);
        }
        case kind::psb:
            s.complete_pending();
            if (!s.has_last_ip) [[unlikely]] {
                s.events.hide_ips();
                s.disabled = s.stopped = {};
                s.has_last_ip = true;
            }
            return;
        case kind::psbend: return add_end_of_psb_plus(s, packet, place, bound);
        default: return;
    }
}

template <class State>
constexpr void add_status(State& s, packet::any_packet const& packet, packet_place place) noexcept {
    if (packet.is<packet::fup>()) { return; }
    s.put(type_of(packet.kind()), packet, place).is_status = true;
}

// ------------------------------------------------------------------------------------ control flow

/// Removes and returns the MODE.Exec, if it is the last pending event; else returns no event.
template <class State>
constexpr auto take_mode(State& s) noexcept -> event {
    if (!s.events.ends_in_mode()) { return {}; }
    --s.events.count;
    return s.events.all[s.events.count];
}

template <class State>
constexpr void add_ready_mode(State& s, event mode, uint64_t ip) noexcept {
    if (mode.what != event_type::exec_mode) { return; }
    mode.has_ip = true;
    mode.ip = ip;
    s.add_ready(mode);
}

/// A CFE without an IP, and the EVDs before it, belong to the compound event that follows.
/// Source: PKT-222.
template <class State>
constexpr void give_ip_to_control_flow(State& s, uint64_t ip) noexcept {
    for (unsigned i = s.events.first_pending(); i < s.events.count; ++i) {
        if (s.events.all[i].what == event_type::control_flow ||
            s.events.all[i].what == event_type::event_data) {
            s.events.all[i].has_ip = true;
            s.events.all[i].ip = ip;
        }
    }
}

/// A TIP or TIP.PGD ends a compound event. PIP, VMCS and MODE.Exec take effect at its target:
/// PKT-270.
template <class State>
constexpr void end_compound_event(State& s, packet::any_packet const& packet, packet_place place,
                                  event_type what, bool has_to) noexcept {
    uint64_t const to = has_to ? place.ip : 0;
    bool has_event = false;
    for (unsigned i = s.events.first_pending(); i < s.events.count; ++i) {
        auto& one = s.events.all[i];
        one.when = s.own_time;
        one.enabled = s.known_enabled();
        if (one.what == event_type::async_branch) {
            has_event = true;
            one.what = what;
            one.has_to = has_to;
            one.to = to;
        } else {
            one.has_ip = has_to;
            one.ip = to;
        }
    }
    if (!has_event) {  // the queue was full, and it was returned without its end
        auto one = s.made(what, packet, place);
        one.has_to = has_to;
        one.to = to;
        s.insert(s.events.first_pending(), one);
    }
    s.complete_pending();
}

/// Erratum BDM64: the TIP directly before a TSX abort may have a wrong target.
template <class State>
constexpr void end_wait_for_abort(State& s, packet::any_packet const& packet) noexcept {
    if (packet::unbound_kinds.has(packet.kind())) { return; }
    event& branch = s.events.all[s.events.first_pending()];
    if (packet.is<packet::mode_tsx>() &&
        packet.as<packet::mode_tsx>().get<packet::mode_tsx::TXAbort>()) {
        branch.has_to = false;
        branch.to = 0;
        branch.packet = packet::tip{};
    }
    s.complete_pending();
}

template <class State>
constexpr void add_tip(State& s, packet::any_packet const& packet, packet_place place,
                       binding bound, bool lost_before, tracing enabled_before) noexcept {
    bool const has_to = packet.as<packet::tip>().has_ip();
    if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
        return end_compound_event(s, packet, place, event_type::async_branch, has_to);
    }
    event const mode = take_mode(s);
    bool const resumes = enabled_before == tracing::off ||
                         (enabled_before == tracing::unknown && lost_before);
    auto one = s.made(resumes ? event_type::resumed : event_type::indirect_branch, packet, place);
    (resumes ? one.has_ip : one.has_to) = has_to;
    (resumes ? one.ip : one.to) = has_to ? place.ip : 0;
    if (s.quirks.has(cpu::quirk::bdm64) && bound.to == owner::branch && !resumes) {
        s.complete_pending();
        s.events.put(one);
        s.awaits_abort = true;
        return;
    }
    s.add_ready(one);
    add_ready_mode(s, mode, place.ip);
}

template <class State>
constexpr void add_tip_pgd(State& s, packet::any_packet const& packet, packet_place place,
                           binding bound) noexcept {
    bool const has_to = packet.as<packet::tip_pgd>().has_ip();
    uint64_t const to = has_to ? place.ip : 0;
    s.disabled = {has_to, to};
    if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
        return end_compound_event(s, packet, place, event_type::async_disabled, has_to);
    }
    auto one = s.made(event_type::disabled, packet, place);
    one.has_to = has_to;
    one.to = to;
    s.add_ready(one);
}

template <class State>
constexpr void add_control_flow(State& s, packet::any_packet const& packet, packet_place place,
                                binding bound, bool lost_before, tracing enabled_before) noexcept {
    switch (packet.kind()) {
        case kind::tnt_short:
        case kind::tnt_long: return s.put_ready(event_type::branches, packet, place);
        case kind::tip: return add_tip(s, packet, place, bound, lost_before, enabled_before);
        case kind::tip_pge: {
            auto one = s.made(event_type::enabled, packet, place);
            one.has_ip = packet.as<packet::tip_pge>().has_ip();
            one.ip = one.has_ip ? place.ip : 0;
            event const mode = take_mode(s);
            s.add_ready(one);
            return add_ready_mode(s, mode, place.ip);
        }
        case kind::tip_pgd: return add_tip_pgd(s, packet, place, bound);
        case kind::fup:
            if (bound.to == owner::interrupt_flag) {
                return add_ready_mode(s, take_mode(s), place.ip);
            }
            if (bound.broken != rule::PKT_078) {
                give_ip_to_control_flow(s, place.ip);
                s.complete_pending();
                s.put(event_type::async_branch, packet, place).set_ip(place.ip);
            }
            return;
        default:
            if (packet.is<packet::mode_exec>() && bound.to != owner::asynchronous) {
                s.complete_pending();
            }
            (void)s.put(type_of(packet.kind()), packet, place);
    }
}

// ----------------------------------------------------------------------------------- other packets

template <class State>
constexpr void add_transaction(State& s, packet::any_packet const& packet, packet_place place,
                               binding bound) noexcept {
    switch (packet.kind()) {
        case kind::mode_tsx:
            s.complete_pending();
            (void)s.put(event_type::transaction, packet, place);
            if (bound.completes) { s.complete_pending(); }
            return;
        case kind::fup: {
            s.complete_pending_at(place.ip);
            if (bound.completes) { return; }
            return s.put(event_type::async_branch, packet, place).set_ip(place.ip);
        }
        case kind::tip: return add_tip(s, packet, place, bound, false, tracing::on);
        default: return add_tip_pgd(s, packet, place, bound);
    }
}

template <class State>
constexpr void add_overflow(State& s, packet::any_packet const& packet,
                            packet_place place) noexcept {
    s.complete_pending();
    if (packet.is<packet::ovf>()) { return s.put_ready(event_type::overflow, packet, place); }
    s.put(event_type::resumed, packet, place).set_ip(place.ip);
    s.complete_pending();
}

/// PTW, the packets of power events, PEBS, event trace, TRIG, and their FUP; TraceStop.
template <class State>
constexpr void add_value(State& s, packet::any_packet const& packet, packet_place place,
                         binding bound) noexcept {
    if (packet.is<packet::fup>()) {
        if (bound.to == owner::power) { s.stopped = {true, place.ip}; }
        return s.complete_pending_at(place.ip);
    }
    event& one = s.put(type_of(packet.kind()), packet, place);
    switch (packet.kind()) {
        case kind::tracestop:
            one.has_ip = s.disabled.is_known;
            one.ip = s.disabled.ip;
            return s.complete_pending();
        case kind::pwrx:
            one.has_ip = s.stopped.is_known;
            one.ip = s.stopped.ip;
            s.stopped = {};
            return s.complete_pending();
        case kind::bbp:
        case kind::bip: return s.complete_pending();
        case kind::mwait:
        case kind::pwre:
        case kind::evd: return;
        case kind::cfe:  // a compound event may follow
            if (s.binds.state().enabled != tracing::off) { return; }
            break;
        default: break;
    }
    if (bound.completes) { s.complete_pending(); }
}

// --------------------------------------------------------------------------- all packets and items

/// Binds a packet, and adds its events.
template <class State>
constexpr void add_packet(State& s, packet::any_packet const& packet, packet_place place) noexcept {
    bool const lost_before = s.binds.is_lost() || s.binds.in_overflow();
    bool const was_in_event = s.binds.in_event();
    auto const enabled_before = s.binds.state().enabled;
    auto const bound = s.binds.add(packet, place);
    rule const bad_time = s.add_to_clock(packet);
    rule const broken = bound.broken != rule::none ? bound.broken : bad_time;
    if (s.events.held != 0) [[unlikely]] { s.settle(bound.resumed); }
    if (was_in_event) [[unlikely]] { s.continue_event(packet, bound); }
    if (broken != rule::none) { add_damage(s, packet, place, bound, broken); }
    switch (bound.to) {
        case owner::none: return add_without_owner(s, packet, place, bound);
        case owner::status: return add_status(s, packet, place);
        case owner::branch:
        case owner::far_transfer:
        case owner::asynchronous:
        case owner::enable:
        case owner::interrupt_flag:
            return add_control_flow(s, packet, place, bound, lost_before, enabled_before);
        case owner::paging: return s.put_ready(type_of(packet.kind()), packet, place);
        case owner::transaction:
        case owner::transaction_abort: return add_transaction(s, packet, place, bound);
        case owner::overflow: return add_overflow(s, packet, place);
        case owner::ptwrite:
        case owner::power:
        case owner::pebs:
        case owner::control_flow:
        case owner::trigger:
        case owner::trace_stop: return add_value(s, packet, place, bound);
    }
}

/// Adds an item that a reader returned. It is not called for packets of a batch.
template <class State>
constexpr void add_item(State& s, item const& got) noexcept {
    switch (got.what) {
        case item_type::packet:
            if (s.awaits_abort) [[unlikely]] { end_wait_for_abort(s, got.packet); }
            return add_packet(s, got.packet, got.place());
        case item_type::unknown:
            s.clock.pass();
            return s.add_ready(s.made(event_type::unknown, got));
        case item_type::synced: return s.lose(event_type::synced, got);
        case item_type::damage: return s.lose(event_type::damage, got);
        case item_type::resynced: return s.lose(event_type::resynced, got);
        case item_type::lost: return s.lose(event_type::lost, got);
        // Before the pending events, which stay pending.
        case item_type::need_input:
            return s.events.put_first({.what = event_type::need_input, .offset = got.offset});
        case item_type::end:
            s.settle(s.binds.end_doubt());
            s.leave_event();
            return s.add_ready({.what = event_type::end, .offset = got.offset});
    }
}

}  // namespace ptspec::trace::detail
