// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec::trace {

/// The 64-bit TSC value nearest to `near_by` that has the 56 bits of a TSC packet.
///
/// Source: PKT-315.
[[nodiscard]] constexpr auto tsc_near(uint64_t low_56, uint64_t near_by) noexcept -> uint64_t {
    constexpr uint64_t wrap = uint64_t{1} << 56;
    uint64_t const step = (low_56 - near_by) & (wrap - 1);
    // Not back below 0. The sum may need more than 64 bits.
    return step < wrap / 2 || near_by < wrap - step ? near_by + step : near_by + step - wrap;
}

/// The conversion of the TSC to nanoseconds and back, as Linux and perf compute it:
/// `perf_event_mmap_page` and the TIME_CONV record have these numbers.
///
/// Units:  time in ns = zero + TSC * mult / 2^shift.
/// Source: Linux, include/uapi/linux/perf_event.h, `cap_user_time_zero`.
struct time_conversion {
    uint16_t shift = 0;  ///< below 64
    uint32_t mult = 0;   ///< 0: unknown
    uint64_t zero = 0;

    /// The conversion for a TSC of `hz`, where time 0 is TSC 0; unknown if `hz` is 0.
    [[nodiscard]] static constexpr auto of_frequency(uint64_t hz) noexcept -> time_conversion {
        constexpr uint64_t ns_per_s = 1'000'000'000;
        if (hz == 0) { return {}; }
        uint16_t shift = 31;
        while ((ns_per_s << shift) / hz > 0xFFFF'FFFF) { --shift; }
        return {.shift = shift, .mult = static_cast<uint32_t>((ns_per_s << shift) / hz)};
    }
    /// The time of a TSC value.
    [[nodiscard]] constexpr auto time_of(uint64_t tsc) const noexcept -> uint64_t {
        uint64_t const low = tsc & ((uint64_t{1} << shift) - 1);
        return zero + (tsc >> shift) * mult + ((low * mult) >> shift);
    }
    /// The TSC value of a time, rounded down; 0 if the conversion is unknown. `time_of` rounds to
    /// nanoseconds: `tsc_of(time_of(tsc))` can be lower than `tsc`.
    [[nodiscard]] constexpr auto tsc_of(uint64_t time) const noexcept -> uint64_t {
        if (mult == 0) { return 0; }
        uint64_t const since = time - zero;
        return ((since / mult) << shift) + ((since % mult) << shift) / mult;
    }

    friend constexpr auto operator==(time_conversion const&, time_conversion const&)
        -> bool = default;
};

}  // namespace ptspec::trace
