// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/clock_edges.hpp>

/// The time of packets, computed from TSC, TMA, MTC, CYC and CBR packets in integers.
namespace ptspec::trace {

/// Computes the time of each packet of a trace. `add` must get all packets, in order.
///
/// TSC, TMA and MTC give the time of an edge of the crystal clock; CYC and CBR give the time since
/// that edge. Lower bound: the last edge. Upper bound: the edge of the next MTC, if MTC packets are
/// enabled, and the time that CYC and CBR give plus the deviation of the core clock. After an OVF
/// there is no upper bound until the next TSC, because MTCs, CYCs and CBRs may be lost.
///
/// The bounds of a packet with a CYC follow from four facts.
/// - The core clock deviates from the ratio of CBR by `tolerance` at most, but to either side, at
///   any moment: a cycle takes `min` to `max` ticks. A ratio that was measured gives the estimate,
///   but limits no later cycle. Where it contradicts the ratio of CBR, the range includes both.
/// - The packet with the time T, exact to a tick, lies anywhere in its cycle, and so does one n
///   cycles later: they are more than n - 1 and less than n + 1 cycles apart. The later one is in
///   [T + (n - 1) * min, T + 1 + (n + 1) * max]. A `time_point` has these bounds for n = 0.
/// - With a threshold of N cycles, a TSC or MTC without a CYC is less than N cycles later than the
///   last CYC, from which the next CYC counts: T + (n - N) * min, T + 1 + (n + 1) * max. The
///   bounds from the last CYC hold, too, unless the counter stopped: then a TSC follows.
/// - Between two CYCs with a CBR between them, cycles have either ratio.
///
/// No packet is earlier than one before it: only a TSC that goes back, an OVF and a loss reset the
/// lower bound.
///
/// Before the first TSC, times are relative: MTCs advance from 0, and `is_absolute()` is false.
///
/// Shape:  a value of fixed size; a copy continues independently.
/// Errors: `add` returns PKT-303 for a TMA without a TSC; the packet is ignored.
/// Source: SDM vol. 3, "Tracking Time", "Cycle-Accurate Mode"; PKT-300..320, GEN-200..220.
class clock {
public:
    constexpr clock() noexcept : clock{clock_options{}} {}
    constexpr explicit clock(clock_options const& options) noexcept : state_{options} {}

    // --------------------------------------------------------------------------- packets

    constexpr auto add(packet::tsc packet) noexcept -> rule { return detail::add(state_, packet); }
    [[nodiscard]] constexpr auto add(packet::tma packet) noexcept -> rule {
        return detail::add(state_, packet);
    }
    constexpr auto add(packet::mtc packet) noexcept -> rule { return detail::add(state_, packet); }
    constexpr auto add(packet::cyc packet) noexcept -> rule { return detail::add(state_, packet); }
    constexpr auto add(packet::cbr packet) noexcept -> rule { return detail::add(state_, packet); }
    constexpr auto add(packet::pip packet) noexcept -> rule {
        bool const was_guest = state_.source.in_guest;
        state_.source.in_guest = packet.get<packet::pip::NR>();
        // In a PSB+, the PIP may follow the TSC. It decides whether that is the TSC of a guest.
        if (state_.source.in_guest != was_guest && state_.in_psb_plus &&
            state_.has_tsc_in_psb_plus) {
            detail::change_tsc(state_);
        }
        pass();
        return rule::none;
    }
    constexpr auto add(packet::psb) noexcept -> rule {
        state_.in_psb_plus = true;
        state_.has_tsc_in_psb_plus = false;
        pass();
        if (state_.is_skl168) { state_.can_measure_ratio = false; }
        return rule::none;
    }
    constexpr auto add(packet::psbend) noexcept -> rule {
        state_.in_psb_plus = false;
        pass();
        return rule::none;
    }
    /// MTCs, CYCs and the packets at which clocks stop may be lost.
    constexpr auto add(packet::ovf) noexcept -> rule {
        lose();
        return rule::none;
    }
    constexpr auto add(packet::pad) noexcept -> rule { return rule::none; }
    /// Any other packet. If it is not CYC-eligible, a CYC directly before it belongs to no packet.
    template <packet::packet_type Packet>
    constexpr auto add(Packet const&) noexcept -> rule {
        pass();
        return rule::none;
    }
    [[nodiscard]] constexpr auto add(packet::any_packet const& packet) noexcept -> rule {
        // The packets of the functions above. All packets would cost 4 % of parsing this header.
        using timed = type_list<packet::tsc, packet::tma, packet::mtc, packet::cyc, packet::cbr,
                                packet::pip, packet::psb, packet::psbend, packet::ovf, packet::pad>;
        struct taken {
            bool has_value = false;
            rule broken = rule::none;
        };
        auto const found = packet::visit<timed>(
            [this](auto const& one) { return taken{true, add(one)}; }, packet);
        if (!found.has_value) { pass(); }
        return found.broken;
    }

    /// Removes the upper bound of times until the next TSC, because packets may be lost here.
    constexpr void lose() noexcept {
        uint64_t const anchor = state_.estimate(0).tsc;
        state_.point.cycles = 0;
        state_.has_no_ceiling = true;
        state_.point_has_cyc = state_.has_own_cyc();
        state_.in_psb_plus = state_.can_measure_ratio = state_.follows_cyc = false;
        state_.point.ceiling = time::unbounded;
        state_.rates.lose();
        // The CYC before an OVF shows how long the overflow lasted, at any frequency: GEN-220. If
        // there is none, the next CYC counts from the last one, not from the OVF: GEN-212.
        state_.set_point();
        state_.point.tsc = anchor;
        state_.refresh();
    }
    /// Call this after a packet other than PAD that is not passed to `add`. It matters only with a
    /// threshold.
    constexpr void pass() noexcept { state_.pass(); }

    // --------------------------------------------------------------------------- time

    /// True if a TSC was read: times are values of the time-stamp counter.
    [[nodiscard]] constexpr auto is_absolute() const noexcept -> bool { return state_.has_tsc; }

    /// The time of the last packet, if it is CYC-eligible.
    [[nodiscard]] constexpr auto now() const noexcept -> time {
        return state_.is_simple ? state_.quick_estimate() : state_.now;
    }
    /// The time of the last packet, if it is not CYC-eligible. It has the upper bound of the MTCs.
    [[nodiscard]] constexpr auto now_without_cyc() const noexcept -> time {
        auto found = now();
        if (state_.has_cyc) { found.latest = state_.point.ceiling; }
        if (state_.in_psb_plus && state_.has_tsc_in_psb_plus) {
            found.earliest = detail::earlier_of(state_.tsc, found.earliest);
        }
        return found;
    }
    /// The time of the last PSB+: between its TSC and the last packet in it that has a CYC.
    [[nodiscard]] constexpr auto now_of_psb_plus() const noexcept -> time {
        auto found = state_.has_tsc_in_psb_plus ? now() : now_without_cyc();
        if (state_.has_tsc_in_psb_plus) {
            found.earliest = detail::earlier_of(state_.tsc, found.earliest);
        }
        return found;
    }

    // --------------------------------------------------------------------------- cycles

    /// The cycle of the last packet, if it is CYC-eligible. With a threshold, it is exact for a
    /// packet directly after a CYC; other packets are less than the threshold later.
    ///
    /// Source: GEN-211..218, PKT-109..113.
    [[nodiscard]] constexpr auto cycle() const noexcept -> cycle_time {
        return {state_.all_cycles, state_.slack()};
    }
    /// The sum of all CYCs.
    [[nodiscard]] constexpr auto cycles() const noexcept -> uint64_t { return state_.all_cycles; }
    /// The ratio of TSC ticks to core clock cycles in units of 2^-32; 0 if it is unknown.
    [[nodiscard]] constexpr auto ticks_per_cycle() const noexcept -> uint64_t {
        return state_.rates.estimate.scaled();
    }

    // --------------------------------------------------------------------------- losses

    /// The number of MTCs that were missing between two others. Multiples of 256 are invisible.
    ///
    /// Source: PKT-306, PKT-307.
    [[nodiscard]] constexpr auto missing_mtcs() const noexcept -> uint64_t {
        return state_.missing_mtcs;
    }
    /// The number of CYCs without a known ratio. They give no time.
    ///
    /// Source: PKT-311.
    [[nodiscard]] constexpr auto unused_cycs() const noexcept -> uint64_t {
        return state_.unused_cycs;
    }

private:
    detail::clock_state state_;
};

}  // namespace ptspec::trace
