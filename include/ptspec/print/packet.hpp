// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/any_packet.hpp>
#include <ptspec/print/word.hpp>

/// A packet as text: `PTW PayloadBytes=0 IP=1 payload=12345678H`.
namespace ptspec::print {

namespace detail {

/// The bytes after the head, and their number.
struct payload_value {
    wide_bits bits{};
    unsigned bytes = 0;
};

/// The length of a packet in bytes. For a BIP it depends on the block, so the longest is assumed.
template <class Packet>
constexpr auto length_of(Packet const& packet) noexcept -> unsigned {
    if constexpr (same_as<typename Packet::payload_type, packet::payload_of_block>) {
        return Packet::max_bytes;
    } else {
        return Packet::length_of(packet.raw, packet::block::none);
    }
}

template <class Packet>
constexpr auto payload_of(Packet const& packet) noexcept -> payload_value {
    if constexpr (!has_payload<Packet>) {
        return {};
    } else {
        constexpr unsigned head = Packet::head_bytes;
        unsigned const length = length_of(packet);
        if (length < head) { return {}; }  // the selecting field holds a reserved value
        auto const bits = to_wide(packet.raw);
        return {first_bytes({shifted_right(bits, 8 * head), bits.high >> 8 * head}, length - head),
                length - head};
    }
}

}  // namespace detail

/// Prints a packet's name, its fields from bit 0 up, its payload if it has one, and the reserved
/// bits that are set.
template <packet::packet_type Packet, class Sink>
constexpr void packet(Packet const& packet, Sink&& out, style options = style::full) {
    auto& sink = detail::checked_sink(out);
    detail::item_writer<decltype(sink)> items{sink, options};
    items.begin_item();
    put(Packet::about.name, sink);
    items.fields(row_list_of<Packet>(), to_wide(packet.raw));
    if (auto const payload = detail::payload_of(packet); payload.bytes != 0) {
        items.begin_item();
        put("payload=", sink);
        detail::plain_number(payload.bits, sink, options);
    }
    items.reserved(to_wide(packet.reserved_bits_set(options.max_phys_addr)));
}

template <class Packets = packet::all, class Sink>
constexpr void packet(packet::any_packet const& packet, Sink&& out, style options = style::full) {
    auto& sink = detail::checked_sink(out);
    if (packet.kind() == packet::kind::none) {
        return put(packet::name_of<Packets>(packet::kind::none), sink);
    }
    visit<Packets>([&](auto const& one) { print::packet(one, sink, options); }, packet);
}

}  // namespace ptspec::print
