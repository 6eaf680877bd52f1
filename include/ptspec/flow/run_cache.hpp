// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/block.hpp>
#include <ptspec/packet/tnt.hpp>

namespace ptspec::flow {

/// What some branches of TNTs led to from an IP: the edges to count, and where the code continues.
///
/// Shape:  128 bytes. A run with up to six edges and no pushed address is in the first 64.
struct alignas(128) run {
    /// So many edges are counted always, and not in a loop: its end would be mispredicted.
    static constexpr unsigned usual_edges = 6;
    static constexpr unsigned most_edges = 16;
    static constexpr unsigned most_pushes = 3;

    uint64_t ip = 0;
    uint64_t path = 0;   ///< the branches and their number, and the code size
    uint64_t place = 0;  ///< address space, and the generation of the block cache
    uint64_t end = 0;
    uint32_t end_slot = 0;  ///< in the block cache
    uint8_t taken = 0;      ///< of the branches; 0: the first one cannot be kept
    uint8_t edges = 0;
    uint8_t pushes = 0;
    uint8_t depth = 0;                  ///< the most return addresses at a time, that were pushed
    uint32_t counted[most_edges] = {};  ///< the index of each edge
    uint64_t pushed[most_pushes] = {};  ///< return addresses
};

/// Runs that were walked, in storage of the caller: `run storage[4096]` is 512 KB. When it is full,
/// runs are replaced; no result depends on its size.
class run_cache {
public:
    /// At most this many branches are one run.
    static constexpr unsigned most_branches = 32;

    template <size_t Count>
    constexpr explicit run_cache(run (&storage)[Count]) noexcept : run_cache{storage, Count} {}
    /// `count` is 1 to 2^32 - 1.
    constexpr run_cache(run* storage, size_t count) noexcept
        : runs_{storage}, count_{static_cast<uint32_t>(count)} {}

    /// The key of a run: branches, at most 32, and the code size.
    [[nodiscard]] static constexpr auto path_of(packet::branches of, code_width width) noexcept
        -> uint64_t {
        return of.bits | uint64_t{of.count + 1} << 40 | uint64_t{underlying(width)} << 48;
    }
    /// The run with this key, or the place for one.
    [[nodiscard]] constexpr auto at(uint64_t ip, uint64_t path, uint64_t place) noexcept -> run& {
        constexpr uint64_t golden = 0x9E37'79B9'7F4A'7C15;
        uint64_t const mixed = (ip ^ path * golden) * golden;
        auto const slot = static_cast<uint32_t>((mixed >> 32) * count_ >> 32);
        run& one = runs_[slot];
        if (one.ip == ip && one.path == path && one.place == place) [[likely]] { return one; }
        uint32_t const beside = slot ^ 1;
        if (one.path == 0 || beside >= count_) { return one; }
        run& other = runs_[beside];
        if (other.ip == ip && other.path == path && other.place == place) { return other; }
        takes_beside_ = !takes_beside_;
        return other.path == 0 || takes_beside_ ? other : one;
    }
    constexpr void clear() noexcept {
        for (uint32_t i = 0; i < count_; ++i) { runs_[i] = {}; }
    }

private:
    run* runs_;
    uint32_t count_;
    bool takes_beside_ = false;
};

}  // namespace ptspec::flow
