// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec {

/// A set of flags: enumerators of `Flag`, whose values are different single bits.
template <class Flag>
struct flag_set {
    uint32_t bits = 0;

    [[nodiscard]] constexpr auto has(Flag one) const noexcept -> bool {
        return (bits & underlying(one)) != 0;
    }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return bits == 0; }
    constexpr void add(Flag one) noexcept { bits |= underlying(one); }
    /// The set with `one` added, if `wanted`.
    [[nodiscard]] constexpr auto with(Flag one, bool wanted = true) const noexcept -> flag_set {
        return {wanted ? bits | underlying(one) : bits};
    }
    friend constexpr auto operator|(flag_set one, flag_set two) noexcept -> flag_set {
        return {one.bits | two.bits};
    }
    friend constexpr auto operator==(flag_set, flag_set) noexcept -> bool = default;
};

}  // namespace ptspec
