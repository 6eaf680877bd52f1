// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/restricted.hpp>

namespace ptspec::engine {

/// The result of writing bytes.
struct [[nodiscard]] write_result {
    size_t taken = 0;  ///< number of bytes consumed, from the front; see `fault` for the rest
    uint64_t stored = 0;
    uint64_t lost = 0;
    uint64_t pmis = 0;  ///< interrupts that were raised
    phys_addr first{};  ///< of the first byte that has an address, dropped bytes included
    phys_addr last{};
    bool has_address = false;
    port_fault fault{};  ///< at address 0 when a fabric has no room

    constexpr explicit operator bool() const noexcept { return !fault.happened; }

    /// Counts `count` bytes that were consumed and stored, at least one.
    constexpr void count_stored(topa::phys_range at, uint64_t const count) noexcept {
        first = has_address ? first : at.first;
        last = at.last;
        has_address = true;
        stored += count;
        taken += static_cast<size_t>(count);
    }
    /// Counts contiguous bytes that were consumed and stored, at least one.
    constexpr void count_stored(phys_addr from, uint64_t count) noexcept {
        count_stored({from, from + (count - 1)}, count);
    }
    /// Adds the result of the next write. The fault is that of the next write.
    constexpr auto operator+=(write_result const& next) noexcept -> write_result& {
        taken += next.taken;
        stored += next.stored;
        lost += next.lost;
        pmis += next.pmis;
        if (next.has_address) {
            first = has_address ? first : next.first;
            last = next.last;
            has_address = true;
        }
        fault = next.fault;
        return *this;
    }
    friend constexpr auto operator==(write_result const&, write_result const&) -> bool = default;
};

/// The address of a byte of trace, if it is known.
struct output_address {
    bool is_known = false;
    phys_addr value{};

    constexpr explicit operator bool() const noexcept { return is_known; }
    friend constexpr auto operator==(output_address const&, output_address const&)
        -> bool = default;
};

/// Byte and interrupt counts since the construction of a trace unit.
struct totals {
    uint64_t stored = 0;
    uint64_t lost = 0;
    uint64_t pmis = 0;  ///< interrupts that were raised

    /// Adds the result of the next write.
    constexpr auto operator+=(write_result const& next) noexcept -> totals& {
        stored += next.stored;
        lost += next.lost;
        pmis += next.pmis;
        return *this;
    }
    friend constexpr auto operator==(totals const&, totals const&) -> bool = default;
};

}  // namespace ptspec::engine
