// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/packet/decode.hpp>
#include <ptspec/base/attribute.hpp>

/// Tables that give the length, kind and IP form of a packet from its first bytes. They are derived
/// from the declarations of the packets.
namespace ptspec::trace::detail {

/// The number of bytes that the fast path reads at each packet, independent of its length.
inline constexpr size_t lookahead_bytes = 16;

/// The next lookup that a packet needs.
enum class next_lookup : uint8_t {
    first_byte,
    after_escape,  ///< the second byte is the opcode: the second table
    after_mode,    ///< the second byte has the leaf: the third table
    whole_packet,  ///< the payload may be invalid: check the whole packet
};

/// The IP form of PSB, which clears the last IP. Source: PKT-061.
inline constexpr uint8_t clears_ip = 8;

/// The properties of a packet that follow from its first one or two bytes.
struct opcode_info {
    uint8_t length = 0;  ///< 0: unknown, although `kind` may be known
    packet::kind kind = packet::kind::pad;
    uint8_t form = 0;  ///< IPBytes; 0 also for a packet without IP; `clears_ip` for PSB
    next_lookup next = next_lookup::first_byte;
};

inline constexpr uint64_t pad_opcode = packet::pad::Opcode::fixed_value;
inline constexpr uint64_t mode_opcode = packet::mode_exec::Opcode::fixed_value;

template <class Packet>
inline constexpr bool opens_or_needs_a_block =
    same_as<Packet, packet::bbp> ||
    same_as<typename Packet::payload_type, packet::payload_of_block>;

/// The opcode information of a packet type, outside a block. `head` has the first `known` bytes of
/// the packet.
template <class Packet>
constexpr auto opcode_info_of(uint64_t head, unsigned known) noexcept -> opcode_info {
    using raw = typename Packet::raw_type;
    constexpr bool has_one_size = same_as<typename Packet::payload_type, packet::no_payload>;
    auto const bits = from_wide<raw>(wide_bits{head, 0});
    opcode_info const unknown{.kind = Packet::about.id};
    if (opens_or_needs_a_block<Packet>) { return unknown; }
    if (packet::leaf_mask<Packet> != 0 && known == 1) { return {.next = next_lookup::after_mode}; }
    if (packet::broken_header<Packet>(bits) != rule::none) { return unknown; }
    unsigned const length = Packet::length_of(bits, packet::block::none);
    opcode_info all{static_cast<uint8_t>(length), Packet::about.id};
    if (length <= known) {
        if (packet::broken_payload<Packet>(bits, true) != rule::none) { return unknown; }
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

/// All opcode information: 256 rows for the first byte, 256 for the second byte after the escape
/// and 256 for the second byte of MODE. One array for each member: each lookup is one load.
struct opcode_info_table {
    static constexpr size_t rows = size_t{3} * 256;

    uint8_t length[rows];
    uint8_t length_unless_mtc[rows];  ///< the same, but 0 for MTC: see `decode_loop`
    packet::kind kind[rows];
    uint8_t form[rows];
    next_lookup next[rows];

    [[nodiscard]] constexpr auto at(size_t row) const noexcept -> opcode_info {
        return {length[row], kind[row], form[row], next[row]};
    }
    constexpr void set(size_t row, opcode_info one) noexcept {
        length[row] = one.length;
        length_unless_mtc[row] = one.kind == packet::kind::mtc ? uint8_t{0} : one.length;
        kind[row] = one.kind;
        form[row] = one.form;
        next[row] = one.next;
    }
};

/// The row of a byte in the table that `lookup` selects.
constexpr auto row_of(next_lookup lookup, uint8_t byte) noexcept -> size_t {
    return size_t{underlying(lookup)} << 8 | byte;
}

/// Sets the rows of the first byte, or of the second byte after the escape.
template <class Packets>
constexpr void set_opcode_infos(opcode_info_table& all, next_lookup lookup) noexcept {
    bool const second = lookup == next_lookup::after_escape;
    for (unsigned i = 0; i < 256; ++i) {
        auto const byte = static_cast<uint8_t>(i);
        auto const opcode = second ? packet::classify_ext<Packets>(byte)
                                   : packet::classify_first<Packets>(byte);
        if (opcode.what != packet::opcode_byte::meaning::packet) { continue; }
        uint64_t const head = second ? packet::escape | i << 8 : i;
        all.set(row_of(lookup, byte),
                packet::for_kind(
                    opcode.id,
                    [&]<class Packet>() { return opcode_info_of<Packet>(head, second ? 2 : 1); },
                    Packets{}));
    }
}

/// Sets the rows of the second byte of MODE, whose leaf selects the packet.
template <class... Packets>
constexpr void set_mode_leaves(opcode_info_table& all, type_list<Packets...>) noexcept {
    for (unsigned i = 0; i < 256; ++i) {
        uint64_t const head = mode_opcode | i << 8;
        size_t const row = row_of(next_lookup::after_mode, static_cast<uint8_t>(i));
        ((packet::leaf_mask<Packets> != 0 &&
                  ((to_wide(Packets{}.raw).low ^ head) & packet::leaf_mask<Packets>) == 0
              ? all.set(row, opcode_info_of<Packets>(head, 2))
              : void()),
         ...);
    }
}

/// The table. It is a variable template: only programs that use it evaluate it.
template <class Packets>
inline constexpr opcode_info_table opcode_infos = [] {
    opcode_info_table all{};
    set_opcode_infos<Packets>(all, next_lookup::first_byte);
    set_opcode_infos<Packets>(all, next_lookup::after_escape);
    set_mode_leaves(all, Packets{});
    all.next[packet::escape] = next_lookup::after_escape;
    return all;
}();

/// Checks the payload of a packet. `low` and `high` have all bytes of the packet.
template <class Packets>
constexpr auto is_valid_packet(uint64_t low, uint64_t high, packet::kind kind, bool strict) noexcept
    -> bool {
    wide_bits const image{low, high};  // passed as two scalars: some ABIs pass a struct in memory
    return packet::for_kind(
        kind,
        [&]<class Packet>() {
            auto const bits = from_wide<typename Packet::raw_type>(image);
            return packet::broken_payload<Packet>(bits, strict) == rule::none;
        },
        Packets{});
}

/// The row of the packet at `at`, or the row of the escape, whose length is 0, when the payload is
/// invalid. At least `lookahead_bytes` bytes are readable.
///
/// always_inline: without it `for_each` takes 19 % more instructions (g++ 12).
template <class Packets>
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto row_at(uint8_t const* at, bool strict) noexcept -> size_t {
    opcode_info_table const& all = opcode_infos<Packets>;
    size_t const first = *at;
    size_t row = first;
    // A branch, not a conditional move: a move would add latency to every length lookup.
    if (first == packet::escape) [[unlikely]] { row = row_of(next_lookup::after_escape, at[1]); }
    next_lookup const lookup = all.next[row];
    if (lookup == next_lookup::first_byte) [[likely]] { return row; }
    if (lookup == next_lookup::whole_packet) {
        return is_valid_packet<Packets>(load_le64(at), load_le64(at + 8), all.kind[row], strict)
                   ? row
                   : packet::escape;
    }
    return row_of(lookup, at[1]);  // MODE: the second byte has the leaf
}
template <class Packets>
constexpr auto opcode_info_at(uint8_t const* at, bool strict) noexcept -> opcode_info {
    return opcode_infos<Packets>.at(row_at<Packets>(at, strict));
}

}  // namespace ptspec::trace::detail

#undef PTSPEC_ATTRIBUTE
