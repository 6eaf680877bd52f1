// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/block.hpp>
#include <ptspec/flow/detail/slots.hpp>
#include <ptspec/packet/tnt.hpp>

namespace ptspec::flow {

/// Branches of TNTs, from an IP on.
struct path_key {
    /// At most this many branches.
    static constexpr unsigned most_branches = 32;

    uint64_t ip = 0;
    uint64_t branches = 0;  ///< their outcomes and number, and the code size; 0: no path
    uint64_t place = 0;     ///< address space, and the generation of the block cache

    constexpr path_key() noexcept = default;
    constexpr path_key(block_key const& from, packet::branches of, uint32_t generation) noexcept
        : ip{from.ip},
          branches{of.bits | uint64_t{of.count} << 40 | uint64_t{underlying(from.width)} << 48},
          place{uint64_t{from.space} << 32 | generation} {}

    friend constexpr auto operator==(path_key const&, path_key const&) -> bool = default;
};

/// What these branches led to: the edges to count, and where the code continues.
///
/// Shape:  128 bytes. A path with up to six edges and no pushed address is in the first 64.
struct alignas(128) path {
    /// So many edges are counted always, and not in a loop, whose end would be mispredicted.
    static constexpr unsigned usual_edges = 6;
    static constexpr unsigned most_edges = 16;
    static constexpr unsigned most_pushes = 3;

    path_key key{};
    uint64_t end = 0;
    uint32_t end_slot = 0;  ///< in the block cache
    uint8_t taken = 0;      ///< of the branches; 0: the first one cannot be kept
    uint8_t edges = 0;
    uint8_t pushes = 0;
    uint8_t depth = 0;                  ///< the most pushed addresses at a time
    uint32_t counted[most_edges] = {};  ///< the index of each edge
    uint64_t pushed[most_pushes] = {};  ///< return addresses
};

/// Paths that were walked, in storage of the caller: `path storage[4096]` is 512 KB. When it is
/// full, paths are replaced; no result depends on its size.
class path_cache {
public:
    template <size_t Count>
    constexpr explicit path_cache(path (&storage)[Count]) noexcept : path_cache{storage, Count} {}
    /// `count` is 1 to 2^32 - 1.
    constexpr path_cache(path* storage, size_t count) noexcept
        : paths_{storage}, count_{static_cast<uint32_t>(count)} {}

    /// The path with this key, or the place for one.
    [[nodiscard]] constexpr auto at(path_key const& key) noexcept -> path& {
        uint64_t const spread = key.branches * detail::golden;
        uint32_t const slot = detail::slot_of(detail::hash_of(key.ip ^ spread), count_);
        path& one = paths_[slot];
        if (one.key == key) [[likely]] { return one; }
        path& other = paths_[detail::slot_beside(slot, count_)];
        if (one.key.branches == 0) { return one; }
        if (other.key == key) { return other; }
        takes_beside_ = !takes_beside_;
        return other.key.branches == 0 || takes_beside_ ? other : one;
    }
    constexpr void clear() noexcept {
        for (uint32_t i = 0; i < count_; ++i) { paths_[i] = {}; }
    }

private:
    path* paths_;
    uint32_t count_;
    bool takes_beside_ = false;
};

}  // namespace ptspec::flow
