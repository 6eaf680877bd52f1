// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec::flow::detail {

/// Detects a loop without packets by a repeated IP.
class loop_guard {
public:
    constexpr explicit loop_guard(uint64_t ip) noexcept : mark_{ip} {}
    /// True if a jump to `ip` shows that the loop repeats.
    constexpr auto repeats(uint64_t ip) noexcept -> bool {
        if (ip == mark_) { return true; }
        if (++steps_ == most_) {
            steps_ = 0;
            most_ *= 2;
            mark_ = ip;
        }
        return false;
    }

private:
    uint64_t mark_;
    uint64_t steps_ = 0;
    uint64_t most_ = 16;
};

}  // namespace ptspec::flow::detail
