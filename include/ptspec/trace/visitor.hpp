// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/item.hpp>

namespace ptspec::trace {

/// The visitor can be called with one type of packet.
template <class Visitor, class Packet>
concept takes = callable<Visitor&, Packet const&, at>;

/// The visitor has a function for PADs that stand in a row: `visitor.pads(count, at)`. It has a name
/// of its own, so that a visitor of every type of packet does not meet something that is none.
template <class Visitor>
concept takes_pads_in_rows = requires(Visitor& visitor, unsigned count, at where) {
    visitor.pads(count, where);
};

namespace detail {

template <class Visitor, class... Packets>
constexpr auto takes_any(type_list<Packets...>) noexcept -> bool {
    return (takes<Visitor, Packets> || ...);
}

/// Hands out PADs in a row.
template <class Visitor>
constexpr auto call_with_pads(Visitor& visitor, unsigned count, at where) -> bool {
    if constexpr (same_as<decltype(visitor.pads(count, where)), void>) {
        visitor.pads(count, where);
        return true;
    } else {
        return visitor.pads(count, where);
    }
}

/// Calls the visitor, if it takes such a packet. False when it wants no more.
template <class Visitor, class Packet>
constexpr auto call(Visitor& visitor, Packet const& packet, at where) -> bool {
    if constexpr (same_as<Packet, packet::pad> && takes_pads_in_rows<Visitor>) {
        return call_with_pads(visitor, 1, where);
    } else if constexpr (!takes<Visitor, Packet>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, Packet const&, at>, void>) {
        visitor(packet, where);
        return true;
    } else {
        return visitor(packet, where);
    }
}

/// A small visitor is copied before the packets and put back behind them: as nobody has the address
/// of the copy, what it sums up is kept in registers.
template <class Visitor>
inline constexpr bool is_carried = sizeof(Visitor) <= 64 && __is_trivially_copyable(Visitor) &&
                                   __is_assignable(Visitor&, Visitor const&);
template <class Visitor>
using carried = choose_t<is_carried<Visitor>, Visitor, Visitor&>;

}  // namespace detail

/// A visitor of packets: `visitor(packet, at)` for at least one type of packet. It returns nothing,
/// or false when it wants no more. It may also take `visitor(item)` for everything that is no
/// packet, and have `visitor.pads(count, at)`, which then gets all PADs: some at a time, in their
/// order, as many as were seen at once.
///
/// The fastest is a struct of at most 64 bytes that holds its sums itself. Where it can be copied
/// byte by byte it may be called as a copy, which is put back when reading stops; not when it
/// throws.
template <class Visitor, class Packets = packet::all>
concept packet_visitor = detail::takes_any<Visitor>(Packets{}) || takes_pads_in_rows<Visitor>;

}  // namespace ptspec::trace
