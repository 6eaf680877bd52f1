// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/path_cache.hpp>
#include <ptspec/flow/sink.hpp>
#include <ptspec/flow/walk_options.hpp>

namespace ptspec::flow {

/// How to count edges.
struct coverage_options {
    bool saturates = false;  ///< a count stays at 255; otherwise it wraps to 0
    bool not_taken = true;   ///< also conditional branches that were not taken
    bool events = true;      ///< also interrupts and other events
    /// Only edges from and to IPs in one of these ranges. None: all edges.
    ip_range ranges[4] = {};
    unsigned range_count = 0;
    bool has_space = false;  ///< only edges in the address space `space`
    uint32_t space = 0;
};

/// A sink that counts edges in a bitmap of the caller, as fuzzers use it: a byte for each index, to
/// which several edges may belong.
///
/// With a `path_cache`, branches that were walked before are counted without a walk; the counts are
/// the same.
class coverage {
public:
    /// `count` is the number of bytes of `counts`, a power of two from 8 to 2^31.
    constexpr coverage(uint8_t* counts, size_t count, path_cache* paths = nullptr,
                       coverage_options const& how = {}) noexcept
        : counts_{counts}, mask_{static_cast<uint32_t>(count - 1)}, paths_{paths}, how_{how} {}

    /// The index of an edge: bits 31 and below of H(from) ^ H(to) / 2, modulo the size, where H(x)
    /// is the upper half of x * 9E3779B97F4A7C15H modulo 2^64. `not_counted` if the options exclude
    /// it.
    [[nodiscard]] constexpr auto index_of(flow::edge const& one) const noexcept -> uint32_t {
        if (!is_counted(one)) { return not_counted; }
        return (detail::hash_of(one.from) ^ detail::hash_of(one.to) >> 1) & mask_;
    }
    static constexpr uint32_t not_counted = 0xFFFF'FFFF;

    constexpr void count(uint32_t index) noexcept {
        uint8_t& at = counts_[index];
        at = static_cast<uint8_t>(how_.saturates && at == 255 ? 255 : at + 1);
    }
    /// Counts the edges of a path.
    constexpr void repeat(path const& known) noexcept {
        if (how_.saturates) {
            for (unsigned i = 0; i < known.edges; ++i) { count(known.counted[i]); }
            return;
        }
        uint8_t* const counts = counts_;  // a store to a byte may change every member
        auto const times = static_cast<unsigned>(low_bits(known.edges));
        for (unsigned i = 0; i < path::usual_edges; ++i) {
            uint8_t& at = counts[known.counted[i]];
            at = static_cast<uint8_t>(at + (times >> i & 1));
        }
        for (unsigned i = path::usual_edges; i < known.edges; ++i) { ++counts[known.counted[i]]; }
    }
    constexpr void edge(flow::edge const& one) noexcept {
        uint32_t const index = index_of(one);
        if (index != not_counted) { count(index); }
    }
    [[nodiscard]] constexpr auto paths() const noexcept -> path_cache* { return paths_; }

private:
    [[nodiscard]] constexpr auto is_counted(flow::edge const& one) const noexcept -> bool {
        if (!one.is_taken && !how_.not_taken) { return false; }
        if (one.is_asynchronous && !how_.events) { return false; }
        if (how_.has_space && one.space != how_.space) { return false; }
        if (how_.range_count == 0) { return true; }
        return is_in_range(one.from) && is_in_range(one.to);
    }
    [[nodiscard]] constexpr auto is_in_range(uint64_t ip) const noexcept -> bool {
        for (unsigned i = 0; i < how_.range_count; ++i) {
            if (how_.ranges[i].contains(ip)) { return true; }
        }
        return false;
    }

    uint8_t* counts_;
    uint32_t mask_;
    path_cache* paths_;
    coverage_options how_;
};

}  // namespace ptspec::flow
