// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/visitor.hpp>

namespace ptspec::trace {

/// The number of packets and bytes in a trace, by packet kind.
struct packet_counts {
    uint64_t packets[packet::kind_count] = {};  ///< by kind
    uint64_t bytes[packet::kind_count] = {};    ///< by kind
    uint64_t unknown = 0;                       ///< packets that only the caller's hook decoded
    uint64_t unknown_bytes = 0;
    uint64_t errors = 0;
    uint64_t resyncs = 0;

    /// Counts `count` packets of one kind and length.
    constexpr void add(packet::kind kind, unsigned length, uint64_t count = 1) noexcept {
        if (kind == packet::kind::none) { return; }
        packets[underlying(kind)] += count;
        bytes[underlying(kind)] += count * length;
    }
    /// Counts one item of a reader.
    constexpr void add(item const& one) noexcept {
        if (one.what == item_type::packet) { return add(one.packet.kind(), one.length); }
        unknown += one.what == item_type::unknown ? 1U : 0U;
        unknown_bytes += one.what == item_type::unknown ? one.length : 0U;
        errors += one.what == item_type::damage ? 1U : 0U;
        resyncs += one.what == item_type::resynced ? 1U : 0U;
    }
    /// Adds the counts of another part of the trace.
    constexpr auto operator+=(packet_counts const& other) noexcept -> packet_counts& {
        for (unsigned i = 0; i < packet::kind_count; ++i) {
            packets[i] += other.packets[i];
            bytes[i] += other.bytes[i];
        }
        unknown += other.unknown;
        unknown_bytes += other.unknown_bytes;
        errors += other.errors;
        resyncs += other.resyncs;
        return *this;
    }

    [[nodiscard]] constexpr auto of(packet::kind kind) const noexcept -> uint64_t {
        return kind == packet::kind::none ? 0 : packets[underlying(kind)];
    }
    /// All packets, including the unknown ones.
    [[nodiscard]] constexpr auto total() const noexcept -> uint64_t {
        uint64_t sum = unknown;
        for (uint64_t const count : packets) { sum += count; }
        return sum;
    }

    friend constexpr auto operator==(packet_counts const&, packet_counts const&) -> bool = default;
};

namespace detail {

/// A visitor that counts packets and reports their boundaries.
template <class Boundary>
struct counter {
    packet_counts& sum;
    Boundary& boundary;

    template <packet::packet_type Packet>
    constexpr void operator()(Packet const&, packet_place place) const {
        sum.add(Packet::about.id, place.length);
        boundary(Packet::about.id, place.offset, place.length);
    }
    constexpr void operator()(item const& other) const { sum.add(other); }
};

}  // namespace detail

}  // namespace ptspec::trace
