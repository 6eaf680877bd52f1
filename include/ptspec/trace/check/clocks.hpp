// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/check/options.hpp>

namespace ptspec::trace {

/// Checks the values of TSC, TMA and MTC packets. Each function returns the rule that the packet
/// violates.
///
/// Source: GEN-201, GEN-203, GEN-205..207, GEN-218, PKT-103, PKT-278.
class clock_checker {
public:
    constexpr clock_checker() noexcept = default;
    constexpr clock_checker(uint8_t mtc_freq, uint32_t tsc_per_crystal) noexcept
        : period_{tsc_per_crystal}, freqs_{mtc_freq < 16 ? 1U << mtc_freq : all_freqs} {}

    /// Earlier packets may be lost, or belong to another stream.
    constexpr void restart() noexcept {
        has_tsc_ = has_base_ = false;
        lose();
    }
    /// Forgets the last MTC and TMA, because packets are lost.
    constexpr void lose() noexcept {
        has_mtc_ = has_tma_ = may_have_tma_ = has_jump_ = is_mtc_ = may_not_repeat_ = false;
    }

    [[nodiscard]] constexpr auto add_tsc(uint64_t value) noexcept -> rule {
        bool const falls = has_tsc_ && value < tsc_;
        has_tsc_ = may_have_tma_ = true;
        // The clocks may have been off, also before MTCs that stand before this TSC.
        has_mtc_ = has_tma_ = has_jump_ = false;
        may_not_repeat_ = is_mtc_;
        tsc_ = value;
        return falls ? rule::PKT_278 : rule::none;
    }
    [[nodiscard]] constexpr auto add_tma(uint64_t count, uint64_t fast) noexcept -> rule {
        if (!may_have_tma_) { return rule::PKT_135; }
        may_have_tma_ = false;
        may_not_repeat_ |= is_mtc_;
        bool const agrees = agrees_with_base(tsc_ - fast, count);
        has_tma_ = has_base_ = true;
        ctc_ = static_cast<uint16_t>(count);
        edge_ = tsc_ - fast;
        if (period_ != 0 && fast >= period_) { return rule::PKT_103; }
        return agrees ? rule::none : rule::GEN_206;
    }
    [[nodiscard]] constexpr auto add_mtc(uint64_t payload, uint64_t offset) noexcept -> rule {
        auto const value = static_cast<uint8_t>(payload);
        auto const step = static_cast<uint8_t>(value - mtc_);
        bool const follows_mtc = has_mtc_;
        bool const follows_tma = has_tma_;
        bool const repeats = step == 0 && (follows_mtc || may_not_repeat_);
        mtc_ = value;
        has_mtc_ = is_mtc_ = true;
        has_tma_ = may_not_repeat_ = false;
        if (repeats) { return rule::GEN_203; }
        if (follows_tma) {
            uint32_t const left = freqs_ & freqs_after_tma(value);
            if (left == 0) { return rule::GEN_206; }
            narrow(left);
        } else if (follows_mtc && step > 2 && has_tsc_ && !has_jump_) {
            has_jump_ = true;  // a TSC may follow
            jump_ = offset;
        }
        return rule::none;
    }
    /// A packet other than TSC, TMA, MTC, CYC and PAD.
    constexpr void separate() noexcept { may_have_tma_ = is_mtc_ = false; }

    /// True if MTCs were missing and no TSC followed. Called at packets other than timing packets;
    /// `jump()` is the offset of the MTC.
    [[nodiscard]] constexpr auto take_jump() noexcept -> bool {
        bool const had = has_jump_;
        has_jump_ = false;
        return had;
    }
    [[nodiscard]] constexpr auto jump() const noexcept -> uint64_t { return jump_; }

private:
    static constexpr uint32_t all_freqs = 0xFFFF;
    static constexpr uint32_t wholly_known = 0x01FF;

    /// The values of MTCFreq with which an MTC is the first or second after the TMA.
    [[nodiscard]] constexpr auto freqs_after_tma(uint8_t value) const noexcept -> uint32_t {
        uint32_t fitting = 0;
        for (unsigned n = 0; n < 16; ++n) {
            // Of the bits of an MTC, TMA has the lowest 16 - N. Source: GEN-207.
            unsigned const known = n <= 8 ? 0xFF : 0xFFFFU >> n;
            unsigned const step = (value - (unsigned{ctc_} >> n)) & known;
            bool const fits = step == (1 & known) || step == (2 & known);
            fitting |= uint32_t{fits} << n;
        }
        return fitting;
    }
    /// Keeps the values of MTCFreq in `left`. Up to 8, all bits of an MTC are in the TMA before it,
    /// so that a wrong value seldom fits several times. Above 8 fewer bits can be compared, and 15
    /// always fits: these values are excluded after three MTCs that fit a value up to 8.
    constexpr void narrow(uint32_t left) noexcept {
        constexpr unsigned enough = 3;
        freqs_ = left;
        if ((left & wholly_known) == 0) { return; }
        if (agreements_ < enough) { ++agreements_; }
        if (agreements_ == enough) { freqs_ &= wholly_known; }
    }
    /// True if the crystal clock and the TSC have advanced alike since the last TMA.
    [[nodiscard]] constexpr auto agrees_with_base(uint64_t edge, uint64_t count) const noexcept
        -> bool {
        if (period_ == 0 || !has_base_) { return true; }
        uint64_t const ticks = edge - edge_;
        return ticks % period_ == 0 && ((ticks / period_ - (count - ctc_)) & 0xFFFF) == 0;
    }

    uint32_t period_ = 0;
    uint32_t freqs_ = all_freqs;  ///< a bit for each value of MTCFreq that is possible
    unsigned agreements_ = 0;
    bool has_tsc_ = false;
    bool has_base_ = false;        ///< `edge_` and `ctc_` are known
    bool has_mtc_ = false;         ///< an MTC since the last TSC or loss
    bool has_tma_ = false;         ///< a TMA since the last MTC
    bool may_have_tma_ = false;    ///< the last packet was a TSC
    bool is_mtc_ = false;          ///< the last packet was an MTC
    bool may_not_repeat_ = false;  ///< an MTC stood directly before the last TSC or TMA
    bool has_jump_ = false;
    uint8_t mtc_ = 0;
    uint16_t ctc_ = 0;
    uint64_t tsc_ = 0;
    uint64_t edge_ = 0;  ///< TSC at the edge of the crystal clock to which `ctc_` belongs
    uint64_t jump_ = 0;
};

}  // namespace ptspec::trace
