// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/packet/any_packet.hpp>
#include <ptspec/trace/time_conversion.hpp>

/// The time of packets, computed from TSC, TMA, MTC, CYC and CBR packets in integers.
namespace ptspec::trace {

/// The constants from which a clock computes: those of a processor by `clock_options_of`.
struct clock_options {
    uint8_t mtc_freq = 0;             ///< IA32_RTIT_CTL.MTCFreq
    uint8_t cyc_thresh = 0;           ///< IA32_RTIT_CTL.CycThresh
    uint8_t max_non_turbo_ratio = 0;  ///< MSR_PLATFORM_INFO[15:8]; 0: no time from CYC and CBR
    uint32_t tsc_numerator = 0;       ///< CPUID.15H:EBX; 0: no time from MTC
    uint32_t tsc_denominator = 0;     ///< CPUID.15H:EAX; 0: no time from MTC
    /// The most MTCs in a row that the processor may drop. Real ones drop single MTCs: GEN-203.
    uint8_t lost_mtcs = 1;
    /// The core clock deviates from the ratio of CBR by at most 1 / 2^tolerance. At most 16.
    uint8_t tolerance = 5;
    bool monotonic = false;      ///< no estimate is lower than one before: PKT-309
    uint64_t tsc_reference = 0;  ///< a TSC near the trace: it extends the 56 bits of a TSC packet
    cpu::quirk_set quirks{};     ///< skl168, skz84
};

/// A time: an estimate, and the bounds of the true time.
///
/// Units:  TSC ticks, and core clock cycles. `latest` is `unbounded` when no packet limits it.
///         Before the first TSC the estimate is relative, and the bounds are 0 and `unbounded`.
struct time {
    static constexpr uint64_t unbounded = ~uint64_t{0};

    uint64_t tsc = 0;
    uint64_t earliest = 0;
    uint64_t latest = unbounded;
    uint64_t cycles = 0;  ///< the sum of all CYCs before

    /// The estimate is a value of the time-stamp counter.
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

/// The frequency of the core clock between two points of a trace; 0 if no TSC ticks passed.
///
/// Units:  that of `tsc_frequency`.
/// Source: PKT-316.
[[nodiscard]] constexpr auto core_frequency(uint64_t cycles, uint64_t tsc_ticks,
                                            uint64_t tsc_frequency) noexcept -> uint64_t {
    // Keeps the product below 2^64: the quotient needs only the upper bits of long intervals.
    while (cycles >> 24 != 0 && tsc_ticks > 1) {
        cycles >>= 1;
        tsc_ticks >>= 1;
    }
    return tsc_ticks == 0 ? 0 : cycles * tsc_frequency / tsc_ticks;
}

namespace detail {

/// A factor in units of 2^-32.
class ratio {
public:
    constexpr ratio() noexcept = default;

    /// numerator / denominator, rounded up: products with less than 2^24 are exact. Unknown if the
    /// denominator is 0 or the quotient is 256 or more.
    [[nodiscard]] static constexpr auto of(uint64_t numerator, uint64_t denominator) noexcept
        -> ratio {
        while (numerator >> 32 != 0) {
            numerator >>= 1;
            denominator >>= 1;
        }
        ratio found;
        if (denominator != 0 && numerator / denominator < 256) {
            found.scaled_ = ((numerator << 32) + denominator - 1) / denominator;
        }
        return found;
    }
    [[nodiscard]] constexpr auto is_known() const noexcept -> bool { return scaled_ != 0; }
    [[nodiscard]] constexpr auto scaled() const noexcept -> uint64_t { return scaled_; }

    /// `count` is below 2^48.
    [[nodiscard]] constexpr auto of(uint64_t count) const noexcept -> uint64_t {
        if (count < uint64_t{1} << 24) [[likely]] { return (count * scaled_) >> 32; }
        return (count >> 24) * (scaled_ >> 8) + (((count & low_bits(24)) * scaled_) >> 32);
    }
    /// Within a quarter of another.
    [[nodiscard]] constexpr auto is_near(ratio other) const noexcept -> bool {
        uint64_t const apart = scaled_ < other.scaled_ ? other.scaled_ - scaled_
                                                       : scaled_ - other.scaled_;
        return apart <= other.scaled_ / 4;
    }

private:
    uint64_t scaled_ = 0;
};

constexpr auto saturating_add(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return one + two < one ? ~uint64_t{0} : one + two;
}
constexpr auto saturating_sub(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return one < two ? 0 : one - two;
}

}  // namespace detail

/// Computes the time of each packet of a trace. `add` must get all packets, in order.
///
/// TSC, TMA and MTC give the time of an edge of the crystal clock; CYC and CBR give the time since
/// that edge. Lower bound: the last edge. Upper bound: the edge of the next MTC, if MTC packets are
/// enabled, and the time that CYC and CBR give plus the deviation of the core clock. After an OVF
/// there is no upper bound until the next TSC, because MTCs and CYCs may be lost.
///
/// Before the first TSC, times are relative: MTCs advance from 0, and `is_absolute()` is false.
///
/// Shape:  a value of fixed size; a copy continues independently.
/// Errors: `add` returns PKT-303 for a TMA without a TSC; the packet is ignored.
/// Source: SDM vol. 3, "Tracking Time", "Cycle-Accurate Mode"; PKT-300..319, GEN-200..220.
class clock {
public:
    constexpr clock() noexcept : clock{clock_options{}} {}
    constexpr explicit clock(clock_options const& how) noexcept
        : threshold_{how.cyc_thresh == 0 || how.cyc_thresh > 15 ? 0U : 1U << (how.cyc_thresh - 1)},
          non_turbo_{how.max_non_turbo_ratio},
          mtc_freq_{static_cast<uint8_t>(how.mtc_freq & 15)},
          tolerance_{static_cast<uint8_t>(how.tolerance < 16 ? how.tolerance : 16)},
          is_monotonic_{how.monotonic},
          is_skl168_{how.quirks.has(cpu::quirk::skl168)},
          is_skz84_{how.quirks.has(cpu::quirk::skz84)},
          has_reference_{how.tsc_reference != 0},
          lost_mtcs_{how.lost_mtcs},
          numerator_{how.tsc_denominator == 0 ? 0 : how.tsc_numerator},
          denominator_{how.tsc_denominator == 0 ? 1 : how.tsc_denominator},
          reference_{how.tsc_reference} {
        bool const is_power = (denominator_ & (denominator_ - 1)) == 0;
        denominator_shift_ = static_cast<uint8_t>(is_power ? lowest_bit(denominator_) : no_shift);
        round_up_ = low_bits32(tolerance_);
        rounding_ = numerator_ % denominator_ != 0 ? 1 : 0;
        uint64_t const ticks = uint64_t{numerator_} << mtc_freq_;
        period_ticks_ = ticks % denominator_ == 0 ? ticks / denominator_ : 0;
    }

    // --------------------------------------------------------------------------- packets

    constexpr auto add(packet::tsc which) noexcept -> rule {
        uint64_t const tsc = extended(which.get<packet::tsc::TSC>());
        calibrate(tsc, false);
        has_tsc_ = true;
        has_tma_ = has_mtc_ = is_unlimited_ = false;
        tsc_ = base_ = tsc;
        remainder_ = 0;
        anchor_at(tsc, 0, time::unbounded);
        refresh();
        return rule::none;
    }
    [[nodiscard]] constexpr auto add(packet::tma which) noexcept -> rule {
        if (!has_tsc_ || has_tma_) { return rule::PKT_303; }
        if (is_corrupt(which)) { return rule::none; }
        uint64_t const fast = which.get<packet::tma::FC>();
        has_tma_ = true;
        has_mtc_ = false;
        ctc_ = static_cast<uint32_t>(which.get<packet::tma::CTC>());
        base_ = detail::saturating_sub(tsc_, fast);
        remainder_ = 0;
        // FC has nine bits: with a longer period of the crystal clock the edge may lie earlier.
        uint64_t const period = numerator_ / denominator_;
        base_error_ = period < 512 ? 0 : period / 512 * 512;
        if (numerator_ != 0 && !is_unlimited_) {
            uint32_t const next = ((ctc_ >> mtc_freq_) + 1) << mtc_freq_;
            // TMA lacks the upper bits of the counter, but not those below MTCFreq.
            ceiling_ = ticks_until(next - ctc_);
            if (ceiling_ < anchor_) { ceiling_ = time::unbounded; }
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
        auto const core = which.get<packet::cbr::CoreBusRatio>();
        auto const found = detail::ratio::of(non_turbo_, core);
        if (!in_psb_plus_ || !ratio_.is_known()) { is_calibrated_ = is_clean_ = false; }
        if (found.scaled() == nominal_.scaled()) {
            if (!is_calibrated_) { ratio_ = found; }
            refresh();
            return rule::none;
        }
        if (ratio_.is_known()) {
            // The cycles up to the next CYC ran partly at the old frequency.
            anchor_here();
            if (!has_mixed_ratios_) { least_ratio_ = greatest_ratio_ = ratio_; }
            has_mixed_ratios_ = true;
            if (found.scaled() < least_ratio_.scaled()) { least_ratio_ = found; }
            if (found.scaled() > greatest_ratio_.scaled()) { greatest_ratio_ = found; }
        }
        nominal_ = ratio_ = found;
        is_calibrated_ = is_clean_ = false;
        refresh();
        return rule::none;
    }
    constexpr auto add(packet::psb) noexcept -> rule {
        in_psb_plus_ = true;
        if (is_skl168_) { is_clean_ = false; }
        return rule::none;
    }
    constexpr auto add(packet::psbend) noexcept -> rule {
        in_psb_plus_ = false;
        return rule::none;
    }
    /// MTCs, CYCs and the packets at which clocks stop may be lost.
    constexpr auto add(packet::ovf) noexcept -> rule {
        lose();
        return rule::none;
    }
    /// Any other packet.
    template <packet::packet_type Packet>
    constexpr auto add(Packet const&) noexcept -> rule {
        if constexpr (Packet::about.cyc_eligible == packet::cyc_rule::yes) { pass(); }
        return rule::none;
    }
    [[nodiscard]] constexpr auto add(packet::any_packet const& which) noexcept -> rule {
        return packet::visit([this](auto const& one) { return add(one); }, which);
    }

    /// Packets may be lost here: times have no upper bound until the next TSC.
    constexpr void lose() noexcept {
        anchor_here();
        is_unlimited_ = true;
        in_psb_plus_ = is_clean_ = false;
        ceiling_ = time::unbounded;
        refresh();
    }
    /// Call this after a CYC-eligible packet that is not passed to `add`. It matters only with a
    /// threshold.
    constexpr void pass() noexcept {
        if (is_fresh_ && threshold_ != 0) [[unlikely]] {
            is_fresh_ = false;
            refresh();
        }
    }

    // --------------------------------------------------------------------------- time

    /// A TSC was read: times are those of the time-stamp counter.
    [[nodiscard]] constexpr auto is_absolute() const noexcept -> bool { return has_tsc_; }

    /// The time of the last packet, if it is CYC-eligible.
    [[nodiscard]] constexpr auto now() const noexcept -> time {
        return is_simple_ ? quick_estimate() : now_;
    }
    /// The time of the last packet, if it is not CYC-eligible. It has the upper bound of the MTCs.
    [[nodiscard]] constexpr auto now_without_cyc() const noexcept -> time {
        auto found = now();
        if (has_cyc_) { found.latest = ceiling_; }
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
    /// The ratio was measured between two TSCs or MTCs, not taken from a CBR.
    [[nodiscard]] constexpr auto is_calibrated() const noexcept -> bool { return is_calibrated_; }

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
    static constexpr uint8_t no_shift = 0xFF;
    static constexpr uint64_t quick_cycles = uint64_t{1} << 24;
    /// The most cycles from which time is computed, since the last TSC or MTC: 39 hours.
    static constexpr uint64_t most_cycles = low_bits(48);

    static constexpr auto low_bits32(unsigned count) noexcept -> uint32_t {
        return static_cast<uint32_t>(low_bits(count));
    }
    /// SKZ84: with TSC scaling or offset, a TMA is corrupt.
    [[nodiscard]] constexpr auto is_corrupt(packet::tma which) const noexcept -> bool {
        return is_skz84_ && (which.raw & packet::tma::reserved_mask()) != 0;
    }
    /// Handles the MTC after an MTC, if an MTC period is a whole number of TSC ticks. Without it,
    /// event times of a trace with MTC and CYC packets take 26 % more instructions.
    constexpr void add_regular(uint32_t payload) noexcept {
        uint32_t const periods = (payload - (ctc_ >> mtc_freq_)) & 0xFF;
        if (periods > 1) { lost_ += periods - 1; }
        ctc_ = payload << mtc_freq_;
        base_ += periods * period_ticks_;
        calibrate(base_, true);
        anchor_ = floor_ = base_;
        early_ = 0;
        high_ = base_;
        ceiling_ = detail::saturating_add(base_, (1 + uint64_t{lost_mtcs_}) * period_ticks_);
        cycles_ = 0;
        now_ = {base_, base_, ceiling_, all_};
    }
    constexpr void add_mtc(uint32_t payload) noexcept {
        // MTCs between a TSC and its TMA are ignored.
        if (numerator_ == 0 || (has_tsc_ && !has_tma_)) {
            pass();
            return;
        }
        uint32_t const ctc = payload << mtc_freq_;
        if (!has_tsc_ && !has_mtc_) {
            ctc_ = ctc;
            has_mtc_ = true;
            anchor_at(base_, 0, time::unbounded);
            refresh();
            return;
        }
        if (!has_mtc_) { resolve_upper_bits(ctc); }
        uint32_t const delta = (ctc - ctc_) & low_bits32(mtc_freq_ + 8U);
        uint32_t const periods = delta >> mtc_freq_;
        if (has_mtc_ && !is_unlimited_ && periods > 1) { lost_ += periods - 1; }
        has_mtc_ = true;
        ctc_ = ctc;
        advance_edge(delta);
        calibrate(base_, true);
        anchor_at(base_, base_error_ + rounding_,
                  is_unlimited_ || !has_tsc_ ? time::unbounded : ticks_until(1U << mtc_freq_));
        refresh();
    }
    [[nodiscard]] constexpr auto divided(uint64_t ticks) const noexcept -> uint64_t {
        return denominator_shift_ != no_shift ? ticks >> denominator_shift_ : ticks / denominator_;
    }
    /// The sum of all steps since the TMA is converted, not each step. Source: PKT-304, PKT-305.
    constexpr void advance_edge(uint32_t delta) noexcept {
        uint64_t const sum = remainder_ + uint64_t{delta} * numerator_;
        uint64_t const ticks = divided(sum);
        base_ += ticks;
        remainder_ = sum - ticks * denominator_;
    }
    /// The latest time before an MTC that is `crystal` crystal cycles after the last edge, if the
    /// processor drops as many MTCs as it may.
    [[nodiscard]] constexpr auto ticks_until(uint64_t crystal) const noexcept -> uint64_t {
        uint64_t const all = crystal + (uint64_t{lost_mtcs_} << mtc_freq_);
        uint64_t const ticks = divided(remainder_ + all * numerator_) + rounding_;
        return detail::saturating_add(base_, ticks);
    }
    /// TMA has the lower 16 bits of the counter. An MTC of a longer period shows more.
    ///
    /// Source: PKT-308, GEN-207.
    constexpr void resolve_upper_bits(uint32_t ctc) noexcept {
        if (mtc_freq_ <= 8) {
            ctc_ &= low_bits32(mtc_freq_ + 8U);
            return;
        }
        uint32_t upper = ctc & ~uint32_t{0xFFFF};
        if ((ctc & 0xFFFF) < ctc_) { upper -= 0x1'0000; }
        ctc_ = (upper + ctc_) & low_bits32(mtc_freq_ + 8U);
    }
    /// The 64-bit value nearest to the last one.
    ///
    /// Source: PKT-315.
    [[nodiscard]] constexpr auto extended(uint64_t low_56) const noexcept -> uint64_t {
        if (!has_tsc_ && !has_reference_) { return low_56; }
        return tsc_near(low_56, has_tsc_ ? anchor_ : reference_);
    }

    /// Sets the point from which cycles count: a TSC or an MTC, which has the time `tsc`.
    constexpr void anchor_at(uint64_t tsc, uint64_t error, uint64_t ceiling) noexcept {
        bool const is_first = ceiling_ == time::unbounded && anchor_ == 0;
        spans_anchor_ = threshold_ != 0 && !is_fresh_;
        if (spans_anchor_ && !is_first) { estimate_early_cycles(tsc); }
        anchor_ = tsc;
        floor_ = detail::saturating_sub(tsc, error);
        early_ = error;
        high_ = detail::saturating_add(tsc, error);
        ceiling_ = ceiling < floor_ ? time::unbounded : ceiling;
        cycles_ = 0;
        has_mixed_ratios_ = false;
        is_fresh_ = false;
    }
    /// With a threshold, the next CYC has cycles of before the point `tsc`: their number is not
    /// known, but lower than the threshold.
    ///
    /// Source: PKT-314, GEN-212.
    constexpr void estimate_early_cycles(uint64_t tsc) noexcept {
        uint64_t const here = anchor_ + ratio_.of(cycles_);
        uint64_t const ticks = detail::saturating_sub(tsc, here);
        uint64_t const scaled = ratio_.scaled() >> 16;
        uint64_t const passed = scaled == 0 ? 0 : ((ticks & low_bits(40)) << 16) / scaled;
        uint64_t const sum = early_cycles_ + passed;
        early_cycles_ = sum < threshold_ ? static_cast<uint32_t>(sum) : threshold_ - 1;
    }
    /// Makes the estimate of the last CYC the point from which cycles count.
    constexpr void anchor_here() noexcept {
        if (cycles_ == 0) { return; }
        auto const here = estimate(0);
        anchor_ = here.tsc;
        early_ = here.tsc - here.earliest;
        high_ = here.latest;
        cycles_ = 0;
    }
    constexpr void add_cycles(uint64_t value) noexcept {
        has_cyc_ = is_fresh_ = true;
        all_ += value;
        if (!ratio_.is_known()) { ++unused_; }
        uint64_t const sum = detail::saturating_add(cycles_, value);
        if (spans_anchor_) { return add_first_cycles(sum); }
        cycles_ = sum < most_cycles ? sum : most_cycles;
        if (has_mixed_ratios_) { mix_frequencies(); }
        refresh();
    }
    /// Handles the first CYC after an anchor without a CYC: some of its cycles precede the anchor.
    constexpr void add_first_cycles(uint64_t sum) noexcept {
        uint64_t const before = early_cycles_ < sum ? early_cycles_ : sum;
        uint64_t const most = threshold_ - 1U;
        cycles_ = sum - before < most_cycles ? sum - before : most_cycles;
        early_ = detail::saturating_add(early_, most_ticks_of(most - early_cycles_));
        high_ = detail::saturating_add(high_, most_ticks_of(before));
        early_cycles_ = 0;
        spans_anchor_ = is_clean_ = false;
        if (has_mixed_ratios_) { mix_frequencies(); }
        refresh();
    }
    /// Accounts for a CBR since the last CYC: the cycles ran partly at each frequency.
    constexpr void mix_frequencies() noexcept {
        uint64_t const ticks = ratio_.of(cycles_);
        early_ = detail::saturating_add(early_, ticks - least_ratio_.of(cycles_));
        high_ = detail::saturating_add(high_, greatest_ratio_.of(cycles_) - ticks);
        has_mixed_ratios_ = false;
        anchor_here();
    }

    /// Measures the ratio of TSC ticks to cycles since the last TSC or MTC: from TSC to TSC or from
    /// MTC to MTC. The value of a TSC may be some 40 cycles older than its CYC
    /// (dr-hello-dyn @43b4).
    ///
    /// Source: PKT-312, PKT-318.
    constexpr void calibrate(uint64_t tsc, bool is_mtc) noexcept {
        bool const is_exact = threshold_ == 0 || is_fresh_;
        bool const is_same = anchor_is_mtc_ == is_mtc;
        anchor_is_mtc_ = is_mtc;
        if (cycles_ != 0 && is_clean_ && is_exact && is_same && tsc > anchor_) {
            auto const found = detail::ratio::of(tsc - anchor_, cycles_);
            if (found.is_known() && (!nominal_.is_known() || found.is_near(nominal_))) {
                ratio_ = found;
                is_calibrated_ = true;
            }
        }
        is_clean_ = is_exact;
    }

    [[nodiscard]] constexpr auto slack() const noexcept -> uint64_t {
        return threshold_ == 0 || is_fresh_ ? 0 : has_cyc_ ? threshold_ - 1U : time::unbounded;
    }
    /// The time `slack` cycles or less after the last CYC.
    [[nodiscard]] constexpr auto estimate(uint64_t slack) const noexcept -> time {
        uint64_t const ticks = has_cyc_ ? ratio_.of(cycles_) : 0;
        if (!has_tsc_) { return {anchor_ + ticks, 0, time::unbounded, all_}; }
        if (!has_cyc_ || !ratio_.is_known()) { return {anchor_, floor_, ceiling_, all_}; }
        uint64_t const error = error_of(ticks);
        uint64_t high = ceiling_;
        if (slack != time::unbounded && !is_unlimited_) {
            uint64_t const most = detail::saturating_add(high_, ticks + error);
            high = least(detail::saturating_add(most, most_ticks_of(slack)), high);
        }
        // At least the last TSC or MTC.
        uint64_t const middle = detail::saturating_add(anchor_, ticks);
        uint64_t const low = detail::saturating_sub(middle, detail::saturating_add(error, early_));
        return {least(middle, high), least(low < floor_ ? floor_ : low, high), high, all_};
    }
    /// The same where `is_simple_`.
    [[nodiscard]] constexpr auto quick_estimate() const noexcept -> time {
        uint64_t const ticks = (cycles_ * ratio_.scaled()) >> 32;
        uint64_t const error = error_of(ticks);
        uint64_t const high = least(high_ + ticks + error, ceiling_);
        uint64_t const low = detail::saturating_sub(anchor_ + ticks, error + early_);
        return {least(anchor_ + ticks, high), least(low < floor_ ? floor_ : low, high), high, all_};
    }
    /// The most TSC ticks that cycles since the last CYC may take.
    [[nodiscard]] constexpr auto most_ticks_of(uint64_t cycles) const noexcept -> uint64_t {
        if (cycles == 0) { return 0; }
        uint64_t const ticks = (has_mixed_ratios_ ? greatest_ratio_ : ratio_).of(cycles) + 1;
        return ticks + deviation_of(ticks);
    }
    /// The error of so many ticks: the deviation of the core clock, and a cycle.
    [[nodiscard]] constexpr auto error_of(uint64_t ticks) const noexcept -> uint64_t {
        return deviation_of(ticks) + cycle_ticks_;
    }
    /// Rounded up.
    [[nodiscard]] constexpr auto deviation_of(uint64_t ticks) const noexcept -> uint64_t {
        return (ticks + round_up_) >> tolerance_;
    }
    static constexpr auto least(uint64_t one, uint64_t two) noexcept -> uint64_t {
        return one < two ? one : two;
    }
    /// Sets the time after a packet.
    constexpr void refresh() noexcept {
        cycle_ticks_ = (ratio_.scaled() >> 32) + 2;
        is_simple_ = has_tsc_ && has_cyc_ && threshold_ == 0 && !is_unlimited_ &&
                     ratio_.is_known() && !has_mixed_ratios_ && !is_monotonic_ &&
                     high_ >> 63 == 0 && cycles_ < quick_cycles;
        is_regular_ = has_tsc_ && has_mtc_ && period_ticks_ != 0 && remainder_ == 0 &&
                      base_error_ == 0 && (is_simple_ || !has_cyc_) && threshold_ == 0 &&
                      !is_unlimited_ && !is_monotonic_;
        now_ = estimate(slack());
        if (is_monotonic_) {
            now_.tsc = now_.tsc < reported_ ? reported_ : now_.tsc;
            reported_ = now_.tsc;
        }
    }

    // The last point with a known time, and the cycles since then.
    uint64_t anchor_ = 0;
    uint64_t early_ = 0;                  ///< the maximum error of `anchor_` downwards
    uint64_t high_ = 0;                   ///< the upper bound of `anchor_`
    uint64_t floor_ = 0;                  ///< the lower bound of all packets after the anchor
    uint64_t ceiling_ = time::unbounded;  ///< their upper bound
    uint64_t cycles_ = 0;
    uint64_t all_ = 0;
    detail::ratio ratio_{};     ///< TSC ticks in a core clock cycle
    uint64_t cycle_ticks_ = 1;  ///< in one cycle, plus rounding: CYC counts whole cycles
    bool is_simple_ = false;    ///< `quick_estimate` applies
    bool is_regular_ = false;   ///< `add_regular` applies
    time now_{};
    uint32_t threshold_ = 0;     ///< in cycles; 0: none
    uint32_t early_cycles_ = 0;  ///< the estimated cycles from the last CYC to the anchor
    bool has_cyc_ = false;
    bool is_fresh_ = false;          ///< no packet since the last CYC
    bool has_mixed_ratios_ = false;  ///< a CBR since the last CYC
    bool spans_anchor_ = false;      ///< the next CYC includes cycles before the anchor
    bool is_unlimited_ = false;
    bool is_clean_ = false;  ///< the ratio can be measured from the anchor on
    bool is_calibrated_ = false;
    bool anchor_is_mtc_ = false;
    bool in_psb_plus_ = false;
    bool has_tsc_ = false;
    bool has_tma_ = false;  ///< since the last TSC
    bool has_mtc_ = false;  ///< since the last TSC or TMA
    uint8_t non_turbo_ = 0;
    uint8_t mtc_freq_ = 0;
    uint8_t tolerance_ = 0;
    uint8_t denominator_shift_ = no_shift;
    bool is_monotonic_ = false;
    bool is_skl168_ = false;
    bool is_skz84_ = false;
    bool has_reference_ = false;
    uint8_t lost_mtcs_ = 0;
    uint32_t numerator_ = 0;
    uint32_t denominator_ = 1;
    uint32_t round_up_ = 0;      ///< 2^tolerance_ - 1
    uint8_t rounding_ = 0;       ///< one tick where the ratio of the clocks is no integer
    uint64_t period_ticks_ = 0;  ///< in a period of MTCs, where that is an integer
    uint32_t ctc_ = 0;           ///< the crystal counter at `base_`
    uint64_t base_ = 0;          ///< the TSC at the last edge of the crystal clock
    uint64_t base_error_ = 0;    ///< the maximum error of `base_` downwards
    uint64_t remainder_ = 0;     ///< of the division by `denominator_`
    uint64_t tsc_ = 0;
    uint64_t reference_ = 0;
    uint64_t reported_ = 0;  ///< the last estimate, if it is monotonic
    uint64_t lost_ = 0;
    uint64_t unused_ = 0;
    detail::ratio nominal_{};         ///< by the last CBR
    detail::ratio least_ratio_{};     ///< extremes since the last CYC, valid if
    detail::ratio greatest_ratio_{};  ///< `has_mixed_ratios_`
};

}  // namespace ptspec::trace
