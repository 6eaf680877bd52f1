// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/item.hpp>

namespace ptspec::trace {

/// The visitor can be called with one type of packet.
template <class Visitor, class Packet>
concept takes = callable<Visitor&, Packet const&, at>;

namespace detail {

template <class Visitor, class... Packets>
constexpr auto takes_any(type_list<Packets...>) noexcept -> bool {
    return (takes<Visitor, Packets> || ...);
}

/// Calls the visitor, if it takes such a packet. False when it wants no more.
template <class Visitor, class Packet>
constexpr auto call(Visitor& visitor, Packet const& packet, at where) -> bool {
    if constexpr (!takes<Visitor, Packet>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, Packet const&, at>, void>) {
        visitor(packet, where);
        return true;
    } else {
        return visitor(packet, where);
    }
}

}  // namespace detail

/// A visitor of packets: `visitor(packet, at)` for at least one type of packet. It returns nothing,
/// or false when it wants no more. It may also take `visitor(item)` for everything that is no
/// packet.
template <class Visitor, class Packets = packet::all>
concept packet_visitor = detail::takes_any<Visitor>(Packets{});

}  // namespace ptspec::trace
