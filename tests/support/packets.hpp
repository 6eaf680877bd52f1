// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/list.hpp>

#include <boost/hana.hpp>

namespace ptspec::test {

template <class... Packets>
constexpr auto tuple_of(type_list<Packets...>) {
    return boost::hana::tuple_t<Packets...>;
}

/// Every packet. What holds for all of them, tests/laws_packets.cpp says once.
inline constexpr auto all_packets = tuple_of(packet::all{});

/// The rows of a packet of one kind: fields, reserved runs, opcodes.
template <class Packet, row_kind Kind>
inline constexpr auto rows_of_kind = boost::hana::filter(
    tuple_of(typename Packet::layout::rows{}),
    [](auto row) { return boost::hana::bool_c < decltype(row)::type::kind == Kind > ; });

}  // namespace ptspec::test
