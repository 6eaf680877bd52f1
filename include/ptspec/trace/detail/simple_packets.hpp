// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/binder.hpp>
#include <ptspec/trace/event.hpp>

namespace ptspec::trace::detail {

/// Visits the common packets, which need no binding: PAD, TSC, MTC and CYC, and, while no event is
/// pending, TNT and TIP. Stops at any other packet, when the event buffer is full, and after a
/// TIP.PGE or TIP.PGD that needs no binding.
template <class Clock>
struct simple_packets {
    event* out;
    event* end;
    Clock* clock;
    item* stopped_at;
    binder* binds;
    bool takes_branches;
    bool has_no_pending;
    bool has_stopped = false;  ///< at an item

    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tnt_short, packet::tnt_long>
    constexpr auto operator()(Packet const& which, at where) -> bool {
        if (!takes_branches) { return stop(which, where); }
        write(event_type::branches, which, where, false, false, 0, 0);
        return out != end;
    }
    constexpr auto operator()(packet::tip const& which, at where) -> bool {
        if (!takes_branches) { return stop(which, where); }
        bool const has_to = which.has_ip();
        write(event_type::indirect_branch, which, where, false, has_to, 0, has_to ? where.ip : 0);
        return out != end;
    }
    constexpr auto operator()(packet::tip_pgd const& which, at where) -> bool {
        if (!has_no_pending || !binds->try_end_tracing()) { return stop(which, where); }
        bool const has_to = which.has_ip();
        write(event_type::disabled, which, where, false, has_to, 0, has_to ? where.ip : 0);
        return false;
    }
    constexpr auto operator()(packet::tip_pge const& which, at where) -> bool {
        if (!has_no_pending || !binds->try_start_tracing()) { return stop(which, where); }
        bool const has_ip = which.has_ip();
        write(event_type::enabled, which, where, has_ip, false, has_ip ? where.ip : 0, 0);
        return false;
    }
    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tsc, packet::mtc, packet::cyc>
    constexpr void operator()(Packet const& which, at where) {
        if constexpr (same_as<Packet, packet::tsc>) { (void)binds->add(which, where); }
        (void)clock->add(which);
    }
    constexpr void pads(unsigned, at) {}
    template <packet::packet_type Packet>
    constexpr auto operator()(Packet const& which, at where) -> bool {
        return stop(which, where);
    }
    constexpr auto operator()(item const& one) -> bool {
        *stopped_at = one;
        has_stopped = true;
        return false;
    }

private:
    /// Member by member: an event that is built and copied takes 2 % more instructions (g++ 12).
    template <packet::packet_type Packet>
    constexpr void write(event_type what, Packet const& which, at where, bool has_ip, bool has_to,
                         uint64_t ip, uint64_t to) {
        out->what = what;
        out->has_ip = has_ip;
        out->has_to = has_to;
        out->is_status = false;
        out->error = packet::error::none;
        out->broken = rule::none;
        out->skipped = 0;
        out->offset = where.offset;
        out->ip = ip;
        out->to = to;
        out->packet = {which, where.length};
        if constexpr (!__is_empty(Clock)) { out->when = clock->now(); }
        clock->pass();
        ++out;
    }
    template <packet::packet_type Packet>
    constexpr auto stop(Packet const& which, at where) -> bool {
        return (*this)({.what = item_type::packet,
                        .length = static_cast<uint8_t>(where.length),
                        .offset = where.offset,
                        .ip = where.ip,
                        .packet = {which, where.length}});
    }
};

}  // namespace ptspec::trace::detail
