// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/detail/event_walk.hpp>

namespace ptspec::flow::detail {

/// Walks over the branches that need no binding: takes them from a reader of events.
template <code_source Code, class Clock, class Sink>
struct branch_walk {
    static constexpr bool skips_packets = takes_runs<Sink> && !takes_times<Sink> &&
                                          changes_of<Code> == space_changes::at_paging &&
                                          __is_empty(Clock);

    /// Events and times of a PSB+ have no receiver, and the source may ask for no packet of it.
    static constexpr bool takes_psb_plus = !takes_events<Sink> && !takes_times<Sink> &&
                                           changes_of<Code> == space_changes::at_paging &&
                                           __is_empty(Clock);

    event_walk<Code>* to;
    Sink* sink;
    bool stopped = false;

    [[nodiscard]] constexpr auto has_stopped() const noexcept -> bool { return stopped; }

    template <class Packet>
    constexpr auto add_tnt(Packet const& packet, trace::packet_place place, Clock& clock) -> bool {
        begin(place, clock);
        if (!to->walk.add_branches(packet.taken(), *sink)) { return stop(waiting::branches); }
        return true;
    }
    constexpr auto add_tip(packet::tip const& packet, trace::packet_place place, Clock& clock)
        -> bool {
        begin(place, clock);
        if (!to->walk.add_target(form_of(packet), place.ip, *sink)) {
            return stop_at(waiting::branch, form_of(packet), place.ip);
        }
        return true;
    }
    constexpr auto add_tip_pgd(packet::tip_pgd const& packet, trace::packet_place place,
                               Clock& clock) -> bool {
        begin(place, clock);
        if (!to->walk.add_end(form_of(packet), place.ip, *sink)) {
            return stop_at(waiting::disable, form_of(packet), place.ip);
        }
        return true;
    }
    constexpr auto add_tip_pge(packet::tip_pge const& packet, trace::packet_place place,
                               Clock& clock) -> bool {
        begin(place, clock);
        to->walk.add_start(packet.has_ip(), place.ip, *sink);
        return true;
    }

    /// True if a PSB+ can be taken whole.
    constexpr auto may_take(trace::psb_plus const& read, uint64_t end_at) -> bool {
        return to->may_take(read, end_at, *sink);
    }
    constexpr auto add_psb_plus(trace::psb_plus const& read, uint64_t end_at) -> bool {
        if (to->add_psb_plus(read, end_at, *sink)) { return true; }
        return stop(waiting::event);
    }

    /// See `trace::skips_packets`. `binds` applies TIP.PGE and TIP.PGD to the binder.
    template <class Binds>
    constexpr auto skip(uint8_t const* bytes, size_t room, uint64_t offset, uint64_t last_ip,
                        Binds& binds) -> trace::skipped_packets {
        return to->walk.read_runs(bytes, room, offset, last_ip, binds, *sink);
    }

private:
    constexpr void begin(trace::packet_place place, Clock& clock) {
        if constexpr (takes_times<Sink>) { sink->time(clock.now()); }
        to->walk.set_packet(place.offset, clock.now());
        clock.pass();
    }
    constexpr auto stop_at(waiting what, packet::ip_bytes form, uint64_t target) noexcept -> bool {
        to->step.form = form;
        to->step.target = target;
        return stop(what);
    }
    constexpr auto stop(waiting what) noexcept -> bool {
        to->step.what = what;
        stopped = true;
        return false;
    }
};

}  // namespace ptspec::flow::detail
