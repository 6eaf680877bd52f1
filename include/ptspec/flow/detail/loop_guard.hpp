// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec::flow::detail {

/// Ends a walk over blocks without a packet: where a loop repeats, because a jump leads to the
/// marked IP, and after `max_blocks`. After 16, 32, 64 .. blocks the mark moves, because the first
/// IP may be before the loop (Brent's algorithm).
class loop_guard {
public:
    /// No program is known that has so much code without a packet, up to 131,072 instructions. Else
    /// each packet of a hostile trace may cost a walk over all the code.
    static constexpr unsigned max_blocks = 4096;

    constexpr explicit loop_guard(uint64_t ip) noexcept : mark_{ip} {}
    /// Called after each block, with the IP that follows. True if the walk ends here. A reference:
    /// the block that computes `jumps` may set the IP.
    constexpr auto ends(bool jumps, uint64_t const& ip) noexcept -> bool {
        if (++blocks_ == max_blocks) { return true; }
        if (!jumps) { return false; }
        if (ip == mark_) { return true; }
        if (blocks_ >= next_mark_) {
            next_mark_ = 2 * blocks_;
            mark_ = ip;
        }
        return false;
    }

private:
    uint64_t mark_;
    unsigned blocks_ = 0;
    unsigned next_mark_ = 16;
};

}  // namespace ptspec::flow::detail
