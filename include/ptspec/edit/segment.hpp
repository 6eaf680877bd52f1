// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/reader.hpp>

/// Where a trace can be cut: it can be read from each PSB on.
namespace ptspec::edit {

/// A PSB and the packets up to the next PSB.
struct segment {
    uint64_t begin = 0;    ///< the offset of the PSB
    uint64_t bytes = 0;    ///< of the packets
    uint64_t dropped = 0;  ///< damaged bytes after them
    uint64_t packets = 0;
    bool is_damaged = false;  ///< a packet after these could not be decoded
    bool has_tsc = false;
    bool has_ip = false;
    uint64_t tsc = 0;  ///< the first
    uint64_t ip = 0;   ///< the first

    [[nodiscard]] constexpr auto end() const noexcept -> uint64_t {
        return begin + bytes + dropped;
    }
};

namespace detail {

template <class Packets>
constexpr void add_item(segment& present, trace::item const& item) noexcept {
    if (item.what == trace::item_type::damage) { present.is_damaged = true; }
    if (item.what != trace::item_type::packet) { return; }
    present.packets += 1;
    present.bytes += item.length;
    if (item.packet.is<packet::tsc>() && !present.has_tsc) {
        present.has_tsc = true;
        present.tsc = item.packet.as<packet::tsc>().get<packet::tsc::TSC>();
    }
    auto const has_ip = []<class Packet>(Packet const& packet) {
        if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) { return packet.has_ip(); }
        return false;
    };
    if (!present.has_ip && packet::visit<Packets>(has_ip, item.packet)) {
        present.has_ip = true;
        present.ip = item.ip;
    }
}

}  // namespace detail

/// Calls `found(segment)` for each segment of a trace, in order. Returns the bytes before the first
/// PSB.
///
/// Source: PKT-250, PKT-251.
template <class Packets = packet::all, callable<segment const&> Found>
[[nodiscard]] constexpr auto for_each_segment(byte_view trace, Found&& found) -> uint64_t {
    segment present{};
    bool is_open = false;
    uint64_t skipped = trace.size();
    auto const end_at = [&](uint64_t offset) {
        // The packets before damage can include the first bytes of the next PSB.
        uint64_t const packets_end = present.begin + present.bytes;
        present.dropped = offset > packets_end ? offset - packets_end : 0;
        found(present);
    };
    trace::reader<trace::no_hook, Packets> reader{trace};
    while (auto const item = reader.next()) {
        if (item.what == trace::item_type::packet && item.packet.template is<packet::psb>()) {
            if (is_open) {
                end_at(item.offset);
            } else {
                skipped = item.offset;
            }
            is_open = true;
            present = {.begin = item.offset};
        }
        if (is_open) { detail::add_item<Packets>(present, item); }
    }
    if (is_open) { end_at(trace.size()); }
    return skipped;
}

/// Calls `each(item)` for each packet of a segment. Offsets are those in the segment.
template <class Packets = packet::all, callable<trace::item const&> Each>
constexpr void for_each_packet(byte_view trace, segment const& segment, Each&& each) {
    auto const bytes =
        trace.from(static_cast<size_t>(segment.begin)).first(static_cast<size_t>(segment.bytes));
    trace::reader<trace::no_hook, Packets> reader{bytes, {.sync = false}};
    while (auto const item = reader.next()) { each(item); }
}

}  // namespace ptspec::edit
