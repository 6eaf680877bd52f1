// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/visitor.hpp>

namespace ptspec::trace {

/// How much of what a trace holds.
struct tally {
    uint64_t packets[packet::kinds] = {};  ///< by kind
    uint64_t bytes[packet::kinds] = {};    ///< by kind
    uint64_t unknown = 0;                  ///< packets that the caller's hook knew
    uint64_t unknown_bytes = 0;
    uint64_t errors = 0;
    uint64_t resyncs = 0;

    /// Counts one packet.
    constexpr void add(packet::kind which, unsigned length) noexcept {
        packets[underlying(which)] += 1;
        bytes[underlying(which)] += length;
    }
    /// Counts what is no packet.
    constexpr void add(item const& other) noexcept {
        unknown += other.what == event::unknown ? 1U : 0U;
        unknown_bytes += other.what == event::unknown ? other.length : 0U;
        errors += other.what == event::damage ? 1U : 0U;
        resyncs += other.what == event::resynced ? 1U : 0U;
    }

    [[nodiscard]] constexpr auto of(packet::kind which) const noexcept -> uint64_t {
        return packets[underlying(which)];
    }
    /// All packets, the unknown ones included.
    [[nodiscard]] constexpr auto total() const noexcept -> uint64_t {
        uint64_t sum = unknown;
        for (uint64_t const count : packets) { sum += count; }
        return sum;
    }

    friend constexpr auto operator==(tally const&, tally const&) -> bool = default;
};

namespace detail {

/// The visitor that counts, and tells the boundaries.
template <class Boundary>
struct counter {
    tally& sum;
    Boundary& boundary;

    template <packet::packet_type Packet>
    constexpr void operator()(Packet const&, at where) const {
        sum.add(Packet::about.id, where.length);
        boundary(Packet::about.id, where.offset, where.length);
    }
    constexpr void operator()(item const& other) const { sum.add(other); }
};

}  // namespace detail

}  // namespace ptspec::trace
