// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/bytes.hpp>
#include <ptspec/packet/decode.hpp>

/// What the first bytes of a packet tell about all of it, in tables made from the packets'
/// declarations.
namespace ptspec::trace::detail {

using packet::detail::escape;
using packet::detail::opcode_bits;

/// A look at a packet reads so many bytes, whatever its length.
inline constexpr size_t looked_at = 16;

/// Where else to look at a packet.
enum class look_on : uint8_t {
    nowhere,
    behind_escape,  ///< the second byte has the opcode: the second table
    behind_mode,    ///< the second byte has the leaf: the third table
    at_all,         ///< the whole packet may be a wrong one
};

/// The form of the packet behind which the last IP is 0. Source: PKT-061.
inline constexpr uint8_t clears_ip = 8;

/// What the first byte of a packet, or the first two, tell about all of it.
struct outline {
    uint8_t length = 0;  ///< 0: too little is known but, perhaps, which packet it is
    packet::kind which = packet::kind::pad;
    uint8_t form = 0;  ///< IPBytes; 0 also where there is no IP, and `clears_ip` of a PSB
    look_on next = look_on::nowhere;
};

inline constexpr auto tnt_opcode = packet::detail::shape_of<packet::tnt_short>();
inline constexpr auto cyc_opcode = packet::detail::shape_of<packet::cyc>();
inline constexpr uint64_t mode_opcode = packet::detail::shape_of<packet::mode_exec>().value;

template <class Packet>
inline constexpr bool opens_or_needs_a_block =
    same_as<Packet, packet::bbp> ||
    same_as<typename Packet::payload_type, packet::payload_of_block>;

/// The outline of packets of one type that begin with these bits, `known` bytes of them, where no
/// block is open.
template <class Packet>
constexpr auto outline_of(uint64_t head, unsigned known) noexcept -> outline {
    using raw = typename Packet::raw_type;
    constexpr bool has_one_size = same_as<typename Packet::payload_type, packet::no_payload>;
    auto const bits = packet::detail::narrow<raw>(wide_bits{head, 0});
    outline const unknown{.which = Packet::about.id};
    if (opens_or_needs_a_block<Packet>) { return unknown; }
    if (packet::detail::leaf_bits<Packet> != 0 && known == 1) {
        return {.next = look_on::behind_mode};
    }
    if (packet::detail::broken_header<Packet>(bits) != rule::none) { return unknown; }
    unsigned const length = Packet::length_of(bits, packet::block::none);
    outline all{static_cast<uint8_t>(length), Packet::about.id};
    if (length <= known) {
        if (packet::detail::broken_payload<Packet>(bits, true) != rule::none) { return unknown; }
    } else {
        if (!has_one_size && Packet::head_bytes > known) { return unknown; }
        if (
            requires { Packet::broken_payload(bits); } ||
            requires { Packet::broken_when_strict(bits); }) {
            if (!has_one_size || known == 1) { return unknown; }
            all.next = look_on::at_all;
        }
    }
    if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
        all.form = underlying(Packet{bits}.template get<typename Packet::IPBytes>());
    } else if constexpr (same_as<Packet, packet::psb>) {
        all.form = clears_ip;
    }
    return all;
}

struct outline_table {
    outline of[256];
};

template <class Packets>
constexpr auto outlines_behind(uint64_t prefix, unsigned prefix_bytes) noexcept -> outline_table {
    outline_table table{};
    for (unsigned byte = 0; byte < 256; ++byte) {
        auto const says = prefix_bytes == 0
                              ? packet::classify_first<Packets>(static_cast<uint8_t>(byte))
                              : packet::classify_ext<Packets>(static_cast<uint8_t>(byte));
        if (says.what != packet::opcode_byte::says::a_packet) { continue; }
        table.of[byte] = packet::for_kind(
            says.which,
            [&]<class Packet>() {
                return outline_of<Packet>(prefix | uint64_t{byte} << 8 * prefix_bytes,
                                          prefix_bytes + 1);
            },
            Packets{});
    }
    if (prefix_bytes == 0) { table.of[escape].next = look_on::behind_escape; }
    return table;
}

/// The same behind the opcode of MODE, of which the leaf tells which packet it is.
template <class... Packets>
constexpr auto outlines_of_leaves(type_list<Packets...>) noexcept -> outline_table {
    outline_table table{};
    for (unsigned byte = 0; byte < 256; ++byte) {
        uint64_t const head = mode_opcode | uint64_t{byte} << 8;
        ((packet::detail::leaf_bits<Packets> != 0 &&
                  ((packet::detail::widen(opcode_bits<Packets>).low ^ head) &
                   packet::detail::leaf_bits<Packets>) == 0
              ? void(table.of[byte] = outline_of<Packets>(head, 2))
              : void()),
         ...);
    }
    return table;
}

/// The tables, made when they are first used.
template <class Packets>
struct outlines_of {
    static constexpr outline_table by[3] = {outlines_behind<Packets>(0, 0),
                                            outlines_behind<Packets>(escape, 1),
                                            outlines_of_leaves(Packets{})};
};

/// The packet is right, of which all bytes count.
template <class Packets>
[[gnu::noinline]]  // so that it is not in the way of those that are right in any case
constexpr auto
is_right(uint64_t low, uint64_t high, packet::kind which, bool strict) noexcept -> bool {
    wide_bits const image{low, high};  // not as one, which would be passed in memory
    return packet::for_kind(
        which,
        [&]<class Packet>() {
            auto const bits = packet::detail::narrow<typename Packet::raw_type>(image);
            return packet::detail::broken_payload<Packet>(bits, strict) == rule::none;
        },
        Packets{});
}

/// The outline of the packet that begins here. There have to be `looked_at` bytes.
template <class Packets>
[[gnu::always_inline]]  // so that it costs no call
constexpr auto
outline_at(uint8_t const* at, bool strict) noexcept -> outline {
    outline one = outlines_of<Packets>::by[0].of[*at];
    if (one.next == look_on::nowhere) { return one; }
    one = outlines_of<Packets>::by[underlying(one.next)].of[at[1]];
    if (one.next == look_on::at_all &&
        !is_right<Packets>(load_le64(at), load_le64(at + 8), one.which, strict)) {
        return {};
    }
    return one;
}

}  // namespace ptspec::trace::detail
