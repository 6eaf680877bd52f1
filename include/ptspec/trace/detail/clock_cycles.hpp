// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/any_packet.hpp>
#include <ptspec/trace/detail/clock_state.hpp>

/// The core clock: CYC and CBR packets give the time since the last TSC or MTC.
namespace ptspec::trace::detail {

/// The maximum number of cycles from which time is computed, since the last TSC or MTC: 39 hours.
inline constexpr uint64_t max_cycles = low_bits(48);

constexpr void replace_ratio(clock_state& s, uint64_t ticks, uint64_t error) noexcept {
    if (!s.rates.measure(ticks, s.point.cycles)) { return; }
    uint64_t const edge = s.point.tsc + ticks;
    bool const is_within = edge + error >= s.point.low + s.rates.bounds.min_of(s.point.cycles) &&
                           edge <= saturating_add(s.point.high_of(s.point.cycles, s.rates.bounds),
                                                  error);
    if (!is_within) { s.rates.widen(ticks, s.point.cycles); }
}

/// Measures the ratio of TSC ticks to cycles since the last TSC or MTC: from TSC to TSC or from
/// MTC to MTC. The value of a TSC may be some 40 cycles older than its CYC
/// (dr-hello-dyn @43b4).
///
/// Source: PKT-312, PKT-318.
constexpr void measure(clock_state& s, uint64_t edge, uint64_t error, bool is_mtc) noexcept {
    bool const has_cyc = s.has_own_cyc();
    bool const is_same = s.edge_is_mtc == is_mtc;
    s.edge_is_mtc = is_mtc;
    if (s.point.cycles != 0 && s.can_measure_ratio && has_cyc && is_same && edge > s.point.tsc) {
        uint64_t const ticks = edge - s.point.tsc;
        uint64_t const expected = s.rates.estimate.of(s.point.cycles);
        uint64_t const apart = ticks < expected ? expected - ticks : ticks - expected;
        // Each end of the interval may be anywhere in its cycle.
        if (apart > 2 * (s.rates.min_cycle + 1) + error) [[unlikely]] {
            replace_ratio(s, ticks, error);
        }
    }
    s.can_measure_ratio = has_cyc;
}

/// Source: PKT-278, PKT-319.
constexpr void change_frequency(clock_state& s, uint16_t core) noexcept {
    auto const range = s.rates.range_of(core);
    // The CBR of a PSB+ has the frequency at the TSC of the PSB+. The first CBR has the
    // frequency at the start of the trace.
    bool const is_status = s.in_psb_plus && s.has_tsc_in_psb_plus && s.point.cycles == 0;
    if (s.rates.core == cycle_rates::no_core || is_status) {
        s.rates.use(range);
        if (s.has_tsc) { s.set_point(); }
    } else {
        // The cycles up to the next CYC run partly at the old frequency.
        s.point.floor = s.estimate(s.slack()).earliest;
        s.anchor_here();
        s.rates.bounds.include(range);
        s.rates.is_mixed = true;
        // Both frequencies occur in the cycle of the change, and perhaps in the packet's cycle.
        uint64_t const first = s.rates.min_cycle_of(range);
        uint64_t const last = s.rates.max_cycle_of(range);
        if (first > s.rates.min_cycle) { s.point.low -= first - s.rates.min_cycle; }
        if (last > s.rates.max_cycle) {
            s.point.high = saturating_add(s.point.high, last - s.rates.max_cycle);
        }
    }
    s.rates.set_core(core);
    s.can_measure_ratio = false;
}

constexpr void add_cycles(clock_state& s, uint64_t value) noexcept {
    s.follows_cyc = true;
    s.all_cycles += value;
    if (!s.has_cyc) {
        s.has_cyc = true;
        if (s.has_tsc) { s.set_point(); }
    }
    if (!s.rates.estimate.is_known()) { ++s.unused_cycs; }
    s.point.cycles = saturating_add(s.point.cycles, value);
    if (s.point.cycles >= max_cycles) {
        s.point.cycles = max_cycles;
        s.point.high = time::unbounded;
    }
    if (s.rates.is_mixed) {
        s.anchor_here();
        s.rates.end_mixed();
    }
    s.refresh();
}

constexpr auto add(clock_state& s, packet::cyc packet) noexcept -> rule {
    uint64_t const value = packet.value();
    uint64_t const sum = s.point.cycles + value;
    if (s.is_simple && (value | sum) < clock_state::quick_cycles) [[likely]] {
        s.all_cycles += value;
        s.point.cycles = sum;
    } else {
        add_cycles(s, value);
    }
    return rule::none;
}

constexpr auto add(clock_state& s, packet::cbr packet) noexcept -> rule {
    auto const core = static_cast<uint16_t>(packet.get<packet::cbr::CoreBusRatio>());
    bool const is_status = s.in_psb_plus && s.rates.estimate.is_known();
    s.follows_cyc = false;
    if (core != s.rates.core) {
        change_frequency(s, core);
    } else if (!is_status) {
        s.rates.repeat_core();
        s.can_measure_ratio = false;
    }
    s.refresh();
    return rule::none;
}

}  // namespace ptspec::trace::detail
