// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>

/// The edges of the crystal clock that TMA and MTC packets name, in TSC ticks.
namespace ptspec::trace::detail {

/// The last edge of the crystal clock with a known time: `base` TSC ticks, when the counter of the
/// crystal clock is `ctc`.
///
/// Source: PKT-300..308, GEN-203..207.
class crystal_edge {
public:
    constexpr crystal_edge() noexcept : crystal_edge{0, 0, 0} {}
    /// TSC ticks in crystal cycles: CPUID.15H:EBX / CPUID.15H:EAX. No time from MTC if one is 0.
    constexpr crystal_edge(uint32_t numerator, uint32_t denominator, uint8_t mtc_freq) noexcept
        : mtc_freq_{static_cast<uint8_t>(mtc_freq & 15)},
          numerator_{denominator == 0 ? 0 : numerator},
          denominator_{denominator == 0 ? 1 : denominator} {
        bool const is_power = (denominator_ & (denominator_ - 1)) == 0;
        denominator_shift_ = static_cast<uint8_t>(is_power ? lowest_bit(denominator_) : no_shift);
        rounding_ = numerator_ % denominator_ != 0 ? 1 : 0;
        uint64_t const ticks = uint64_t{numerator_} << mtc_freq_;
        period_ticks_ = ticks % denominator_ == 0 ? ticks / denominator_ : 0;
    }

    [[nodiscard]] constexpr auto is_known() const noexcept -> bool { return numerator_ != 0; }
    [[nodiscard]] constexpr auto base() const noexcept -> uint64_t { return base_; }
    [[nodiscard]] constexpr auto ctc() const noexcept -> uint32_t { return ctc_; }
    /// The maximum error of `base`, in ticks.
    [[nodiscard]] constexpr auto error() const noexcept -> uint64_t {
        return base_error_ + rounding_;
    }
    /// The payload of the MTC at this count.
    [[nodiscard]] constexpr auto mtc_of(uint32_t ctc) const noexcept -> uint16_t {
        return static_cast<uint16_t>(ctc >> mtc_freq_ & 0xFF);
    }
    /// The bits of the count that an MTC has.
    [[nodiscard]] constexpr auto ctc_of(uint32_t mtc) const noexcept -> uint32_t {
        return mtc << mtc_freq_;
    }

    /// Starts to count times without a TSC, from this CTC on.
    constexpr void start_at(uint32_t ctc) noexcept { ctc_ = ctc; }
    /// Takes a TSC. No edge is known until its TMA.
    constexpr void restart(uint64_t tsc) noexcept {
        base_ = tsc;
        remainder_ = 0;
    }
    /// Takes a TMA. The edge is `fast` ticks before the TSC.
    constexpr void start(uint64_t tsc, uint32_t ctc, uint64_t fast) noexcept {
        restart(tsc < fast ? 0 : tsc - fast);
        ctc_ = ctc;
        // FC has nine bits: if the crystal clock has a longer period, the edge may be earlier.
        uint64_t const period = numerator_ / denominator_;
        base_error_ = period < 512 ? 0 : period / 512 * 512;
    }
    constexpr void shift(uint64_t ticks) noexcept { base_ += ticks; }
    /// Advances to an MTC at this count. Returns the number of MTC periods.
    ///
    /// The sum of all steps since the TMA is converted, not each step. Source: PKT-304, PKT-305.
    constexpr auto advance(uint32_t ctc) noexcept -> uint32_t {
        uint32_t const delta = (ctc - ctc_) & low_bits32(mtc_freq_ + 8U);
        ctc_ = ctc;
        uint64_t const sum = remainder_ + uint64_t{delta} * numerator_;
        uint64_t const ticks = divided(sum);
        base_ += ticks;
        remainder_ = sum - ticks * denominator_;
        return delta >> mtc_freq_;
    }
    /// The same; requires `is_regular()`.
    constexpr auto advance_regular(uint32_t mtc) noexcept -> uint32_t {
        uint32_t const periods = (mtc - (ctc_ >> mtc_freq_)) & 0xFF;
        ctc_ = mtc << mtc_freq_;
        base_ += periods * period_ticks_;
        return periods;
    }
    /// True if each MTC is a whole number of TSC ticks later than the last.
    [[nodiscard]] constexpr auto is_regular() const noexcept -> bool {
        return period_ticks_ != 0 && remainder_ == 0 && base_error_ == 0;
    }
    [[nodiscard]] constexpr auto period_ticks() const noexcept -> uint64_t { return period_ticks_; }

    /// Sets the upper bits of the count from the count of an MTC. TMA has only the lower 16 bits;
    /// an MTC has upper bits if MTCFreq is above 8.
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
    /// The latest time before the next MTC, if the processor drops `lost` MTCs before it.
    [[nodiscard]] constexpr auto next_mtc(uint32_t lost) const noexcept -> uint64_t {
        uint32_t const next = ((ctc_ >> mtc_freq_) + 1) << mtc_freq_;
        uint64_t const all = (next - ctc_) + (uint64_t{lost} << mtc_freq_);
        uint64_t const ticks = divided(remainder_ + all * numerator_) + rounding_;
        return base_ + ticks < base_ ? ~uint64_t{0} : base_ + ticks;
    }
    /// True if the next MTC may have this payload. Compares the bits that TMA has, the lower 16
    /// bits of the counter.
    [[nodiscard]] constexpr auto next_may_be(uint16_t mtc) const noexcept -> bool {
        uint32_t const known = low_bits32(mtc_freq_ > 8 ? 16U - mtc_freq_ : 8U);
        return (((ctc_ >> mtc_freq_) + 1 - mtc) & known) == 0;
    }

private:
    static constexpr uint8_t no_shift = 0xFF;

    static constexpr auto low_bits32(unsigned count) noexcept -> uint32_t {
        return static_cast<uint32_t>(low_bits(count));
    }
    [[nodiscard]] constexpr auto divided(uint64_t ticks) const noexcept -> uint64_t {
        return denominator_shift_ != no_shift ? ticks >> denominator_shift_ : ticks / denominator_;
    }

    uint8_t mtc_freq_ = 0;
    uint8_t denominator_shift_ = no_shift;
    uint8_t rounding_ = 0;  ///< 1 if the ratio of the clocks is no integer, else 0
    uint32_t numerator_ = 0;
    uint32_t denominator_ = 1;
    uint32_t ctc_ = 0;
    uint64_t period_ticks_ = 0;  ///< in an MTC period; 0 if that is no integer
    uint64_t base_ = 0;
    uint64_t base_error_ = 0;  ///< the maximum error of `base_` downwards
    uint64_t remainder_ = 0;   ///< of the division by `denominator_`
};

}  // namespace ptspec::trace::detail
