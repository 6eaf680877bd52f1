// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports.hpp>

namespace ptspec::engine {

/// What became of bytes that were written.
struct [[nodiscard]] write_result {
    size_t taken = 0;  ///< from the front; the others are still the caller's, see `why_not_all`
    uint64_t stored = 0;
    uint64_t lost = 0;
    uint64_t pmis = 0;   ///< interrupts that were raised
    uint64_t first = 0;  ///< the address of the first byte that had one, dropped ones included
    uint64_t last = 0;
    bool had_address = false;
    port_fault why_not_all{};  ///< at address 0 where a fabric has no room

    constexpr explicit operator bool() const noexcept { return !why_not_all; }

    /// Counts bytes, at least one, that were taken, and stored from one address to another.
    constexpr void count_stored(uint64_t from, uint64_t to, uint64_t count) noexcept {
        first = had_address ? first : from;
        last = to;
        had_address = true;
        stored += count;
        taken += static_cast<size_t>(count);
    }
    /// Counts bytes, at least one, that were taken, and stored in a row.
    constexpr void count_stored(uint64_t from, uint64_t count) noexcept {
        count_stored(from, from + count - 1, count);
    }
    /// Adds what became of the bytes that came next. What is in the way is what was in theirs.
    constexpr auto operator+=(write_result const& next) noexcept -> write_result& {
        taken += next.taken;
        stored += next.stored;
        lost += next.lost;
        pmis += next.pmis;
        if (next.had_address) {
            first = had_address ? first : next.first;
            last = next.last;
            had_address = true;
        }
        why_not_all = next.why_not_all;
        return *this;
    }
    friend constexpr auto operator==(write_result const&, write_result const&) -> bool = default;
};

/// How many bytes went where since a trace unit was made.
struct totals {
    uint64_t stored = 0;
    uint64_t lost = 0;
    uint64_t pmis = 0;  ///< interrupts that were raised

    /// Adds what became of the bytes that came next.
    constexpr auto operator+=(write_result const& next) noexcept -> totals& {
        stored += next.stored;
        lost += next.lost;
        pmis += next.pmis;
        return *this;
    }
    friend constexpr auto operator==(totals const&, totals const&) -> bool = default;
};

}  // namespace ptspec::engine
