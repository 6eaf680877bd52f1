// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/clock_options.hpp>
#include <ptspec/trace/crystal_edge.hpp>
#include <ptspec/trace/detail/cycle_rates.hpp>
#include <ptspec/trace/detail/time_point.hpp>
#include <ptspec/trace/detail/tsc_source.hpp>

namespace ptspec::trace::detail {

/// What the time of the next packet depends on: a point with a known time, from TSC, TMA and MTC
/// packets, and the cycles since then, from CYC and CBR packets.
struct clock_state {
    /// `quick_estimate` requires fewer cycles: their product with a ratio fits into 64 bits.
    static constexpr uint64_t quick_cycles = uint64_t{1} << 24;
    static constexpr uint16_t no_mtc = 0xFFFF;  ///< of `last_mtc`

    time_point point{};
    uint64_t all_cycles = 0;           ///< the sum of all CYCs
    cycle_rates rates;                 ///< the duration of a cycle
    bool is_simple = false;            ///< `quick_estimate` applies
    bool is_regular = false;           ///< `add_regular` applies
    time now{.tsc = 0};                ///< the time after the last packet, unless `is_simple`
    uint32_t threshold = 0;            ///< CycThresh in cycles; 0: none
    bool has_cyc = false;              ///< a CYC was read
    bool follows_cyc = false;          ///< no packet since the last CYC
    bool point_has_cyc = false;        ///< the point has a CYC
    bool has_no_ceiling = false;       ///< MTCs may be lost: after an OVF or a loss, until a TSC
    bool can_measure_ratio = false;    ///< the ratio can be measured from the point on
    bool edge_is_mtc = false;          ///< the last point is an MTC, not a TSC
    bool has_tsc_in_psb_plus = false;  ///< the open PSB+, or the last one, has a TSC
    bool is_guest = false;             ///< times are TSC values of a guest
    bool in_psb_plus = false;          ///< between PSB and PSBEND
    bool has_tsc = false;              ///< a TSC was read
    bool has_tma = false;              ///< since the last TSC
    bool has_mtc = false;              ///< since the last TSC or TMA
    bool is_monotonic = false;         ///< `clock_options::monotonic`
    bool is_skl168 = false;            ///< erratum: after a PSB no ratio can be measured
    bool is_skz84 = false;             ///< erratum: TMAs may be corrupt
    uint8_t max_lost_mtcs = 0;         ///< `clock_options::lost_mtcs`
    crystal_edge edge{};               ///< the last edge of the crystal clock that TMA or MTC gave
    uint64_t tsc = 0;                  ///< of the last TSC packet, in TSC ticks
    uint64_t last_reported = 0;        ///< the last estimate in TSC ticks, if it is monotonic
    uint64_t missing_mtcs = 0;         ///< MTCs that were missing between two others
    uint64_t unused_cycs = 0;          ///< CYCs without a known ratio
    uint16_t tsc_age = 0;              ///< the maximum age of a TSC at its packet, in TSC ticks
    uint16_t last_mtc = no_mtc;        ///< CTC of the last MTC before the TMA
    uint64_t tsc_error = 0;  ///< the TSC at the packet may be greater by up to this, in ticks
    tsc_source source{};     ///< whose TSC a TSC packet has

    constexpr explicit clock_state(clock_options const& options) noexcept
        : rates{options.max_non_turbo_ratio,
                static_cast<uint8_t>(options.tolerance < 16 ? options.tolerance : 16)},
          threshold{options.cyc_thresh == 0 || options.cyc_thresh > 15
                        ? 0U
                        : 1U << (options.cyc_thresh - 1)},
          is_monotonic{options.monotonic},
          is_skl168{options.quirks.has(cpu::quirk::skl168)},
          is_skz84{options.quirks.has(cpu::quirk::skz84)},
          max_lost_mtcs{options.lost_mtcs},
          edge{options.tsc_numerator, options.tsc_denominator, options.mtc_freq},
          tsc_age{options.tsc_age},
          source{.in_guest = options.is_guest,
                 .has_guest_tsc = options.has_guest_tsc,
                 .has_reference = options.tsc_reference != 0,
                 .reference = options.tsc_reference,
                 .guest_tsc = options.guest_tsc} {}

    /// True if a CYC belongs to the next packet: with a threshold, only directly after it.
    [[nodiscard]] constexpr auto has_own_cyc() const noexcept -> bool {
        return threshold == 0 || follows_cyc;
    }
    [[nodiscard]] constexpr auto slack() const noexcept -> uint64_t {
        return has_own_cyc() ? 0 : has_cyc ? threshold - 1U : time::unbounded;
    }
    [[nodiscard]] constexpr auto within(uint64_t ticks, uint64_t low, uint64_t high) const noexcept
        -> time {
        auto found = time_within(ticks, low, high);
        found.cycles = all_cycles;
        found.is_guest = is_guest;
        return found;
    }
    /// The time `slack` cycles or less after the last CYC.
    [[nodiscard]] constexpr auto estimate(uint64_t slack) const noexcept -> time {
        uint64_t const ticks = has_cyc ? rates.estimate.of(point.cycles) : 0;
        if (!has_tsc) { return {point.tsc + ticks, 0, time::unbounded, all_cycles}; }
        uint64_t low = point.floor;
        uint64_t high = point.ceiling;
        if (has_cyc) {
            low = later_of(point.low + rates.bounds.min_of(point.cycles), point.floor);
            high = slack == time::unbounded
                       ? point.ceiling
                       : earlier_of(point.high_of(point.cycles + slack, rates.bounds),
                                    point.ceiling);
        }
        return within(point.tsc + ticks, low, high);
    }
    /// The same; requires `is_simple`.
    [[nodiscard]] constexpr auto quick_estimate() const noexcept -> time {
        return within(
            point.tsc + ((point.cycles * rates.estimate.scaled()) >> 32),
            later_of(point.low + ((point.cycles * rates.bounds.min_ticks) >> 32), point.floor),
            earlier_of(point.high + ((point.cycles * rates.bounds.max_ticks) >> 32),
                       point.ceiling));
    }
    /// Sets the time after a packet.
    constexpr void refresh() noexcept {
        is_simple = has_tsc && has_cyc && threshold == 0 && !has_no_ceiling &&
                    rates.estimate.is_known() && rates.bounds.is_limited() && !rates.is_mixed &&
                    !is_monotonic && point.high >> 63 == 0 && point.cycles < quick_cycles;
        is_regular = has_tsc && has_mtc && edge.is_regular() && (is_simple || !has_cyc) &&
                     threshold == 0 && !has_no_ceiling && !is_monotonic;
        now = estimate(slack());
        if (is_monotonic) {
            now.tsc = now.tsc < last_reported ? last_reported : now.tsc;
            last_reported = now.tsc;
        }
    }
    /// Call this after a packet other than PAD that is not passed to `add`. It matters only with a
    /// threshold.
    constexpr void pass() noexcept {
        if (follows_cyc && threshold != 0) [[unlikely]] {
            follows_cyc = false;
            refresh();
        }
    }
    [[nodiscard]] constexpr auto last() const noexcept -> last_tsc {
        return {has_tsc, is_guest, point.tsc};
    }
    [[nodiscard]] constexpr auto edge_error() const noexcept -> uint64_t {
        return edge_is_mtc ? edge.error() : 0;
    }
    /// Sets the point to the last TSC or MTC alone. With a threshold, limits the estimate to these
    /// bounds.
    ///
    /// Source: PKT-314, GEN-212.
    constexpr void set_point() noexcept {
        uint64_t const ticks = edge_is_mtc ? edge.base() : tsc;
        uint64_t const before = point_has_cyc ? rates.min_cycle
                                              : rates.bounds.min_of(threshold) + 1;
        if (!has_tsc || has_no_ceiling) {
            // MTCs are lost: the edge may be a later one.
            point.low = point.floor - before;
            point.high = time::unbounded;
            point.tsc = ticks;
            return;
        }
        point.low = ticks - edge_error() - before;
        uint64_t const age = edge_is_mtc ? 0 : tsc_error;
        point.high = saturating_add(ticks + edge_error() + age, rates.max_cycle);
        point.tsc = point_has_cyc ? ticks : later_of(point.low, earlier_of(point.tsc, ticks));
    }
    /// Makes the last CYC the point from which cycles count.
    constexpr void anchor_here() noexcept { point.advance(estimate(0).tsc, rates.bounds); }
};

}  // namespace ptspec::trace::detail
