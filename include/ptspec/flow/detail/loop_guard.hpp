// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec::flow::detail {

/// Detects a loop without packets: it repeats if a jump leads to the marked IP. After 16, 32, 64 ..
/// jumps the mark moves, because the first IP may be before the loop (Brent's algorithm).
class loop_guard {
public:
    constexpr explicit loop_guard(uint64_t ip) noexcept : mark_{ip} {}
    /// True if a jump to `ip` shows that the loop repeats.
    constexpr auto repeats(uint64_t ip) noexcept -> bool {
        if (ip == mark_) { return true; }
        if (++steps_ == max_steps_) {
            steps_ = 0;
            max_steps_ *= 2;
            mark_ = ip;
        }
        return false;
    }

private:
    uint64_t mark_;
    uint64_t steps_ = 0;
    uint64_t max_steps_ = 16;
};

}  // namespace ptspec::flow::detail
