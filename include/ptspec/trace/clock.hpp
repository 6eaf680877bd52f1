// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/packet/any_packet.hpp>
#include <ptspec/trace/core_rate.hpp>
#include <ptspec/trace/crystal_edge.hpp>
#include <ptspec/trace/time.hpp>
#include <ptspec/trace/time_conversion.hpp>
#include <ptspec/trace/tsc_change.hpp>

/// The time of packets, computed from TSC, TMA, MTC, CYC and CBR packets in integers.
namespace ptspec::trace {

/// The constants of a clock. `clock_options_of` gives those of a processor.
struct clock_options {
    uint8_t mtc_freq = 0;             ///< IA32_RTIT_CTL.MTCFreq
    uint8_t cyc_thresh = 0;           ///< IA32_RTIT_CTL.CycThresh
    uint8_t max_non_turbo_ratio = 0;  ///< MSR_PLATFORM_INFO[15:8]; 0: no time from CYC and CBR
    uint32_t tsc_numerator = 0;       ///< CPUID.15H:EBX; 0: no time from MTC
    uint32_t tsc_denominator = 0;     ///< CPUID.15H:EAX; 0: no time from MTC
    /// The maximum number of consecutive MTCs that the processor may drop. Real processors drop
    /// single MTCs: GEN-203.
    uint8_t lost_mtcs = 1;
    /// The frequency of the core clock deviates from the ratio of CBR by at most 1 / 2^tolerance.
    /// `tolerance` is at most 16; 0: the deviation has no limit.
    uint8_t tolerance = 5;
    /// The maximum age of the value of a TSC packet at its CYC, in TSC ticks: see `tsc_age_of`.
    uint16_t tsc_age = 0;
    bool monotonic = false;      ///< no estimate is lower than one before: PKT-309
    uint64_t tsc_reference = 0;  ///< a TSC near the trace: it extends the 56 bits of a TSC packet
    cpu::quirk_set quirks{};     ///< skl168, skz84
    bool is_guest = false;       ///< before the first PIP, TSC packets have the TSC of a guest
    bool has_guest_tsc = false;  ///< `guest_tsc` is known: times of guests become the host's
    tsc_change guest_tsc{};
};

/// `clock_options::tsc_age` of a processor whose TSC has `numerator` / `denominator` times the
/// frequency of the crystal clock: one crystal cycle, in TSC ticks, rounded up; 0 if the ratio is
/// unknown. A real processor reads the TSC a little before it sends the packet with its CYC: 0.85
/// to 0.9 crystal cycles in all six places where an MTC shows it (6/85).
///
/// Source: GEN-201.
[[nodiscard]] constexpr auto tsc_age_of(uint64_t numerator, uint64_t denominator) noexcept
    -> uint16_t {
    if (denominator == 0) { return 0; }
    uint64_t const ticks = numerator / denominator + (numerator % denominator != 0 ? 1 : 0);
    return static_cast<uint16_t>(ticks < 0xFFFF ? ticks : 0xFFFF);
}

/// Computes the time of each packet of a trace. `add` must get all packets, in order.
///
/// TSC, TMA and MTC give the time of an edge of the crystal clock; CYC and CBR give the time since
/// that edge. Lower bound: the last edge. Upper bound: the edge of the next MTC, if MTC packets are
/// enabled, and the time that CYC and CBR give plus the deviation of the core clock. After an OVF
/// there is no upper bound until the next TSC, because MTCs, CYCs and CBRs may be lost.
///
/// The bounds of a packet with a CYC follow from four facts.
/// - The core clock deviates from the ratio of CBR by `tolerance` at most, but to either side, at
///   any moment: a cycle takes `rates_.least` to `rates_.most` ticks. A ratio that was measured
///   gives the estimate, but limits no later cycle. Where it contradicts the ratio of CBR, the
///   range includes both.
/// - The packet with the time T, exact to a tick, lies anywhere in its cycle, and so does one n
///   cycles later: they are more than n - 1 and less than n + 1 cycles apart. The later one is in
///   [T + (n - 1) * least, T + 1 + (n + 1) * most]. `low_` and `high_` are these bounds for n = 0.
/// - With a threshold of N cycles, a TSC or MTC without a CYC is less than N cycles later than the
///   last CYC, from which the next CYC counts: T + (n - N) * least, T + 1 + (n + 1) * most. The
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
    constexpr explicit clock(clock_options const& how) noexcept
        : threshold_{how.cyc_thresh == 0 || how.cyc_thresh > 15 ? 0U : 1U << (how.cyc_thresh - 1)},
          non_turbo_{how.max_non_turbo_ratio},
          tolerance_{static_cast<uint8_t>(how.tolerance < 16 ? how.tolerance : 16)},
          is_monotonic_{how.monotonic},
          is_skl168_{how.quirks.has(cpu::quirk::skl168)},
          is_skz84_{how.quirks.has(cpu::quirk::skz84)},
          has_reference_{how.tsc_reference != 0},
          lost_mtcs_{how.lost_mtcs},
          edge_{how.tsc_numerator, how.tsc_denominator, how.mtc_freq},
          reference_{how.tsc_reference},
          tsc_age_{how.tsc_age},
          in_guest_{how.is_guest},
          has_guest_tsc_{how.has_guest_tsc},
          guest_tsc_{how.guest_tsc} {
        use_rates({});
    }

    // --------------------------------------------------------------------------- packets

    constexpr auto add(packet::tsc which) noexcept -> rule {
        raw_tsc_ = which.get<packet::tsc::TSC>();
        auto const tsc = host_tsc();
        if (is_guest_ != is_guest_time()) { is_clean_ = false; }
        is_guest_ = is_guest_time();
        tsc_error_ = tsc_age_ + (tsc.last - tsc.first);
        measure(tsc.first, tsc_error_, false);
        last_mtc_ = has_mtc_ ? edge_.mtc_of(edge_.ctc()) : no_mtc;
        has_tsc_ = true;
        has_tma_ = has_mtc_ = is_unlimited_ = false;
        has_tsc_in_psb_plus_ = in_psb_plus_;
        tsc_ = tsc.first;
        edge_.restart(tsc_);
        anchor_at_edge(tsc_, time::unbounded);
        refresh();
        return rule::none;
    }
    [[nodiscard]] constexpr auto add(packet::tma which) noexcept -> rule {
        if (!has_tsc_ || has_tma_) { return rule::PKT_303; }
        // A multiplier changes FC in a way that differs between processors.
        if (is_corrupt(which) || (converts_tsc() && guest_tsc_.scales())) { return rule::none; }
        has_tma_ = true;
        has_mtc_ = false;
        edge_.start(tsc_, static_cast<uint32_t>(which.get<packet::tma::CTC>()),
                    which.get<packet::tma::FC>());
        if (edge_.is_known() && !is_unlimited_) {
            // The MTC of the next edge may stand before the TSC or the TMA: GEN-218.
            bool const is_sent = last_mtc_ != no_mtc && edge_.next_may_be(last_mtc_);
            ceiling_ = edge_.next_mtc(lost_mtcs_ + (is_sent ? 1U : 0U));
            if (ceiling_ < floor_) { ceiling_ = time::unbounded; }
        }
        refresh();
        return rule::none;
    }
    constexpr auto add(packet::mtc which) noexcept -> rule {
        auto const payload = static_cast<uint32_t>(which.get<packet::mtc::CTC>());
        if (is_regular_) [[likely]] {
            add_regular(payload);
        } else {
            add_mtc(payload);
        }
        return rule::none;
    }
    constexpr auto add(packet::cyc which) noexcept -> rule {
        uint64_t const value = which.value();
        uint64_t const sum = cycles_ + value;
        if (is_simple_ && (value | sum) < quick_cycles) [[likely]] {
            all_ += value;
            cycles_ = sum;
        } else {
            add_cycles(value);
        }
        return rule::none;
    }
    constexpr auto add(packet::cbr which) noexcept -> rule {
        auto const core = static_cast<uint16_t>(which.get<packet::cbr::CoreBusRatio>());
        bool const is_status = in_psb_plus_ && ratio_.is_known();
        is_fresh_ = false;
        if (core != core_) {
            change_frequency(core);
        } else if (!is_status) {
            // The frequency may have changed although the ratio is the same.
            ratio_ = detail::ratio::of(non_turbo_, core);
            if (is_widened_) { current_ = detail::rate_range::of(non_turbo_, core, tolerance_); }
            if (!has_mixed_ratios_) { use_rates(current_); }
            is_clean_ = is_widened_ = false;
        }
        refresh();
        return rule::none;
    }
    constexpr auto add(packet::pip which) noexcept -> rule {
        bool const was_guest = in_guest_;
        in_guest_ = which.get<packet::pip::NR>();
        // In a PSB+, the PIP may follow the TSC. It decides whether that is the TSC of a guest.
        if (in_guest_ != was_guest && in_psb_plus_ && has_tsc_in_psb_plus_) { change_tsc(); }
        pass();
        return rule::none;
    }
    constexpr auto add(packet::psb) noexcept -> rule {
        in_psb_plus_ = true;
        has_tsc_in_psb_plus_ = false;
        pass();
        if (is_skl168_) { is_clean_ = false; }
        return rule::none;
    }
    constexpr auto add(packet::psbend) noexcept -> rule {
        in_psb_plus_ = false;
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
    [[nodiscard]] constexpr auto add(packet::any_packet const& which) noexcept -> rule {
        // The packets of the functions above. All packets would cost 4 % of parsing this header.
        using timed = type_list<packet::tsc, packet::tma, packet::mtc, packet::cyc, packet::cbr,
                                packet::pip, packet::psb, packet::psbend, packet::ovf, packet::pad>;
        struct taken {
            bool has_value = false;
            rule broken = rule::none;
        };
        auto const found = packet::visit<timed>(
            [this](auto const& one) { return taken{true, add(one)}; }, which);
        if (!found.has_value) { pass(); }
        return found.broken;
    }

    /// Packets may be lost here: times have no upper bound until the next TSC.
    constexpr void lose() noexcept {
        uint64_t const anchor = estimate(0).tsc;
        cycles_ = 0;
        is_unlimited_ = true;
        is_exact_ = threshold_ == 0 || is_fresh_;
        in_psb_plus_ = is_clean_ = is_fresh_ = is_widened_ = has_mixed_ratios_ = false;
        ceiling_ = time::unbounded;
        core_ = lost_core;  // it may have had any ratio
        current_ = detail::rate_range::of(non_turbo_, 1, tolerance_);
        current_.include(detail::rate_range::of(non_turbo_, 255, tolerance_));
        use_rates(current_);
        // The CYC before an OVF shows how long the overflow lasted, at any frequency: GEN-220. If
        // there is none, the next CYC counts from the last one, not from the OVF: GEN-212.
        set_point();
        anchor_ = anchor;
        refresh();
    }
    /// Call this after a packet other than PAD that is not passed to `add`. It matters only with a
    /// threshold.
    constexpr void pass() noexcept {
        if (is_fresh_ && threshold_ != 0) [[unlikely]] {
            is_fresh_ = false;
            refresh();
        }
    }

    // --------------------------------------------------------------------------- time

    /// True if a TSC was read: times are values of the time-stamp counter.
    [[nodiscard]] constexpr auto is_absolute() const noexcept -> bool { return has_tsc_; }

    /// The time of the last packet, if it is CYC-eligible.
    [[nodiscard]] constexpr auto now() const noexcept -> time {
        return is_simple_ ? quick_estimate() : now_;
    }
    /// The time of the last packet, if it is not CYC-eligible. It has the upper bound of the MTCs.
    [[nodiscard]] constexpr auto now_without_cyc() const noexcept -> time {
        auto found = now();
        if (has_cyc_) { found.latest = ceiling_; }
        if (in_psb_plus_ && has_tsc_in_psb_plus_) { found.earliest = least(tsc_, found.earliest); }
        return found;
    }
    /// The time of the last PSB+: between its TSC and the last packet in it that has a CYC.
    [[nodiscard]] constexpr auto now_of_psb_plus() const noexcept -> time {
        auto found = has_tsc_in_psb_plus_ ? now() : now_without_cyc();
        if (has_tsc_in_psb_plus_) { found.earliest = least(tsc_, found.earliest); }
        return found;
    }

    // --------------------------------------------------------------------------- cycles

    /// The cycle of the last packet, if it is CYC-eligible. With a threshold, it is exact for a
    /// packet directly after a CYC; other packets are less than the threshold later.
    ///
    /// Source: GEN-211..218, PKT-109..113.
    [[nodiscard]] constexpr auto cycle() const noexcept -> cycle_time { return {all_, slack()}; }
    /// The sum of all CYCs.
    [[nodiscard]] constexpr auto cycles() const noexcept -> uint64_t { return all_; }
    /// The ratio of TSC ticks to core clock cycles in units of 2^-32; 0 if it is unknown.
    [[nodiscard]] constexpr auto ticks_per_cycle() const noexcept -> uint64_t {
        return ratio_.scaled();
    }

    // --------------------------------------------------------------------------- losses

    /// The number of MTCs that were missing between two others. Multiples of 256 are invisible.
    ///
    /// Source: PKT-306, PKT-307.
    [[nodiscard]] constexpr auto missing_mtcs() const noexcept -> uint64_t { return lost_; }
    /// The number of CYCs without a known ratio. They give no time.
    ///
    /// Source: PKT-311.
    [[nodiscard]] constexpr auto unused_cycs() const noexcept -> uint64_t { return unused_; }

private:
    static constexpr uint64_t quick_cycles = uint64_t{1} << 24;
    static constexpr uint16_t no_core = 0xFFFF;    ///< no CBR yet
    static constexpr uint16_t lost_core = 0xFFFE;  ///< CBRs may be lost
    static constexpr uint16_t no_mtc = 0xFFFF;
    /// The most cycles from which time is computed, since the last TSC or MTC: 39 hours.
    static constexpr uint64_t max_cycles = low_bits(48);

    static constexpr auto least(uint64_t one, uint64_t two) noexcept -> uint64_t {
        return one < two ? one : two;
    }
    /// The later of two times. The first may be less than 0.
    static constexpr auto later(uint64_t one, uint64_t two) noexcept -> uint64_t {
        return static_cast<int64_t>(one - two) > 0 ? one : two;
    }
    /// True if the TMA is corrupt. SKZ84: TSC scaling or offset corrupts TMAs.
    [[nodiscard]] constexpr auto is_corrupt(packet::tma which) const noexcept -> bool {
        return is_skz84_ && (which.raw & packet::tma::reserved_mask()) != 0;
    }
    /// Handles the MTC after an MTC, if an MTC period is a whole number of TSC ticks. Without it,
    /// event times of a trace with MTC and CYC packets take 26 % more instructions.
    constexpr void add_regular(uint32_t payload) noexcept {
        uint32_t const periods = edge_.advance_regular(payload);
        if (periods > 1) { lost_ += periods - 1; }
        uint64_t const base = edge_.base();
        measure(base, 0, true);
        anchor_ = floor_ = base;
        low_ = base - least_cycle_;
        high_ = base + most_cycle_;
        ceiling_ = detail::saturating_add(base, (1 + uint64_t{lost_mtcs_}) * edge_.period_ticks());
        cycles_ = 0;
        now_ = {base, base, ceiling_, all_, is_guest_};
    }
    constexpr void add_mtc(uint32_t payload) noexcept {
        // MTCs between a TSC and its TMA are ignored.
        if (!edge_.is_known() || (has_tsc_ && !has_tma_)) {
            last_mtc_ = static_cast<uint16_t>(payload);
            return pass();
        }
        uint32_t const ctc = edge_.ctc_of(payload);
        if (!has_mtc_) { has_tsc_ ? edge_.resolve_upper_bits(ctc) : edge_.start_at(ctc); }
        uint32_t const periods = edge_.advance(ctc);
        if (has_mtc_ && !is_unlimited_ && periods > 1) { lost_ += periods - 1; }
        measure(edge_.base(), edge_.error(), true);
        anchor_at_edge(edge_.base(),
                       is_unlimited_ || !has_tsc_ ? time::unbounded : edge_.next_mtc(lost_mtcs_));
        has_mtc_ = true;
        refresh();
    }
    [[nodiscard]] constexpr auto is_guest_time() const noexcept -> bool {
        return in_guest_ && !has_guest_tsc_;
    }
    [[nodiscard]] constexpr auto converts_tsc() const noexcept -> bool {
        return in_guest_ && has_guest_tsc_;
    }
    /// The TSC of the last TSC packet: the host's, if it is known.
    ///
    /// Source: GEN-200, PKT-317.
    [[nodiscard]] constexpr auto host_tsc() const noexcept -> tsc_range {
        if (!converts_tsc() || !guest_tsc_.scales()) {
            uint64_t const offset = converts_tsc() ? guest_tsc_.offset : 0;
            uint64_t const tsc = extended((raw_tsc_ - offset) & low_bits(56));
            return {tsc, tsc};
        }
        uint64_t const near_by = has_tsc_ && !is_guest_ ? anchor_ : guest_tsc_.near_by;
        return guest_tsc_.host_of(tsc_near(raw_tsc_, guest_tsc_.of(near_by)));
    }
    /// Corrects the last TSC: it is the TSC of the guest, not of the host, or the reverse.
    constexpr void change_tsc() noexcept {
        auto const tsc = host_tsc();
        uint64_t const more = tsc.first - tsc_;
        tsc_error_ = tsc_age_ + (tsc.last - tsc.first);
        tsc_ += more;
        edge_.shift(more);
        anchor_ += more;
        low_ += more;
        floor_ += more;
        if (high_ != time::unbounded) { high_ += more + (tsc.last - tsc.first); }
        if (ceiling_ != time::unbounded) { ceiling_ += more; }
        if (converts_tsc() && guest_tsc_.scales()) {
            has_tma_ = false;
            ceiling_ = time::unbounded;
        }
        is_guest_ = is_guest_time();
        is_clean_ = false;
        refresh();
    }
    /// The 64-bit value nearest to the last one.
    ///
    /// Source: PKT-315.
    [[nodiscard]] constexpr auto extended(uint64_t low_56) const noexcept -> uint64_t {
        if (!has_tsc_ && !has_reference_) { return low_56; }
        return tsc_near(low_56, has_tsc_ ? anchor_ : reference_);
    }

    /// Sets the point from which cycles count: the TSC or MTC that `measure` got, at `edge`.
    constexpr void anchor_at_edge(uint64_t edge, uint64_t ceiling) noexcept {
        auto const before = estimate(0);
        auto const error = edge_error();
        // The edge is exact, and replaces the time from CYCs. It may be earlier than the TSC:
        // PKT-309. After an OVF it may be a later one.
        uint64_t const most = is_unlimited_ ? time::unbounded
                              : has_mtc_    ? edge + error
                                            : later(edge + error, floor_);
        floor_ = edge_is_mtc_ ? later(edge - error, least(before.earliest, most)) : edge;
        bool const counts_on = edge_is_mtc_ && has_cyc_ && !has_mixed_ratios_;
        auto const low = low_ + rates_.least_of(cycles_);
        auto const high = detail::saturating_add(high_of(cycles_), 1);
        is_exact_ = threshold_ == 0 || is_fresh_;
        is_fresh_ = false;
        if (has_mixed_ratios_) { use_rates(current_); }
        has_mixed_ratios_ = false;
        cycles_ = 0;
        ceiling_ = ceiling < floor_ ? time::unbounded : ceiling;
        anchor_ = before.tsc;
        set_point();
        if (is_exact_ || !counts_on) { return; }
        // Apply also the bounds from the last CYC. If the bounds contradict each other, the cycle
        // counter stopped.
        auto const latest_low = later(low, low_);
        auto const least_high = least(high, high_);
        if (static_cast<int64_t>(least_high - latest_low) < 0) { return; }
        low_ = latest_low;
        high_ = least_high;
        anchor_ = least(later(low_, before.tsc), high_);
    }
    [[nodiscard]] constexpr auto edge_error() const noexcept -> uint64_t {
        return edge_is_mtc_ ? edge_.error() : 0;
    }
    /// Sets `low_` and `high_` from the last TSC or MTC alone. With a threshold, limits the
    /// estimate to these bounds.
    ///
    /// Source: PKT-314, GEN-212.
    constexpr void set_point() noexcept {
        uint64_t const edge = edge_is_mtc_ ? edge_.base() : tsc_;
        uint64_t const before = is_exact_ ? least_cycle_ : rates_.least_of(threshold_) + 1;
        if (!has_tsc_ || is_unlimited_) {
            // MTCs are lost: the edge may be a later one.
            low_ = floor_ - before;
            high_ = time::unbounded;
            anchor_ = edge;
            return;
        }
        low_ = edge - edge_error() - before;
        uint64_t const age = edge_is_mtc_ ? 0 : tsc_error_;
        high_ = detail::saturating_add(edge + edge_error() + age, most_cycle_);
        anchor_ = is_exact_ ? edge : later(low_, least(anchor_, edge));
    }
    /// From now on a cycle takes this number of ticks.
    constexpr void use_rates(detail::rate_range rates) noexcept {
        rates_ = rates;
        least_cycle_ = least_cycle_of(rates);
        most_cycle_ = most_cycle_of(rates);
    }
    static constexpr auto least_cycle_of(detail::rate_range rates) noexcept -> uint64_t {
        return (rates.least + low_bits(32)) >> 32;
    }
    /// The greatest number of ticks in a cycle, plus two: the packet may be at the end of its tick,
    /// and two products are rounded down.
    static constexpr auto most_cycle_of(detail::rate_range rates) noexcept -> uint64_t {
        return rates.is_limited() ? (rates.most >> 32) + 2 : time::unbounded;
    }
    /// The upper bound of the packet that is `cycles` cycles after the point.
    [[nodiscard]] constexpr auto high_of(uint64_t cycles) const noexcept -> uint64_t {
        return detail::saturating_add(high_, rates_.most_of(cycles));
    }
    /// Makes the last CYC the point from which cycles count.
    constexpr void anchor_here() noexcept {
        if (cycles_ == 0) { return; }
        anchor_ = estimate(0).tsc;
        low_ += rates_.least_of(cycles_);
        high_ = detail::saturating_add(high_of(cycles_), 1);
        cycles_ = 0;
    }
    /// Source: PKT-278, PKT-319.
    constexpr void change_frequency(uint16_t core) noexcept {
        auto const range = detail::rate_range::of(non_turbo_, core, tolerance_);
        auto const found = detail::ratio::of(non_turbo_, core);
        // The CBR of a PSB+ has the frequency at the TSC of the PSB+. The first CBR has the
        // frequency at the start of the trace.
        bool const is_status = in_psb_plus_ && has_tsc_in_psb_plus_ && cycles_ == 0;
        if (core_ == no_core || is_status) {
            use_rates(range);
            if (has_tsc_) { set_point(); }
        } else {
            // The cycles up to the next CYC run partly at the old frequency.
            floor_ = estimate(slack()).earliest;
            anchor_here();
            rates_.include(range);
            has_mixed_ratios_ = true;
            // Both frequencies occur in the cycle of the change, and perhaps in the packet's cycle.
            uint64_t const first = least_cycle_of(range);
            uint64_t const last = most_cycle_of(range);
            if (first > least_cycle_) { low_ -= first - least_cycle_; }
            if (last > most_cycle_) { high_ = detail::saturating_add(high_, last - most_cycle_); }
        }
        core_ = core;
        current_ = range;
        ratio_ = found;
        is_clean_ = is_widened_ = false;
    }
    constexpr void add_cycles(uint64_t value) noexcept {
        is_fresh_ = true;
        all_ += value;
        if (!has_cyc_) {
            has_cyc_ = true;
            if (has_tsc_) { set_point(); }
        }
        if (!ratio_.is_known()) { ++unused_; }
        cycles_ = detail::saturating_add(cycles_, value);
        if (cycles_ >= max_cycles) {
            cycles_ = max_cycles;
            high_ = time::unbounded;
        }
        if (has_mixed_ratios_) {
            anchor_here();
            has_mixed_ratios_ = false;
            use_rates(current_);
        }
        refresh();
    }

    /// Measures the ratio of TSC ticks to cycles since the last TSC or MTC: from TSC to TSC or from
    /// MTC to MTC. The value of a TSC may be some 40 cycles older than its CYC
    /// (dr-hello-dyn @43b4).
    ///
    /// Source: PKT-312, PKT-318.
    constexpr void measure(uint64_t edge, uint64_t error, bool is_mtc) noexcept {
        bool const is_exact = threshold_ == 0 || is_fresh_;
        bool const is_same = edge_is_mtc_ == is_mtc;
        edge_is_mtc_ = is_mtc;
        if (cycles_ != 0 && is_clean_ && is_exact && is_same && edge > anchor_) {
            uint64_t const ticks = edge - anchor_;
            uint64_t const expected = ratio_.of(cycles_);
            uint64_t const apart = ticks < expected ? expected - ticks : ticks - expected;
            // Each end of the interval may be anywhere in its cycle.
            if (apart > 2 * (least_cycle_ + 1) + error) [[unlikely]] {
                replace_ratio(ticks, error);
            }
        }
        is_clean_ = is_exact;
    }
    constexpr void replace_ratio(uint64_t ticks, uint64_t error) noexcept {
        auto const found = detail::ratio::of(ticks, cycles_);
        auto const nominal = detail::ratio::of(non_turbo_, core_);
        if (!found.is_known() || (nominal.is_known() && !found.is_near(nominal))) { return; }
        ratio_ = found;
        uint64_t const edge = anchor_ + ticks;
        bool const is_within = edge + error >= low_ + rates_.least_of(cycles_) &&
                               edge <= detail::saturating_add(high_of(cycles_), error);
        if (is_within) { return; }
        // The ratio of CBR is wrong, or the cycle counter stopped.
        current_.include(detail::rate_range::of(ticks, cycles_, tolerance_));
        is_widened_ = true;
        use_rates(current_);
    }

    [[nodiscard]] constexpr auto slack() const noexcept -> uint64_t {
        return threshold_ == 0 || is_fresh_ ? 0 : has_cyc_ ? threshold_ - 1U : time::unbounded;
    }
    /// The time `slack` cycles or less after the last CYC.
    [[nodiscard]] constexpr auto estimate(uint64_t slack) const noexcept -> time {
        uint64_t const ticks = has_cyc_ ? ratio_.of(cycles_) : 0;
        if (!has_tsc_) { return {anchor_ + ticks, 0, time::unbounded, all_}; }
        uint64_t low = floor_;
        uint64_t high = ceiling_;
        if (has_cyc_) {
            low = later(low_ + rates_.least_of(cycles_), floor_);
            high = slack == time::unbounded ? ceiling_ : least(high_of(cycles_ + slack), ceiling_);
        }
        return within(anchor_ + ticks, low, high);
    }
    /// The same; requires `is_simple_`.
    [[nodiscard]] constexpr auto quick_estimate() const noexcept -> time {
        return within(anchor_ + ((cycles_ * ratio_.scaled()) >> 32),
                      later(low_ + ((cycles_ * rates_.least) >> 32), floor_),
                      least(high_ + ((cycles_ * rates_.most) >> 32), ceiling_));
    }
    [[nodiscard]] constexpr auto within(uint64_t tsc, uint64_t low, uint64_t high) const noexcept
        -> time {
        low = least(low, high);
        return {least(tsc < low ? low : tsc, high), low, high, all_, is_guest_};
    }
    /// Sets the time after a packet.
    constexpr void refresh() noexcept {
        is_simple_ = has_tsc_ && has_cyc_ && threshold_ == 0 && !is_unlimited_ &&
                     ratio_.is_known() && rates_.is_limited() && !has_mixed_ratios_ &&
                     !is_monotonic_ && high_ >> 63 == 0 && cycles_ < quick_cycles;
        is_regular_ = has_tsc_ && has_mtc_ && edge_.is_regular() && (is_simple_ || !has_cyc_) &&
                      threshold_ == 0 && !is_unlimited_ && !is_monotonic_;
        now_ = estimate(slack());
        if (is_monotonic_) {
            now_.tsc = now_.tsc < reported_ ? reported_ : now_.tsc;
            reported_ = now_.tsc;
        }
    }

    // The last point with a known time, and the cycles since then.
    uint64_t anchor_ = 0;
    uint64_t low_ = 0;                    ///< the lower bound for n = 0; may be less than 0
    uint64_t high_ = 0;                   ///< the upper bound for n = 0; may be less than 0
    uint64_t floor_ = 0;                  ///< the lower bound of all packets after the anchor
    uint64_t ceiling_ = time::unbounded;  ///< the upper bound of these packets
    uint64_t cycles_ = 0;
    uint64_t all_ = 0;
    detail::ratio ratio_{};         ///< the estimate of the TSC ticks in a core clock cycle
    detail::rate_range rates_{};    ///< the bounds of these ticks since the anchor
    detail::rate_range current_{};  ///< the bounds by the last CBR
    uint64_t least_cycle_ = 0;      ///< ticks in a cycle, rounded up
    uint64_t most_cycle_ = 0;       ///< rounded up, plus one
    bool is_simple_ = false;        ///< `quick_estimate` applies
    bool is_regular_ = false;       ///< `add_regular` applies
    time now_{.tsc = 0};
    uint32_t threshold_ = 0;  ///< in cycles; 0: none
    bool has_cyc_ = false;
    bool is_fresh_ = false;          ///< no packet since the last CYC
    bool has_mixed_ratios_ = false;  ///< a CBR since the last CYC
    bool is_exact_ = false;          ///< the anchor has a CYC
    bool is_unlimited_ = false;
    bool is_clean_ = false;    ///< the ratio can be measured from the anchor on
    bool is_widened_ = false;  ///< `current_` includes a measured ratio that contradicts the CBR
    bool edge_is_mtc_ = false;
    bool has_tsc_in_psb_plus_ = false;
    bool is_guest_ = false;  ///< times are TSC values of a guest
    bool in_psb_plus_ = false;
    bool has_tsc_ = false;
    bool has_tma_ = false;  ///< since the last TSC
    bool has_mtc_ = false;  ///< since the last TSC or TMA
    uint8_t non_turbo_ = 0;
    uint8_t tolerance_ = 0;
    bool is_monotonic_ = false;
    bool is_skl168_ = false;
    bool is_skz84_ = false;
    bool has_reference_ = false;
    uint8_t lost_mtcs_ = 0;
    detail::crystal_edge edge_{};
    uint64_t tsc_ = 0;
    uint64_t reference_ = 0;
    uint64_t reported_ = 0;  ///< the last estimate, if it is monotonic
    uint64_t lost_ = 0;
    uint64_t unused_ = 0;
    uint16_t tsc_age_ = 0;
    bool in_guest_ = false;  ///< by the last PIP
    bool has_guest_tsc_ = false;
    tsc_change guest_tsc_{};
    uint64_t raw_tsc_ = 0;        ///< of the last TSC packet
    uint64_t tsc_error_ = 0;      ///< the TSC at the packet may be greater by up to this
    uint16_t core_ = no_core;     ///< the ratio of the last CBR
    uint16_t last_mtc_ = no_mtc;  ///< the last MTC before the TMA
};

}  // namespace ptspec::trace
