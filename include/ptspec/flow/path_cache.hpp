// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>
#include <ptspec/flow/block.hpp>
#include <ptspec/flow/detail/slots.hpp>
#include <ptspec/packet/tnt.hpp>

namespace ptspec::flow {

/// The packet that ends a path.
enum class path_end : uint8_t {
    none,         ///< the last TNT
    tip,          ///< with an IP
    tip_pgd,      ///< without an IP
    tip_pgd_out,  ///< with an IP
    tip_pge,      ///< with an IP; the path has no branches
};

/// The start of a path, its branches, and the packet that ends it.
struct path_key {
    /// At most this many branches.
    static constexpr unsigned max_branches = 32;

    uint64_t ip = 0;
    uint64_t to = 0;        ///< the IP of the packet that ends it
    uint64_t branches = 0;  ///< outcomes and number, code size, and `path_end`; 0: no path
    uint64_t place = 0;     ///< address space, and the generation of the block cache

    constexpr path_key() noexcept = default;
    constexpr path_key(block_key const& from, packet::branches taken, uint32_t generation,
                       path_end end = path_end::none, uint64_t target = 0) noexcept
        : ip{from.ip},
          to{target},
          branches{taken.bits | uint64_t{taken.count} << 40 |
                   uint64_t{underlying(from.width)} << 48 | uint64_t{underlying(end)} << 52 |
                   uint64_t{1} << 63},
          place{uint64_t{from.space} << 32 | generation} {}

    [[nodiscard]] constexpr auto end() const noexcept -> path_end {
        return static_cast<path_end>(branches >> 52 & 15);
    }
    friend constexpr auto operator==(path_key const& one, path_key const& two) noexcept -> bool {
        // Without a branch for each member: keys are usually equal.
        return ((one.ip ^ two.ip) | (one.to ^ two.to) | (one.branches ^ two.branches) |
                (one.place ^ two.place)) == 0;
    }
};

/// A path that followed another one, and the bytes of its packets.
struct path_successor {
    uint64_t low = 0;    ///< bytes 0 to 7
    uint64_t high = 0;   ///< bytes 8 to 15
    uint32_t id = 0;     ///< `path::id`
    uint32_t index = 0;  ///< of the path in the cache
    uint32_t size = 0;   ///< of the packets, in bytes; 0: no successor
};

/// The effect of a path: the edges to count, the changes of the return stack, and the next IP.
///
/// Shape:  256 bytes. Cache line 0 has all of a path with up to four edges and no pushed address,
///         cache line 1 its successors.
struct alignas(64) path {
    /// This many edges are always counted: the end of a loop would be mispredicted.
    static constexpr unsigned usual_edges = 4;
    static constexpr unsigned max_edges = 24;
    static constexpr unsigned max_successors = 2;
    static constexpr unsigned max_pushes = 6;
    static constexpr unsigned index_bits = 24;
    static constexpr uint32_t index_mask = (1U << index_bits) - 1;
    static constexpr unsigned max_times = 255;
    static constexpr uint8_t not_repeatable = 255;

    path_key key{};
    uint64_t end = 0;  ///< the next IP
    /// The number of branches that the path covers, if `path_end::none` ends it; or
    /// `not_repeatable`.
    uint8_t taken = 0;
    uint8_t edges = 0;
    uint8_t pushes : 3 = 0;  ///< return addresses that it leaves on the return stack
    bool pops : 1 = false;   ///< it ends with a RET that is not compressed
    uint8_t depth = 0;       ///< the maximum number of its addresses on the return stack
    uint32_t id = 0;         ///< unique in the cache
    uint32_t first_counted[usual_edges] = {};
    path_successor successors[max_successors] = {};
    uint32_t more_counted[max_edges - usual_edges] = {};
    uint64_t pushed[max_pushes] = {};  ///< return addresses

    /// An edge: its index in bits 23:0, and in bits 31:24 the number of times that it counts.
    [[nodiscard]] constexpr auto counted(unsigned edge) const noexcept -> uint32_t {
        return edge < usual_edges ? first_counted[edge] : more_counted[edge - usual_edges];
    }
    [[nodiscard]] constexpr auto counted(unsigned edge) noexcept -> uint32_t& {
        return edge < usual_edges ? first_counted[edge] : more_counted[edge - usual_edges];
    }

    [[nodiscard]] constexpr auto index(unsigned edge) const noexcept -> uint32_t {
        return counted(edge) & index_mask;
    }
    [[nodiscard]] constexpr auto times(unsigned edge) const noexcept -> uint32_t {
        return counted(edge) >> index_bits;
    }
    /// Counts an edge. Returns false if there is no room.
    [[nodiscard]] constexpr auto count(uint32_t with) noexcept -> bool {
        for (unsigned i = 0; i < edges; ++i) {
            if (index(i) == with && times(i) != max_times) {
                counted(i) += 1U << index_bits;
                return true;
            }
        }
        if (edges == max_edges || with >> index_bits != 0) { return false; }
        counted(edges++) = with | 1U << index_bits;
        return true;
    }
};

/// Paths that were walked, in storage of the caller: `path storage[4096]` is 1 MB. When it is
/// full, paths are replaced; no result depends on its size. A new cache is empty, whatever the
/// storage has.
class path_cache {
public:
    template <size_t Count>
    constexpr explicit path_cache(path (&storage)[Count]) noexcept : path_cache{storage, Count} {}
    /// `count` is 1 to 2^32 - 1.
    constexpr path_cache(path* storage, size_t count) noexcept
        : paths_{storage}, count_{static_cast<uint32_t>(count)} {
        clear();
    }

    /// The path with this key, or the place for one.
    [[nodiscard]] constexpr auto at(path_key const& key) noexcept -> path& {
        uint64_t const spread = (key.branches + key.to) * detail::golden;
        uint32_t const slot = detail::slot_of(detail::hash_of(key.ip ^ spread), count_);
        path& one = paths_[slot];
        return one.key == key ? one : beside(one, slot, key);
    }
    /// The path of a TIP.PGE with this key. It has no branches.
    [[nodiscard]] constexpr auto start_at(path_key const& key) noexcept -> path& {
        path& known = at(key);
        if (known.key != key) {
            path made{};
            made.key = key;
            made.end = key.to;
            insert(known, made);
        }
        return known;
    }
    /// Stores a path in a place that `at` returned.
    constexpr void insert(path& place, path const& made) noexcept {
        if (++last_id_ == 0) {  // ids are used up: an old one would name another path
            clear();
            last_id_ = 1;
        }
        place = made;
        place.id = last_id_;
        // Edges are counted four at a time: the unused ones count 0 times, each at another index,
        // so that no store depends on another.
        for (unsigned i = made.edges; i < path::max_edges; ++i) { place.counted(i) = i % 8; }
    }
    /// The successor of a path whose packets begin with these 16 bytes, or nullptr.
    [[nodiscard]] constexpr auto find_successor(path const& from, wide_bits bytes) const noexcept
        -> path_successor const* {
        for (path_successor const& one : from.successors) {
            if (matches(one, bytes)) { return &one; }
        }
        return nullptr;
    }
    /// The path of a successor, or nullptr if it was replaced.
    [[nodiscard]] constexpr auto find(path_successor const& one) noexcept -> path* {
        path& found = paths_[one.index];
        return found.id == one.id ? &found : nullptr;
    }
    /// Adds a successor, in place of the older one. Its packets have `size` bytes, 1 to 16, of
    /// `bytes`.
    constexpr void add_successor(path& from, path const& next, wide_bits bytes,
                                 uint32_t size) noexcept {
        wide_bits const mask = first_bytes_mask(size);
        from.successors[1] = from.successors[0];
        from.successors[0] = {bytes.low & mask.low, bytes.high & mask.high, next.id,
                              static_cast<uint32_t>(&next - paths_), size};
    }
    constexpr void clear() noexcept {
        for (uint32_t i = 0; i < count_; ++i) { paths_[i] = {}; }
    }

private:
    /// The number of places that a path may have.
    static constexpr uint32_t ways = 4;

    constexpr auto beside(path& one, uint32_t slot, path_key const& key) noexcept -> path& {
        path* free = one.key.branches == 0 ? &one : nullptr;
        for (uint32_t i = 1; i < ways; ++i) {
            if ((slot ^ i) >= count_) { continue; }
            path& other = paths_[slot ^ i];
            if (other.key == key) { return other; }
            if (other.key.branches == 0 && free == nullptr) { free = &other; }
        }
        if (free != nullptr) { return *free; }
        next_way_ = (next_way_ + 1) % ways;
        uint32_t const place = slot ^ next_way_;
        return paths_[place < count_ ? place : slot];
    }

    static constexpr auto matches(path_successor const& one, wide_bits bytes) noexcept -> bool {
        wide_bits const mask = first_bytes_mask(one.size);
        uint64_t const differences = ((bytes.low ^ one.low) & mask.low) |
                                     ((bytes.high ^ one.high) & mask.high) | (one.size == 0);
        return differences == 0;
    }

    path* paths_;
    uint32_t count_;
    uint32_t last_id_ = 0;
    uint32_t next_way_ = 0;
};

}  // namespace ptspec::flow
