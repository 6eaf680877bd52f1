// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bits.hpp>

/// Slots of a hash table of any size, in storage of the caller. An entry is stored in the slot of
/// its hash or in the slot beside it.
namespace ptspec::flow::detail {

/// 2^64 divided by the golden ratio.
inline constexpr uint64_t golden = 0x9E37'79B9'7F4A'7C15;

/// A hash of a value: the upper half of a product modulo 2^64.
[[nodiscard]] constexpr auto hash_of(uint64_t value) noexcept -> uint32_t {
    return static_cast<uint32_t>(value * golden >> 32);
}
/// The slot of a hash in a table of `count` slots.
[[nodiscard]] constexpr auto slot_of(uint32_t hash, uint32_t count) noexcept -> uint32_t {
    return static_cast<uint32_t>(uint64_t{hash} * count >> 32);
}
/// The other slot of a pair: slots 0 and 1, 2 and 3, and so on. If `count` is odd, the last slot is
/// returned itself, because it has no other.
[[nodiscard]] constexpr auto slot_beside(uint32_t slot, uint32_t count) noexcept -> uint32_t {
    uint32_t const other = slot ^ 1;
    return other < count ? other : slot;
}

}  // namespace ptspec::flow::detail
