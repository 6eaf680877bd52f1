// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of packets and fields in a listing, for pt_dump, which writes it, and pt_asm, which
// reads it. A packet without an entry here has its own name in lower case.

#include <ptspec/packet/any_packet.hpp>

#include <string_view>
#include <tuple>

namespace listing {

using namespace ptspec;

/// A name in lower case, up to 16 letters.
struct lower_case {
    char letters[16] = {};
    std::size_t size = 0;

    constexpr explicit lower_case(text name) : size{name.size()} {
        for (std::size_t i = 0; i < size; ++i) {
            char const letter = name.data()[i];
            letters[i] = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A')
                                                                          : letter);
        }
    }
    [[nodiscard]] constexpr auto view() const -> std::string_view { return {letters, size}; }
};

template <class Row>
inline constexpr lower_case name_of_field{ptspec::name_of<Row>()};
template <class Packet>
inline constexpr lower_case name_of_packet{Packet::about.name};

template <>
inline constexpr lower_case name_of_packet<packet::tnt_short>{"tnt.8"};
template <>
inline constexpr lower_case name_of_packet<packet::tnt_long>{"tnt.64"};
template <>
inline constexpr lower_case name_of_packet<packet::tracestop>{"stop"};

namespace detail {

template <class Packets>
struct packet_names;
template <class... Packets>
struct packet_names<type_list<Packets...>> {
    static constexpr std::string_view all[] = {name_of_packet<Packets>.view()...};
};

}  // namespace detail

/// The name of a packet in a listing; `-` for `kind::none`.
inline auto name(packet::kind which) -> std::string_view {
    return which == packet::kind::none ? "-"
                                       : detail::packet_names<packet::all>::all[underlying(which)];
}

/// A field of a packet, and how a listing prints it.
template <class Field>
struct column {
    using field = Field;
    std::string_view name = name_of_field<Field>.view();
    int base = Field::width == 1 ? 10 : 16;
};

namespace detail {

template <class Row>
auto column_of_row() {
    if constexpr (Row::kind == row_kind::field) {
        return std::tuple<column<Row>>{};
    } else {
        return std::tuple<>{};
    }
}
template <class... Rows>
auto columns_of_rows(type_list<Rows...>) {
    return std::tuple_cat(column_of_row<Rows>()...);
}

}  // namespace detail

// The fields of a packet except its payload. By default a field has its own name in lower case,
// fields are in bit order, flags are decimal and other fields are hexadecimal.

template <class Packet>
auto columns(Packet const&) {
    return detail::columns_of_rows(typename Packet::layout::rows{});
}
inline auto columns(packet::pip const&) {
    using p = packet::pip;
    return std::tuple{column<p::CR3>{}, column<p::NR>{}};
}
inline auto columns(packet::mode_exec const&) {
    using p = packet::mode_exec;
    return std::tuple{column<p::CS_L>{"csl"}, column<p::CS_D>{"csd"}, column<p::IF>{}};
}
inline auto columns(packet::mode_tsx const&) {
    using p = packet::mode_tsx;
    return std::tuple{column<p::InTX>{}, column<p::TXAbort>{"abrt"}};
}
inline auto columns(packet::cbr const&) {
    return std::tuple{column<packet::cbr::CoreBusRatio>{"ratio", 10}};
}
inline auto columns(packet::pwre const&) {
    using p = packet::pwre;
    return std::tuple{column<p::state>{"state", 10}, column<p::substate>{"sub_state", 10},
                      column<p::HW>{}};
}
inline auto columns(packet::bip const&) { return std::tuple{column<packet::bip::id>{"id", 10}}; }
inline auto columns(packet::cfe const&) {
    using p = packet::cfe;
    return std::tuple{column<p::type>{"type", 10}, column<p::vector>{"vector", 10},
                      column<p::IP>{}};
}
inline auto columns(packet::evd const&) {
    using p = packet::evd;
    return std::tuple{column<p::type>{"type", 10}, column<p::payload>{}};
}

template <class Packet>
inline constexpr bool has_payload = Packet::max_bytes != Packet::head_bytes;

}  // namespace listing
