// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/binder.hpp>
#include <ptspec/trace/event.hpp>
#include <ptspec/trace/visitor.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::trace::detail {

/// Writes the events of packets that need no binding into a buffer, which has room: `next` is
/// before `end` until a function returns false.
///
/// always_inline: else clang keeps the visitor in memory, and events with times take 2.3 times as
/// long (clang 19).
template <class Clock>
struct event_buffer {
    static constexpr bool skips_packets = false;

    event* next;
    event* end;

    template <packet::packet_type Packet>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto branches(Packet const& which, packet_place where, Clock& clock) noexcept
        -> bool {
        return write(event_type::branches, which, where, clock, false, false, 0, 0);
    }
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto branch(packet::tip const& which, packet_place where, Clock& clock) noexcept
        -> bool {
        bool const has_to = which.has_ip();
        return write(event_type::indirect_branch, which, where, clock, false, has_to, 0,
                     has_to ? where.ip : 0);
    }
    constexpr auto disable(packet::tip_pgd const& which, packet_place where, Clock& clock) noexcept
        -> bool {
        bool const has_to = which.has_ip();
        return write(event_type::disabled, which, where, clock, false, has_to, 0,
                     has_to ? where.ip : 0);
    }
    constexpr auto enable(packet::tip_pge const& which, packet_place where, Clock& clock) noexcept
        -> bool {
        bool const has_ip = which.has_ip();
        return write(event_type::enabled, which, where, clock, has_ip, false, has_ip ? where.ip : 0,
                     0);
    }

private:
    /// Member by member: an event that is built and copied takes 2 % more instructions (g++ 12).
    template <packet::packet_type Packet>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto write(event_type what, Packet const& which, packet_place where, Clock& clock,
                         bool has_ip, bool has_to, uint64_t ip, uint64_t to) noexcept -> bool {
        next->what = what;
        next->enabled = what == event_type::disabled ? tracing::off : tracing::on;
        next->is_status = false;
        next->has_ip = has_ip;
        next->has_to = has_to;
        next->error = packet::error::none;
        next->broken = rule::none;
        next->skipped = 0;
        next->offset = where.offset;
        next->ip = ip;
        next->to = to;
        next->packet = {which, where.length};
        if constexpr (!__is_empty(Clock)) { next->when = clock.now(); }
        clock.pass();
        ++next;
        return next != end;
    }
};

/// The IP of the last TIP.PGD.
struct known_ip {
    bool is_known = false;
    uint64_t ip = 0;
};

/// How reading continues after a packet that `Out` has bound.
struct after_binding {
    event* next = nullptr;  ///< where the next event is written
    bool has_no_pending = false;
    bool takes_branches = false;
    bool goes_on = false;
    bool has_stopped = false;  ///< the packet is an item, not bound
};

/// Visits the common packets, which need no binding: PAD, TSC, MTC and CYC, and, while no event is
/// pending, TNT, TIP, TIP.PGE and TIP.PGD. `Out` gets these, and returns false to stop. Stops at
/// any other packet, unless `Out` binds it: `out.bind(packet, at, has_no_pending)`.
///
/// always_inline: for the reason given at `event_buffer`.
template <class Clock, class Out>
struct simple_packets {
    Out out;
    Clock* clock;
    item* stopped_at;
    binder* binds;
    known_ip* disabled_at;
    bool takes_branches;
    bool has_no_pending;
    bool has_stopped = false;  ///< at an item

    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tnt_short, packet::tnt_long>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto operator()(Packet const& which, packet_place where) -> bool {
        if (!takes_branches) { return bind(which, where); }
        return out.branches(which, where, *clock);
    }
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto operator()(packet::tip const& which, packet_place where) -> bool {
        if (!takes_branches) { return bind(which, where); }
        return out.branch(which, where, *clock);
    }
    constexpr auto operator()(packet::tip_pgd const& which, packet_place where) -> bool {
        if (!end_tracing({which.has_ip(), where.ip})) { return bind(which, where); }
        return out.disable(which, where, *clock);
    }
    constexpr auto operator()(packet::tip_pge const& which, packet_place where) -> bool {
        if (!start_tracing()) { return bind(which, where); }
        return out.enable(which, where, *clock);
    }
    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tsc, packet::mtc, packet::cyc>
    constexpr void operator()(Packet const& which, packet_place where) {
        if constexpr (same_as<Packet, packet::tsc>) { (void)binds->add(which, where); }
        (void)clock->add(which);
        if constexpr (requires { out.end_skipping(); }) { out.end_skipping(); }
    }
    constexpr void pads(unsigned, packet_place) {}
    using ignores_skip = choose_t<Out::skips_packets, void, simple_packets>;
    constexpr auto skip(uint8_t const* bytes, size_t room, uint64_t offset) -> skipped_packets {
        return has_no_pending ? out.skip(bytes, room, offset, *this) : skipped_packets{};
    }
    /// Applies a TIP.PGD to the binder. Returns false, and changes nothing, if it needs binding.
    constexpr auto end_tracing(known_ip at) -> bool {
        if (!has_no_pending || !binds->try_end_tracing()) { return false; }
        *disabled_at = at;
        takes_branches = false;
        return true;
    }
    /// The same for a TIP.PGE.
    constexpr auto start_tracing() -> bool {
        if (!has_no_pending || !binds->try_start_tracing()) { return false; }
        takes_branches = binds->binds_branches();
        return true;
    }
    template <packet::packet_type Packet>
    constexpr auto operator()(Packet const& which, packet_place where) -> bool {
        return bind(which, where);
    }
    constexpr auto operator()(item const& one) -> bool {
        *stopped_at = one;
        has_stopped = true;
        return false;
    }

private:
    template <packet::packet_type Packet>
    constexpr auto bind(Packet const& which, packet_place where) -> bool {
        packet::any_packet const any{which, where.length};
        if constexpr (requires { out.bind(any, where, has_no_pending); }) {
            auto const after = out.bind(any, where, has_no_pending);
            has_no_pending = after.has_no_pending;
            takes_branches = after.takes_branches;
            has_stopped = after.has_stopped;
            return after.goes_on;
        } else {
            return (*this)({.what = item_type::packet,
                            .length = static_cast<uint8_t>(where.length),
                            .offset = where.offset,
                            .ip = where.ip,
                            .packet = any});
        }
    }
};

}  // namespace ptspec::trace::detail

#undef PTSPEC_ATTRIBUTE
