// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/coverage.hpp>

namespace ptspec::flow {

/// The number of executions of a block.
struct block_count {
    uint64_t ip = 0;
    uint32_t space = 0;
    uint32_t count = 0;  ///< at most 2^32 - 1; 0: no entry
};

/// A sink that counts the executions of each block. A block begins at the target of an edge, and
/// where tracing starts.
///
/// Shape:  a hash table in storage of the caller. A block is not counted if 64 consecutive entries
///         are used by other blocks; then `is_full()` is true. A `run_table` does not change the
///         counts. No other sink may use the same `run_table`.
class block_counts {
public:
    using ignores_gaps = block_counts;

    template <size_t Count>
    constexpr explicit block_counts(block_count (&storage)[Count], run_table* runs = nullptr,
                                    edge_filter const& filter = {}) noexcept
        : block_counts{storage, Count, runs, filter} {}
    /// `max_count` is the number of entries of `storage`, 1 to 2^32 - 2. All entries must be 0.
    constexpr block_counts(block_count* storage, size_t max_count, run_table* runs = nullptr,
                           edge_filter const& filter = {}) noexcept
        : entries_{storage},
          max_count_{static_cast<uint32_t>(max_count)},
          runs_{runs},
          filter_{filter} {}

    /// The number of different blocks.
    [[nodiscard]] constexpr auto size() const noexcept -> uint32_t { return size_; }
    /// True if some blocks were not counted.
    [[nodiscard]] constexpr auto is_full() const noexcept -> bool { return is_full_; }
    /// The number of executions of the block at an IP.
    [[nodiscard]] constexpr auto count_of(uint64_t ip, uint32_t space = 0) const noexcept
        -> uint32_t {
        uint32_t const at = find(ip, space);
        return at == not_counted ? 0 : entries_[at].count;
    }

    /// The index of the entry of the block to which an edge leads. Adds an entry if there is none.
    /// `not_counted` if the filter excludes the block, or no entry is free.
    [[nodiscard]] constexpr auto index_of(flow::edge const& one) noexcept -> uint32_t {
        return filter_.takes_target(one) ? entry_of(one.to, one.space) : not_counted;
    }
    /// The same for the block where tracing starts.
    [[nodiscard]] constexpr auto index_of_start(uint64_t ip, uint32_t space) noexcept -> uint32_t {
        return filter_.takes(ip, space) ? entry_of(ip, space) : not_counted;
    }
    static constexpr uint32_t not_counted = 0xFFFF'FFFF;
    constexpr void count(uint32_t index, uint64_t times = 1) noexcept {
        constexpr uint32_t most = 0xFFFF'FFFF;
        uint32_t& at = entries_[index].count;
        size_ += at == 0 ? 1 : 0;
        at = times > most - at ? most : static_cast<uint32_t>(at + times);
    }
    constexpr void edge(flow::edge const& one) noexcept {
        uint32_t const at = index_of(one);
        if (at != not_counted) { count(at); }
    }
    constexpr void start(uint64_t ip, uint32_t space) noexcept {
        uint32_t const at = index_of_start(ip, space);
        if (at != not_counted) { count(at); }
    }
    [[nodiscard]] constexpr auto runs() const noexcept -> run_table* { return runs_; }

private:
    static constexpr uint32_t max_probes = 64;

    /// The index of the entry of a block, or of a free entry, or `not_counted`.
    [[nodiscard]] constexpr auto find(uint64_t ip, uint32_t space) const noexcept -> uint32_t {
        uint32_t at = detail::slot_of(detail::hash_of(ip ^ uint64_t{space} << 32), max_count_);
        for (uint32_t i = 0; i < max_probes && i < max_count_; ++i) {
            block_count const& one = entries_[at];
            if (one.count == 0 || (one.ip == ip && one.space == space)) { return at; }
            at = at + 1 == max_count_ ? 0 : at + 1;
        }
        return not_counted;
    }
    constexpr auto entry_of(uint64_t ip, uint32_t space) noexcept -> uint32_t {
        uint32_t const at = find(ip, space);
        if (at == not_counted) {
            is_full_ = true;
        } else {
            entries_[at].ip = ip;
            entries_[at].space = space;
        }
        return at;
    }

    block_count* entries_;
    uint32_t max_count_;
    uint32_t size_ = 0;
    bool is_full_ = false;
    run_table* runs_;
    edge_filter filter_;
};

}  // namespace ptspec::flow
