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
inline constexpr size_t lookahead_bytes = 16;

/// Where else to look at a packet.
enum class next_lookup : uint8_t {
    nowhere,
    after_escape,  ///< the second byte has the opcode: the second table
    after_mode,    ///< the second byte has the leaf: the third table
    whole_packet,  ///< the whole packet may be a wrong one
};

/// The form of the packet behind which the last IP is 0. Source: PKT-061.
inline constexpr uint8_t clears_ip = 8;

/// What the first byte of a packet, or the first two, tell about all of it.
struct opcode_info {
    uint8_t length = 0;  ///< 0: too little is known but, perhaps, which packet it is
    packet::kind which = packet::kind::pad;
    uint8_t form = 0;  ///< IPBytes; 0 also where there is no IP, and `clears_ip` of a PSB
    next_lookup next = next_lookup::nowhere;
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
constexpr auto opcode_info_of(uint64_t head, unsigned known) noexcept -> opcode_info {
    using raw = typename Packet::raw_type;
    constexpr bool has_one_size = same_as<typename Packet::payload_type, packet::no_payload>;
    auto const bits = packet::detail::narrow<raw>(wide_bits{head, 0});
    opcode_info const unknown{.which = Packet::about.id};
    if (opens_or_needs_a_block<Packet>) { return unknown; }
    if (packet::detail::leaf_bits<Packet> != 0 && known == 1) {
        return {.next = next_lookup::after_mode};
    }
    if (packet::detail::broken_header<Packet>(bits) != rule::none) { return unknown; }
    unsigned const length = Packet::length_of(bits, packet::block::none);
    opcode_info all{static_cast<uint8_t>(length), Packet::about.id};
    if (length <= known) {
        if (packet::detail::broken_payload<Packet>(bits, true) != rule::none) { return unknown; }
    } else {
        if (!has_one_size && Packet::head_bytes > known) { return unknown; }
        if (
            requires { Packet::broken_payload(bits); } ||
            requires { Packet::broken_when_strict(bits); }) {
            if (!has_one_size || known == 1) { return unknown; }
            all.next = next_lookup::whole_packet;
        }
    }
    if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
        all.form = underlying(Packet{bits}.template get<typename Packet::IPBytes>());
    } else if constexpr (same_as<Packet, packet::psb>) {
        all.form = clears_ip;
    }
    return all;
}

/// All outlines: by the first byte, then by the second byte behind the escape and behind the opcode of
/// MODE. What they are made of stands side by side, so that each part is one load.
struct opcode_info_table {
    static constexpr size_t rows = size_t{3} * 256;

    uint8_t length[rows];
    packet::kind which[rows];
    uint8_t form[rows];
    next_lookup next[rows];

    [[nodiscard]] constexpr auto at(size_t row) const noexcept -> opcode_info {
        return {length[row], which[row], form[row], next[row]};
    }
    constexpr void set(size_t row, opcode_info one) noexcept {
        length[row] = one.length;
        which[row] = one.which;
        form[row] = one.form;
        next[row] = one.next;
    }
};

/// The row of a byte: a first one where nothing says `where`.
constexpr auto row_of(next_lookup where, uint8_t byte) noexcept -> size_t {
    return size_t{underlying(where)} << 8 | byte;
}

/// Sets the rows of one opcode byte, the first or the second.
template <class Packets>
constexpr void set_opcode_infos(opcode_info_table& all, next_lookup where) noexcept {
    bool const second = where == next_lookup::after_escape;
    for (unsigned i = 0; i < 256; ++i) {
        auto const byte = static_cast<uint8_t>(i);
        auto const says = second ? packet::classify_ext<Packets>(byte)
                                 : packet::classify_first<Packets>(byte);
        if (says.what != packet::opcode_byte::says::a_packet) { continue; }
        uint64_t const head = second ? escape | i << 8 : i;
        all.set(row_of(where, byte),
                packet::for_kind(
                    says.which,
                    [&]<class Packet>() { return opcode_info_of<Packet>(head, second ? 2 : 1); },
                    Packets{}));
    }
}

/// The same behind the opcode of MODE, of which the leaf tells which packet it is.
template <class... Packets>
constexpr void set_mode_leaves(opcode_info_table& all, type_list<Packets...>) noexcept {
    for (unsigned i = 0; i < 256; ++i) {
        uint64_t const head = mode_opcode | i << 8;
        size_t const row = row_of(next_lookup::after_mode, static_cast<uint8_t>(i));
        ((packet::detail::leaf_bits<Packets> != 0 &&
                  ((packet::detail::widen(opcode_bits<Packets>).low ^ head) &
                   packet::detail::leaf_bits<Packets>) == 0
              ? all.set(row, opcode_info_of<Packets>(head, 2))
              : void()),
         ...);
    }
}

/// The table, made when it is first used.
template <class Packets>
inline constexpr opcode_info_table opcode_infos = [] {
    opcode_info_table all{};
    set_opcode_infos<Packets>(all, next_lookup::nowhere);
    set_opcode_infos<Packets>(all, next_lookup::after_escape);
    set_mode_leaves(all, Packets{});
    all.next[escape] = next_lookup::after_escape;
    return all;
}();

/// The packet is right, of which all bytes count.
template <class Packets>
[[gnu::noinline]]  // so that it is not in the way of those that are right in any case
constexpr auto
is_valid_packet(uint64_t low, uint64_t high, packet::kind which, bool strict) noexcept -> bool {
    wide_bits const image{low, high};  // not as one, which would be passed in memory
    return packet::for_kind(
        which,
        [&]<class Packet>() {
            auto const bits = packet::detail::narrow<typename Packet::raw_type>(image);
            return packet::detail::broken_payload<Packet>(bits, strict) == rule::none;
        },
        Packets{});
}

/// The row of the packet that begins here; of one that cannot be known the escape's, which has no
/// length. There have to be `lookahead_bytes` bytes.
template <class Packets>
[[gnu::always_inline]]  // so that it costs no call
constexpr auto
row_at(uint8_t const* at, bool strict) noexcept -> size_t {
    opcode_info_table const& all = opcode_infos<Packets>;
    size_t const first = *at;
    size_t row = first;
    // A branch: were the row chosen without one, the length of every TIP would wait for it.
    if (first == escape) [[unlikely]] { row = row_of(next_lookup::after_escape, at[1]); }
    next_lookup const where = all.next[row];
    if (where == next_lookup::nowhere) [[likely]] { return row; }
    if (where == next_lookup::whole_packet) {
        return is_valid_packet<Packets>(load_le64(at), load_le64(at + 8), all.which[row], strict)
                   ? row
                   : escape;
    }
    return row_of(where, at[1]);  // MODE, of which the second byte tells all
}
template <class Packets>
constexpr auto opcode_info_at(uint8_t const* at, bool strict) noexcept -> opcode_info {
    return opcode_infos<Packets>.at(row_at<Packets>(at, strict));
}

}  // namespace ptspec::trace::detail
