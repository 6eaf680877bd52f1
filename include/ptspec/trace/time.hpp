// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

/// The time of a packet.
namespace ptspec::trace {

/// A time: an estimate, and the bounds of the true time.
///
/// Units:  TSC ticks, and core clock cycles. `latest` is `unbounded` when no packet limits it.
///         Before the first TSC the estimate is relative, and the bounds are 0 and `unbounded`.
///         Without a clock there is no time: `tsc` is `absent`.
struct time {
    static constexpr uint64_t unbounded = ~uint64_t{0};
    static constexpr uint64_t absent = ~uint64_t{0};

    uint64_t tsc = absent;
    uint64_t earliest = 0;
    uint64_t latest = unbounded;
    uint64_t cycles = 0;  ///< the sum of all CYCs before
    /// True if the time is a TSC of a guest (PIP.NR) with unknown offset and multiplier. It cannot
    /// be compared with times of the host.
    bool is_guest = false;

    /// True without a clock, and at the end of a trace or chunk.
    [[nodiscard]] constexpr auto is_absent() const noexcept -> bool { return tsc == absent; }
    /// True if the estimate is a value of the time-stamp counter.
    [[nodiscard]] constexpr auto is_absolute() const noexcept -> bool {
        return earliest != 0 || latest != unbounded;
    }
    friend constexpr auto operator==(time const&, time const&) -> bool = default;
};

/// The core clock cycle of a packet, counted from the first packet of the trace: it lies between
/// `earliest` and `earliest + slack`.
///
/// Units:  core clock cycles while the core clock runs. `slack` is `time::unbounded` for packets
///         that have no CYC: they follow the last packet that has one.
struct cycle_time {
    uint64_t earliest = 0;
    uint64_t slack = 0;

    friend constexpr auto operator==(cycle_time const&, cycle_time const&) -> bool = default;
};

/// What two clocks counted between two points of a trace.
struct clock_counts {
    uint64_t cycles = 0;  ///< of the core clock
    uint64_t tsc_ticks = 0;
};

/// The frequency of the core clock between two points of a trace; 0 if no TSC ticks passed.
///
/// Units:  the unit of `tsc_frequency`.
/// Source: PKT-316.
[[nodiscard]] constexpr auto core_frequency(clock_counts passed, uint64_t tsc_frequency) noexcept
    -> uint64_t {
    auto& [cycles, tsc_ticks] = passed;
    // Keeps the product below 2^64: the quotient needs only the upper bits of long intervals.
    while (cycles >> 24 != 0 && tsc_ticks > 1) {
        cycles >>= 1;
        tsc_ticks >>= 1;
    }
    return tsc_ticks == 0 ? 0 : cycles * tsc_frequency / tsc_ticks;
}

}  // namespace ptspec::trace
