// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bits.hpp>

/// Places in a table of the caller, of any size: an entry is in its slot or in the one beside.
namespace ptspec::flow::detail {

/// 2^64 divided by the golden ratio.
inline constexpr uint64_t golden = 0x9E37'79B9'7F4A'7C15;

[[nodiscard]] constexpr auto hash_of(uint64_t value) noexcept -> uint32_t {
    return static_cast<uint32_t>(value * golden >> 32);
}
[[nodiscard]] constexpr auto slot_of(uint32_t hash, uint32_t count) noexcept -> uint32_t {
    return static_cast<uint32_t>(uint64_t{hash} * count >> 32);
}
/// The slot beside another. The last slot may be its own.
[[nodiscard]] constexpr auto slot_beside(uint32_t slot, uint32_t count) noexcept -> uint32_t {
    uint32_t const other = slot ^ 1;
    return other < count ? other : slot;
}

}  // namespace ptspec::flow::detail
