// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/item.hpp>

namespace ptspec::trace {

/// The visitor accepts this packet type.
template <class Visitor, class Packet>
concept takes = callable<Visitor&, Packet const&, at>;

/// The visitor accepts runs of PADs: `visitor.pads(count, at)`. This is not `operator()`, because a
/// run of PADs is no packet type and must not reach a visitor that accepts every type.
template <class Visitor>
concept accepts_pad_runs = requires(Visitor& visitor, unsigned count, at where) {
    visitor.pads(count, where);
};

/// The packets that a visitor skips.
struct skipped_packets {
    size_t size = 0;       ///< in bytes; 0: none
    uint64_t last_ip = 0;  ///< LastIP after them
};
/// The visitor may skip packets that it recognizes by their bytes. `visitor.skip(bytes, room,
/// offset)` is called after each packet other than PAD, TNT and CYC. `bytes` points to the next
/// packets, at `offset` of the trace. The skipped packets must begin in the first `room` bytes.
/// From each of these bytes on, 16 bytes are readable.
template <class Visitor>
concept skips_packets = requires(Visitor& visitor, uint8_t const* bytes) {
    { visitor.skip(bytes, size_t{}, uint64_t{}) } -> same_as<skipped_packets>;
};

namespace detail {

template <class Visitor, class... Packets>
constexpr auto accepts_any(type_list<Packets...>) noexcept -> bool {
    return (takes<Visitor, Packets> || ...);
}

/// Passes a run of PADs to the visitor. Returns false when the visitor stops.
template <class Visitor>
constexpr auto call_pads(Visitor& visitor, unsigned count, at where) -> bool {
    if constexpr (same_as<decltype(visitor.pads(count, where)), void>) {
        visitor.pads(count, where);
        return true;
    } else {
        return visitor.pads(count, where);
    }
}

/// Calls the visitor if it accepts this packet type. Returns false when the visitor stops.
///
/// always_inline: else clang keeps the visitor in memory, and events with times take 1.4 times as
/// long (clang 19).
template <class Visitor, class Packet>
#if defined(__clang__)
[[gnu::always_inline]]
#endif
constexpr auto call(Visitor& visitor, Packet const& packet, at where) -> bool {
    if constexpr (same_as<Packet, packet::pad> && accepts_pad_runs<Visitor>) {
        return call_pads(visitor, 1, where);
    } else if constexpr (!takes<Visitor, Packet>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, Packet const&, at>, void>) {
        visitor(packet, where);
        return true;
    } else {
        return visitor(packet, where);
    }
}

/// Calls the visitor if it accepts items. Returns false when the visitor stops.
template <class Visitor>
constexpr auto call([[maybe_unused]] Visitor& visitor, [[maybe_unused]] item const& one) -> bool {
    if constexpr (!callable<Visitor&, item const&>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, item const&>, void>) {
        visitor(one);
        return true;
    } else {
        return visitor(one);
    }
}

/// A small visitor is copied before the decode loop and written back after it. The address of the
/// copy does not escape, so that its members can stay in registers.
template <class Visitor>
inline constexpr bool is_copied = sizeof(Visitor) <= 64 && __is_trivially_copyable(Visitor) &&
                                  __is_assignable(Visitor&, Visitor const&);
template <class Visitor>
using copy_or_reference = choose_t<is_copied<Visitor>, Visitor, Visitor&>;

}  // namespace detail

/// A visitor of packets: `visitor(packet, at)` for at least one packet type. It returns nothing, or
/// false to stop. It may also accept `visitor(item)` in the same way, for every item that is no
/// packet, and have `visitor.pads(count, at)`, which then gets all PADs, in order, in runs of any
/// length.
///
/// The fastest visitor is a struct of at most 64 bytes that contains its sums. A trivially
/// copyable visitor may be called as a copy. The copy is written back when decoding stops, but not
/// when the visitor throws.
template <class Visitor, class Packets = packet::all>
concept packet_visitor = detail::accepts_any<Visitor>(Packets{}) || accepts_pad_runs<Visitor>;

}  // namespace ptspec::trace
