// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>

/// TSC offset and TSC scaling: how a guest sees the time-stamp counter.
namespace ptspec::trace {

namespace detail {

/// Bits 111:48 of the product of two numbers.
[[nodiscard]] constexpr auto product_shifted_48(uint64_t a, uint64_t b) noexcept -> uint64_t {
    uint64_t const low = (a & low_bits(32)) * (b & low_bits(32));
    uint64_t const one = (a >> 32) * (b & low_bits(32));
    uint64_t const two = (a & low_bits(32)) * (b >> 32);
    uint64_t const middle = (low >> 32) + (one & low_bits(32)) + (two & low_bits(32));
    uint64_t const high = (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32) + (middle >> 32);
    return high << 16 | (middle & low_bits(32)) >> 16;
}
/// a * 2^48 / b, rounded up. `b` is not 0.
[[nodiscard]] constexpr auto quotient_of_shifted_48(uint64_t a, uint64_t b) noexcept -> uint64_t {
    uint64_t quotient = a / b;
    uint64_t rest = a % b;
    for (unsigned i = 0; i < 48; ++i) {
        bool const is_wide = rest >> 63 != 0;
        rest <<= 1;
        quotient <<= 1;
        if (is_wide || rest >= b) {
            rest -= b;
            quotient |= 1;
        }
    }
    return quotient + (rest != 0 ? 1 : 0);
}

}  // namespace detail

/// The TSC values from `first` to `last`.
struct tsc_range {
    uint64_t first = 0;
    uint64_t last = 0;

    friend constexpr auto operator==(tsc_range const&, tsc_range const&) -> bool = default;
};

/// How a guest sees the time-stamp counter: TSC * multiplier / 2^48 + offset.
///
/// Units:  `multiplier` and `offset` as the VMCS has them: 48 bits of fraction; TSC ticks.
/// Source: SDM vol. 3, "TSC Scaling"; GEN-200, PRG-164.
struct tsc_change {
    static constexpr uint64_t unscaled = uint64_t{1} << 48;

    uint64_t multiplier = unscaled;
    uint64_t offset = 0;
    /// A TSC of the host near the time of the trace. It gives the upper bits, because packets have
    /// only 56 bits of the TSC. Needed with a multiplier.
    uint64_t near_by = 0;

    [[nodiscard]] constexpr auto scales() const noexcept -> bool { return multiplier != unscaled; }
    [[nodiscard]] constexpr auto of(uint64_t tsc) const noexcept -> uint64_t {
        return detail::product_shifted_48(tsc, multiplier) + offset;
    }
    /// The host's TSCs that the guest sees as `guest`. If there is none, the next one.
    [[nodiscard]] constexpr auto host_of(uint64_t guest) const noexcept -> tsc_range {
        uint64_t const scaled = guest - offset;
        if (!scales() || multiplier == 0) { return {scaled, scaled}; }
        uint64_t const first = detail::quotient_of_shifted_48(scaled, multiplier);
        uint64_t const next = detail::quotient_of_shifted_48(scaled + 1, multiplier);
        return {first, next > first ? next - 1 : first};
    }
};

}  // namespace ptspec::trace
