// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace ptspec::test {

/// The generator splitmix64: a seed gives the same numbers everywhere, also in a constant
/// expression. The order of evaluation of operands and arguments is unspecified, so one expression
/// that must give the same with every compiler draws one number.
struct random_numbers {
    std::uint64_t state = 1;

    constexpr auto operator()() noexcept -> std::uint64_t {
        state += 0x9E37'79B9'7F4A'7C15;
        std::uint64_t mixed = state;
        mixed = (mixed ^ mixed >> 30) * 0xBF58'476D'1CE4'E5B9;
        mixed = (mixed ^ mixed >> 27) * 0x94D0'49BB'1331'11EB;
        return mixed ^ mixed >> 31;
    }
    /// A number below `count`.
    constexpr auto below(std::uint64_t count) noexcept -> std::uint64_t {
        return (*this)() % count;
    }
    constexpr auto one_in(std::uint64_t count) noexcept -> bool { return below(count) == 0; }
};

}  // namespace ptspec::test
