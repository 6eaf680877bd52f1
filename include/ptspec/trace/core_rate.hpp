// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>

/// How many TSC ticks a core clock cycle takes: estimates and bounds, in integers.
namespace ptspec::trace::detail {

constexpr auto saturating_add(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return one + two < one ? ~uint64_t{0} : one + two;
}
constexpr auto saturating_sub(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return one < two ? 0 : one - two;
}
/// `count` times a factor in units of 2^-32, rounded down. `count` is below 2^48, the factor below
/// 2^40: counts below 2^24 lose only the fraction; larger ones also lose less than one tick in
/// 2^24.
constexpr auto scaled_by(uint64_t count, uint64_t factor) noexcept -> uint64_t {
    if (count < uint64_t{1} << 24) [[likely]] { return (count * factor) >> 32; }
    return (count >> 24) * (factor >> 8) + (((count & low_bits(24)) * factor) >> 32);
}

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
        return scaled_by(count, scaled_);
    }
    /// True if the ratio differs from `other` by at most a quarter of `other`.
    [[nodiscard]] constexpr auto is_near(ratio other) const noexcept -> bool {
        uint64_t const apart = scaled_ < other.scaled_ ? other.scaled_ - scaled_
                                                       : scaled_ - other.scaled_;
        return apart <= other.scaled_ / 4;
    }

private:
    uint64_t scaled_ = 0;
};

/// The bounds of the TSC ticks that a core clock cycle takes. Without limits: 0 and `unlimited`.
///
/// Units:  2^-32 TSC ticks.
struct rate_range {
    static constexpr uint64_t unlimited = ~uint64_t{0};

    uint64_t min_ticks = 0;          ///< rounded down
    uint64_t max_ticks = unlimited;  ///< rounded up

    /// The core clock runs at 1 - 1 / 2^tolerance to 1 / (1 - 1 / 2^tolerance) times the frequency
    /// that the ratio of ticks to cycles `numerator` / `denominator` gives.
    [[nodiscard]] static constexpr auto of(uint64_t numerator, uint64_t denominator,
                                           unsigned tolerance) noexcept -> rate_range {
        if (numerator == 0 || denominator == 0 || numerator >> 31 != 0) { return {}; }
        rate_range found{(numerator << 32) / denominator,
                         ((numerator << 32) + denominator - 1) / denominator};
        found.widen(tolerance);
        return found;
    }

    [[nodiscard]] constexpr auto is_limited() const noexcept -> bool {
        return max_ticks != unlimited;
    }
    /// The least number of ticks that `cycles` cycles take, rounded down.
    [[nodiscard]] constexpr auto min_of(uint64_t cycles) const noexcept -> uint64_t {
        return scaled_by(cycles, min_ticks);
    }
    /// The greatest number of ticks that `cycles` cycles take, rounded down.
    [[nodiscard]] constexpr auto max_of(uint64_t cycles) const noexcept -> uint64_t {
        if (cycles == 0) { return 0; }
        return is_limited() ? scaled_by(cycles, max_ticks) + (cycles >> 24) : unlimited;
    }
    /// The least range that contains both.
    constexpr void include(rate_range other) noexcept {
        if (other.min_ticks < min_ticks) { min_ticks = other.min_ticks; }
        if (other.max_ticks > max_ticks) { max_ticks = other.max_ticks; }
    }

    friend constexpr auto operator==(rate_range const&, rate_range const&) -> bool = default;

private:
    constexpr void widen(unsigned tolerance) noexcept {
        uint64_t const part = uint64_t{1} << tolerance;
        min_ticks -= min_ticks / part + (min_ticks % part != 0 ? 1 : 0);
        if (max_ticks == unlimited || part == 1) {
            max_ticks = unlimited;
            return;
        }
        max_ticks += (max_ticks + part - 2) / (part - 1);
        if (max_ticks >> 40 != 0) { max_ticks = unlimited; }  // `scaled_by` has no room for more
    }
};

}  // namespace ptspec::trace::detail
