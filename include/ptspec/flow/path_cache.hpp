// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>
#include <ptspec/flow/block.hpp>
#include <ptspec/flow/detail/slots.hpp>
#include <ptspec/packet/tnt.hpp>

namespace ptspec::flow {

/// What follows the branches of a path, and belongs to it.
enum class path_end : uint8_t {
    none,
    target,            ///< a TIP
    disabled,          ///< a TIP.PGD without an IP
    disabled_outside,  ///< a TIP.PGD with an IP
    enabled,           ///< a TIP.PGE, before which tracing was off
};

/// Branches of TNTs, from an IP on, and what follows them.
struct path_key {
    /// At most this many branches.
    static constexpr unsigned most_branches = 32;

    uint64_t ip = 0;
    uint64_t to = 0;        ///< the IP of the TIP or TIP.PGD
    uint64_t branches = 0;  ///< outcomes and number, code size, and what follows; 0: no path
    uint64_t place = 0;     ///< address space, and the generation of the block cache

    constexpr path_key() noexcept = default;
    constexpr path_key(block_key const& from, packet::branches of, uint32_t generation,
                       path_end end = path_end::none, uint64_t target = 0) noexcept
        : ip{from.ip},
          to{target},
          branches{of.bits | uint64_t{of.count} << 40 | uint64_t{underlying(from.width)} << 48 |
                   uint64_t{underlying(end)} << 52 | uint64_t{1} << 63},
          place{uint64_t{from.space} << 32 | generation} {}

    [[nodiscard]] constexpr auto end() const noexcept -> path_end {
        return static_cast<path_end>(branches >> 52 & 15);
    }
    friend constexpr auto operator==(path_key const& one, path_key const& two) noexcept -> bool {
        // One branch for all: they differ seldom.
        return ((one.ip ^ two.ip) | (one.to ^ two.to) | (one.branches ^ two.branches) |
                (one.place ^ two.place)) == 0;
    }
};

/// A path that came after another one, and the bytes of its packets.
struct next_path {
    uint64_t low = 0;     ///< bytes 0 to 7
    uint64_t high = 0;    ///< bytes 8 to 15
    uint32_t number = 0;  ///< of the path, as `path::number`
    uint32_t place = 0;   ///< in the cache
    uint32_t size = 0;    ///< in bytes; 0: none
};

/// What these branches led to: the edges to count, and where the code continues.
///
/// Shape:  256 bytes. What a path with up to four edges and no pushed address needs is in the first
///         64, and what came after it in the next.
struct alignas(64) path {
    /// So many edges are counted always, and not in a loop, whose end would be mispredicted.
    static constexpr unsigned usual_edges = 4;
    static constexpr unsigned most_edges = 24;
    static constexpr unsigned most_next = 2;
    static constexpr unsigned most_pushes = 6;
    static constexpr unsigned index_bits = 24;
    static constexpr uint32_t index_mask = (1U << index_bits) - 1;
    static constexpr unsigned most_times = 255;
    static constexpr uint8_t not_kept = 255;

    path_key key{};
    uint64_t end = 0;   ///< where the code continues
    uint8_t taken = 0;  ///< of the branches; 0: the first one cannot be kept; `not_kept`
    uint8_t edges = 0;
    uint8_t pushes : 3 = 0;
    bool pops : 1 = false;  ///< at last there is a RET that is not compressed
    uint8_t depth = 0;      ///< the most pushed addresses at a time
    uint32_t number = 0;    ///< of all paths that were kept; 0: not to be followed
    uint32_t first_counted[usual_edges] = {};
    next_path next[most_next] = {};
    uint32_t more_counted[most_edges - usual_edges] = {};
    uint64_t pushed[most_pushes] = {};  ///< return addresses

    /// The index of an edge, in bits 23 and below, and how often it counts.
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
            if (index(i) == with && times(i) != most_times) {
                counted(i) += 1U << index_bits;
                return true;
            }
        }
        if (edges == most_edges || with >> index_bits != 0) { return false; }
        counted(edges++) = with | 1U << index_bits;
        return true;
    }
};

/// Paths that were walked, in storage of the caller: `path storage[4096]` is 1 MB. When it is
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
        uint64_t const spread = (key.branches + key.to) * detail::golden;
        uint32_t const slot = detail::slot_of(detail::hash_of(key.ip ^ spread), count_);
        path& one = paths_[slot];
        return one.key == key ? one : beside(one, slot, key);
    }
    /// Keeps a path in a place that `at` has returned.
    constexpr void keep(path& place, path const& made) noexcept {
        place = made;
        if (++last_number_ == 0) {  // after 2^32 paths an old number would name another one
            clear();
            last_number_ = 1;
            place = made;
        }
        place.number = last_number_;
        // Edges are counted four at a time. These count 0 times, without waiting for each other.
        for (unsigned i = made.edges; i < path::most_edges; ++i) { place.counted(i) = i % 8; }
    }
    /// The path that came after `last` with these bytes, or nullptr.
    [[nodiscard]] constexpr auto after(path const& last, uint64_t low, uint64_t high) noexcept
        -> next_path const* {
        // Two at a time: a branch for each would be mispredicted.
        for (unsigned i = 0; i < path::most_next; i += 2) {
            bool const is_first = is_next(last.next[i], low, high);
            next_path const& one = is_first ? last.next[i] : last.next[i + 1];
            if (is_first || is_next(one, low, high)) { return &one; }
        }
        return nullptr;
    }
    /// The path of a `next_path`, or nullptr if another one has its place.
    [[nodiscard]] constexpr auto path_of(next_path const& one) noexcept -> path* {
        path& found = paths_[one.place];
        return found.number == one.number ? &found : nullptr;
    }
    /// `next` came after `last`, with packets of `size` bytes, 1 to 16.
    constexpr void link(path& last, path const& next, uint64_t low, uint64_t high,
                        uint32_t size) noexcept {
        for (unsigned i = path::most_next - 1; i != 0; --i) { last.next[i] = last.next[i - 1]; }
        last.next[0] = {low & first_bytes(size), high & next_bytes(size), next.number,
                        static_cast<uint32_t>(&next - paths_), size};
    }
    constexpr void clear() noexcept {
        for (uint32_t i = 0; i < count_; ++i) { paths_[i] = {}; }
    }

private:
    /// A path has one of these places.
    static constexpr uint32_t ways = 4;

    [[gnu::noinline]] constexpr auto beside(path& one, uint32_t slot, path_key const& key) noexcept
        -> path& {
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

    static constexpr auto is_next(next_path const& one, uint64_t low, uint64_t high) noexcept
        -> bool {
        uint64_t const differ = ((low ^ one.low) & first_bytes(one.size)) |
                                ((high ^ one.high) & next_bytes(one.size)) | (one.size == 0);
        return differ == 0;
    }
    static constexpr auto first_bytes(uint32_t size) noexcept -> uint64_t {
        return first_bytes_masks.low[size];
    }
    static constexpr auto next_bytes(uint32_t size) noexcept -> uint64_t {
        return first_bytes_masks.high[size];
    }

    path* paths_;
    uint32_t count_;
    uint32_t last_number_ = 0;
    uint32_t next_way_ = 0;
};

}  // namespace ptspec::flow
