// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/core_rate.hpp>
#include <ptspec/trace/time.hpp>

namespace ptspec::trace::detail {

/// The earlier of two times.
constexpr auto earlier_of(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return one < two ? one : two;
}
/// The later of two times. The first may be less than 0.
constexpr auto later_of(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return static_cast<int64_t>(one - two) > 0 ? one : two;
}

/// A time with these bounds, near an estimate.
constexpr auto time_within(uint64_t tsc, uint64_t low, uint64_t high) noexcept -> time {
    low = earlier_of(low, high);
    return {.tsc = earlier_of(tsc < low ? low : tsc, high), .earliest = low, .latest = high};
}

/// The last point of the trace with a known time, and the cycles since then. What `n` cycles take
/// is added to `tsc`, `low` and `high`.
///
/// Units:  TSC ticks.
struct time_point {
    uint64_t tsc = 0;                    ///< the estimate
    uint64_t low = 0;                    ///< the lower bound for n = 0; may be less than 0
    uint64_t high = 0;                   ///< the upper bound for n = 0; may be less than 0
    uint64_t floor = 0;                  ///< the lower bound of all packets after the point
    uint64_t ceiling = time::unbounded;  ///< the upper bound of these packets
    uint64_t cycles = 0;                 ///< n

    /// The upper bound of the packet that is `count` cycles after the point.
    [[nodiscard]] constexpr auto high_of(uint64_t count, rate_range rates) const noexcept
        -> uint64_t {
        return saturating_add(high, rates.max_of(count));
    }
    /// Makes the last CYC the point. `now` is its estimate.
    constexpr void advance(uint64_t now, rate_range rates) noexcept {
        if (cycles == 0) { return; }
        tsc = now;
        low += rates.min_of(cycles);
        high = saturating_add(high_of(cycles, rates), 1);
        cycles = 0;
    }
    /// Moves all times.
    constexpr void shift(uint64_t ticks) noexcept {
        tsc += ticks;
        low += ticks;
        floor += ticks;
        if (high != time::unbounded) { high += ticks; }
        if (ceiling != time::unbounded) { ceiling += ticks; }
    }
    /// Limits the time of the point to other bounds, too. Returns false, and changes nothing, if
    /// they contradict its own.
    constexpr auto narrow(uint64_t other_low, uint64_t other_high) noexcept -> bool {
        auto const latest_low = later_of(other_low, low);
        auto const earliest_high = earlier_of(other_high, high);
        if (static_cast<int64_t>(earliest_high - latest_low) < 0) { return false; }
        low = latest_low;
        high = earliest_high;
        return true;
    }
};

}  // namespace ptspec::trace::detail
