// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/list.hpp>

#include <boost/hana.hpp>

namespace ptspec::test {

template <class... Packets>
constexpr auto tuple_of(type_list<Packets...>) {
    return boost::hana::tuple_t<Packets...>;
}

/// All packets. tests/laws_packets.cpp checks the laws that hold for all of them.
inline constexpr auto all_packets = tuple_of(packet::all{});

/// The layout rows of one kind in a packet: fields, reserved runs, or opcodes.
template <class Packet, row_kind Kind>
inline constexpr auto rows_of_kind = boost::hana::filter(
    tuple_of(typename Packet::layout::rows{}),
    [](auto row) { return boost::hana::bool_c < decltype(row)::type::kind == Kind > ; });

}  // namespace ptspec::test
