// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/core_rate.hpp>

namespace ptspec::trace::detail {

/// How many TSC ticks a core clock cycle takes: an estimate, and bounds. The last CBR gives both; a
/// measurement between two TSCs or MTCs gives a better estimate.
///
/// Source: PKT-278, PKT-311, PKT-312, PKT-318, PKT-319.
struct cycle_rates {
    static constexpr uint16_t no_core = 0xFFFF;    ///< no CBR yet
    static constexpr uint16_t lost_core = 0xFFFE;  ///< CBRs may be lost

    uint8_t non_turbo = 0;  ///< MSR_PLATFORM_INFO[15:8]
    uint8_t tolerance = 0;
    uint16_t core = no_core;  ///< the ratio of the last CBR
    bool is_mixed = false;    ///< a CBR since the last CYC: `bounds` include both ratios
    bool is_widened = false;  ///< `by_cbr` includes a measured ratio that contradicts the CBR
    ratio estimate{};
    rate_range bounds{};  ///< since the last point
    rate_range by_cbr{};
    uint64_t min_cycle = 0;  ///< ticks in a cycle, rounded up
    uint64_t max_cycle = 0;  ///< rounded up, plus one

    constexpr cycle_rates(uint8_t max_non_turbo_ratio, uint8_t max_deviation) noexcept
        : non_turbo{max_non_turbo_ratio}, tolerance{max_deviation} {
        use({});
    }

    static constexpr auto min_cycle_of(rate_range range) noexcept -> uint64_t {
        return (range.min_ticks + low_bits(32)) >> 32;
    }
    /// The greatest number of ticks in a cycle, plus two: the packet may be at the end of its tick,
    /// and two products are rounded down.
    static constexpr auto max_cycle_of(rate_range range) noexcept -> uint64_t {
        return range.is_limited() ? (range.max_ticks >> 32) + 2 : rate_range::unlimited;
    }

    /// From now on a cycle takes this number of ticks.
    constexpr void use(rate_range range) noexcept {
        bounds = range;
        min_cycle = min_cycle_of(range);
        max_cycle = max_cycle_of(range);
    }
    /// From now on cycles have the ratio of the last CBR.
    constexpr void end_mixed() noexcept {
        if (!is_mixed) { return; }
        is_mixed = false;
        use(by_cbr);
    }
    /// The bounds by a CBR.
    [[nodiscard]] constexpr auto range_of(uint16_t core_ratio) const noexcept -> rate_range {
        return rate_range::of(non_turbo, core_ratio, tolerance);
    }
    /// Takes the ratio of a CBR, but not yet as `bounds`.
    constexpr void set_core(uint16_t core_ratio) noexcept {
        core = core_ratio;
        by_cbr = range_of(core_ratio);
        estimate = ratio::of(non_turbo, core_ratio);
        is_widened = false;
    }
    /// Takes a CBR with the same ratio. The frequency may have changed nevertheless.
    constexpr void repeat_core() noexcept {
        estimate = ratio::of(non_turbo, core);
        if (is_widened) { by_cbr = range_of(core); }
        if (!is_mixed) { use(by_cbr); }
        is_widened = false;
    }
    /// Called when CBRs may be lost. The core clock may have any ratio.
    constexpr void lose() noexcept {
        core = lost_core;
        is_mixed = is_widened = false;
        by_cbr = range_of(1);
        by_cbr.include(range_of(255));
        use(by_cbr);
    }
    /// Takes a measured ratio as the estimate, unless it is too far from that of the CBR.
    constexpr auto measure(uint64_t ticks, uint64_t cycles) noexcept -> bool {
        auto const found = ratio::of(ticks, cycles);
        auto const nominal = ratio::of(non_turbo, core);
        if (!found.is_known() || (nominal.is_known() && !found.is_near(nominal))) { return false; }
        estimate = found;
        return true;
    }
    /// Includes a measured ratio in the bounds: the ratio of CBR is wrong, or the cycle counter
    /// stopped.
    constexpr void widen(uint64_t ticks, uint64_t cycles) noexcept {
        by_cbr.include(rate_range::of(ticks, cycles, tolerance));
        is_widened = true;
        use(by_cbr);
    }
};

}  // namespace ptspec::trace::detail
