// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/sink.hpp>
#include <ptspec/flow/walk_options.hpp>

namespace ptspec::flow {

/// Which edges count.
struct edge_filter {
    bool not_taken = true;  ///< also conditional branches that were not taken
    bool events = true;     ///< also interrupts and other events
    /// Only IPs in one of these ranges. None: all.
    ip_range ranges[4] = {};
    unsigned range_count = 0;
    bool has_space = false;  ///< only the address space `space`
    uint32_t space = 0;

    [[nodiscard]] constexpr auto takes(uint64_t ip, uint32_t in_space) const noexcept -> bool {
        if (has_space && in_space != space) { return false; }
        for (unsigned i = 0; i < range_count; ++i) {
            if (ranges[i].contains(ip)) { return true; }
        }
        return range_count == 0;
    }
    /// True if the block to which an edge leads is counted.
    [[nodiscard]] constexpr auto takes_target(edge const& one) const noexcept -> bool {
        return (one.is_taken || not_taken) && (!one.is_asynchronous || events) &&
               takes(one.to, one.space);
    }
    /// True if the edge is counted.
    [[nodiscard]] constexpr auto takes(edge const& one) const noexcept -> bool {
        return takes_target(one) && takes(one.from, one.space);
    }
};

/// How to count.
struct coverage_options {
    bool blocks = false;     ///< count blocks, which begin at targets of edges and at starts
    bool saturates = false;  ///< a count stays at 255; otherwise it wraps to 0
    edge_filter filter{};
};

/// A sink that counts edges, or blocks, in a bitmap of the caller, as fuzzers use it: a byte for
/// each index. Several edges may have the same index.
///
/// With a `run_table`, branches that were walked before are counted without a walk, when `run`
/// returns. It does not change the counts.
class coverage {
public:
    using ignores_gaps = coverage;

    /// `count` is the number of bytes of `counts`, a power of two from 8 to 2^31.
    constexpr coverage(uint8_t* counts, size_t count, run_table* runs = nullptr,
                       coverage_options const& options = {}) noexcept
        : counts_{counts},
          mask_{static_cast<uint32_t>(count - 1)},
          runs_{runs},
          options_{options} {}

    /// The index of an edge: bits 31 and below of H(from) ^ H(to) / 2, modulo the size, where H(x)
    /// is the upper half of x * 9E3779B97F4A7C15H modulo 2^64. The index of a block is H(to),
    /// modulo the size. `not_counted` if the options exclude the edge.
    [[nodiscard]] constexpr auto index_of(flow::edge const& one) const noexcept -> uint32_t {
        if (options_.blocks) {
            return options_.filter.takes_target(one) ? block_index(one.to) : not_counted;
        }
        if (!options_.filter.takes(one)) { return not_counted; }
        return (detail::hash_of(one.from) ^ detail::hash_of(one.to) >> 1) & mask_;
    }
    /// The index of the block where tracing starts, or `not_counted`.
    [[nodiscard]] constexpr auto index_of_start(uint64_t ip, uint32_t space) const noexcept
        -> uint32_t {
        bool const counts = options_.blocks && options_.filter.takes(ip, space);
        return counts ? block_index(ip) : not_counted;
    }
    static constexpr uint32_t not_counted = 0xFFFF'FFFF;

    constexpr void count(uint32_t index, uint64_t times = 1) noexcept {
        uint8_t& at = counts_[index];
        uint64_t const sum = at + times;
        at = static_cast<uint8_t>(options_.saturates && sum > 255 ? 255 : sum);
    }
    constexpr void edge(flow::edge const& one) noexcept {
        uint32_t const index = index_of(one);
        if (index != not_counted) { count(index); }
    }
    constexpr void start(uint64_t ip, uint32_t space) noexcept {
        uint32_t const index = index_of_start(ip, space);
        if (index != not_counted) { count(index); }
    }
    [[nodiscard]] constexpr auto runs() const noexcept -> run_table* { return runs_; }

private:
    [[nodiscard]] constexpr auto block_index(uint64_t ip) const noexcept -> uint32_t {
        return detail::hash_of(ip) & mask_;
    }

    uint8_t* counts_;
    uint32_t mask_;
    run_table* runs_;
    coverage_options options_;
};

}  // namespace ptspec::flow
