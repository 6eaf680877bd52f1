// SPDX-License-Identifier: BSL-1.0
#pragma once

// The segments of a trace: each from a PSB to the next.

#include <ptspec/ptspec.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pt_cut {

using namespace ptspec;

/// The bits of `CR3` that a PIP carries, or of a VMCS pointer, as all tools print them.
template <class Packet>
[[nodiscard]] constexpr auto page_of(Packet const& packet) -> std::uint64_t {
    if constexpr (same_as<Packet, packet::pip>) {
        return packet.template get<packet::pip::CR3>();
    } else {
        return packet.template get<packet::vmcs::base>();
    }
}

template <class Packet>
concept has_ip_field = derived_from<Packet, packet::ip_packet<Packet>>;

struct segment {
    std::uint64_t begin = 0;    ///< offset of its PSB
    std::uint64_t bytes = 0;    ///< that are packets
    std::uint64_t dropped = 0;  ///< damaged bytes after them
    std::uint64_t packets = 0;
    bool is_damaged = false;             ///< a packet after these could not be decoded
    std::optional<std::uint64_t> tsc{};  ///< the first
    std::optional<std::uint64_t> ip{};   ///< the first

    [[nodiscard]] auto end() const -> std::uint64_t { return begin + bytes + dropped; }
};
using segments = std::span<segment const>;

/// The segments of a trace that has been read, and what is in none of them.
struct contents {
    std::vector<segment> all{};
    std::uint64_t skipped = 0;  ///< bytes before the first PSB
};

inline auto contents_of(byte_view trace) -> contents {
    contents found;
    auto const close_last = [&](std::uint64_t offset) {
        if (found.all.empty()) {
            found.skipped = offset;
            return;
        }
        auto& last = found.all.back();
        // The packets before damage can include the first bytes of the next PSB.
        last.dropped = std::max(offset, last.begin + last.bytes) - (last.begin + last.bytes);
    };
    trace::reader reader{trace};
    for (auto item = reader.next(); item; item = reader.next()) {
        if (item.what == trace::item_type::damage) { found.all.back().is_damaged = true; }
        if (item.what != trace::item_type::packet) { continue; }
        if (item.packet.is<packet::psb>()) {
            close_last(item.offset);
            found.all.push_back({.begin = item.offset});
        }
        auto& to = found.all.back();
        to.packets += 1;
        to.bytes += item.length;
        if (item.packet.is<packet::tsc>() && !to.tsc) {
            to.tsc = item.packet.as<packet::tsc>().get<packet::tsc::TSC>();
        }
        auto const has_ip = [](auto const& one) {
            if constexpr (has_ip_field<bare_t<decltype(one)>>) { return one.has_ip(); }
            return false;
        };
        if (!to.ip && packet::visit(has_ip, item.packet)) { to.ip = item.ip; }
    }
    close_last(trace.size());
    return found;
}

/// Calls `visit(item)` for each packet of the segments. Offsets are those in the segment.
template <class Visit>
void for_each_packet(byte_view trace, segments which, Visit const& visit) {
    for (auto const& one : which) {
        auto const bytes = trace.from(static_cast<std::size_t>(one.begin))
                               .first(static_cast<std::size_t>(one.bytes));
        trace::reader reader{bytes, {.sync = false}};
        for (auto item = reader.next(); item; item = reader.next()) { visit(item); }
    }
}

}  // namespace pt_cut
