// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/list.hpp>

/// Identifies a packet by its opcode bytes. The tables are derived from the packets' declarations.
namespace ptspec::packet {

/// The meaning of one opcode byte.
struct opcode_byte {
    enum class meaning : uint8_t {
        invalid,  ///< no packet has this byte here: `bad_opcode`
        packet,   ///< the opcode is complete, `id` is its packet
        prefix,   ///< the opcode continues in the next byte
    };
    meaning what = meaning::invalid;
    kind id = kind::none;

    friend constexpr auto operator==(opcode_byte const&, opcode_byte const&) -> bool = default;
};

/// The first byte of two-byte opcodes.
///
/// Source: PKT-010, PKT-012.
inline constexpr uint32_t escape = psbend::Escape::fixed_value;

namespace detail {

/// The opcode of a kind, as `opcode_of` gives it.
template <class... Packets>
constexpr auto opcode_of_kind(kind id, type_list<Packets...>) noexcept -> masked_opcode {
    masked_opcode found{};
    (void)((Packets::about.id == id ? (found = opcode_of<Packets>(), true) : false) || ...);
    return found;
}

/// Byte `number` of an opcode, from 0.
constexpr auto byte_of(masked_opcode opcode, unsigned number) noexcept -> masked_opcode {
    return {opcode.mask >> 8 * number & 0xFF, opcode.value >> 8 * number & 0xFF};
}

struct opcode_table {
    opcode_byte bytes[256];
};

/// The meaning of each value of opcode byte `number`, after the opcode bytes `prefix`. If
/// several packets match, the one that compares the most bits wins; among packets that differ only
/// in a leaf, the first.
template <class... Packets>
constexpr auto make_opcode_table(type_list<Packets...>, unsigned number, uint32_t prefix,
                                 bool in_block) noexcept -> opcode_table {
    constexpr masked_opcode opcodes[] = {opcode_of<Packets>()...};
    constexpr kind kinds[] = {Packets::about.id...};
    constexpr bool only_in_block[] = {same_as<typename Packets::payload_type, payload_of_block>...};
    opcode_table table{};
    // Without this, g++ 12 emits zeros where no packet matches: kind::pad.
    for (opcode_byte& one : table.bytes) { one = {}; }
    unsigned bits[256] = {};
    for (unsigned i = 0; i < sizeof...(Packets); ++i) {
        auto const opcode = opcodes[i];
        auto const here = byte_of(opcode, number);
        if (here.mask == 0 || ((opcode.value ^ prefix) & low_bits(8 * number)) != 0 ||
            (only_in_block[i] && !in_block)) {
            continue;
        }
        bool const continues = byte_of(opcode, number + 1).mask != 0;
        unsigned const compared_bits = popcount(here.mask);
        unsigned const free_bits = 0xFFU & ~here.mask;
        // All values that match in the compared bits: the subsets of the other bits.
        for (unsigned rest = free_bits;; rest = (rest - 1) & free_bits) {
            unsigned const byte = here.value | rest;
            if (compared_bits > bits[byte]) {
                bits[byte] = compared_bits;
                table.bytes[byte] = {continues ? opcode_byte::meaning::prefix
                                               : opcode_byte::meaning::packet,
                                     continues ? kind::none : kinds[i]};
            }
            if (rest == 0) { break; }
        }
    }
    return table;
}

/// The first two bytes of three-byte opcodes.
inline constexpr uint32_t second_escape = mnt::Escape2::fixed_value << 8 | mnt::Escape::fixed_value;

/// The opcode tables. Members of a template, so they are computed on first use.
template <class Packets>
struct tables_of {
    static constexpr opcode_table first = make_opcode_table(Packets{}, 0, 0, false);
    static constexpr opcode_table first_in_block = make_opcode_table(Packets{}, 0, 0, true);
    /// After 02H, and after 02H C3H.
    static constexpr opcode_table ext = make_opcode_table(Packets{}, 1, escape, false);
    static constexpr opcode_table ext2 = make_opcode_table(Packets{}, 2, second_escape, false);
};

}  // namespace detail

/// The meaning of a packet's first byte.
///
/// Source: PKT-010, PKT-011, PKT-014, PKT-015, PKT-203.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_first(uint8_t byte, block items = block::none) noexcept
    -> opcode_byte {
    return items == block::none ? detail::tables_of<Packets>::first.bytes[byte]
                                : detail::tables_of<Packets>::first_in_block.bytes[byte];
}

/// The meaning of the byte after 02H.
///
/// Source: PKT-012, PKT-016.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_ext(uint8_t byte) noexcept -> opcode_byte {
    return detail::tables_of<Packets>::ext.bytes[byte];
}

/// The meaning of the byte after 02H C3H.
///
/// Source: PKT-013.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_ext2(uint8_t byte) noexcept -> opcode_byte {
    return detail::tables_of<Packets>::ext2.bytes[byte];
}

namespace detail {

/// Opcode lookup in the tables.
template <class Packets>
struct opcodes {
    static constexpr auto first(uint8_t byte, block items) noexcept -> opcode_byte {
        return classify_first<Packets>(byte, items);
    }
    static constexpr auto ext(uint8_t byte) noexcept -> opcode_byte {
        return classify_ext<Packets>(byte);
    }
    static constexpr auto ext2(uint8_t byte) noexcept -> opcode_byte {
        return classify_ext2<Packets>(byte);
    }
};

/// A set of byte values.
struct byte_set {
    uint64_t bits[4] = {};

    [[nodiscard]] constexpr auto has(unsigned byte) const noexcept -> bool {
        return (bits[byte / 64] >> byte % 64 & 1) != 0;
    }
    friend constexpr auto operator==(byte_set const&, byte_set const&) -> bool = default;
};

/// The bytes of a table for which `holds(opcode_byte)` is true.
template <class Holds>
constexpr auto bytes_where(opcode_table const& table, Holds const& holds) noexcept -> byte_set {
    byte_set found;
    for (unsigned i = 0; i < 256; ++i) {
        if (holds(table.bytes[i])) { found.bits[i / 64] |= uint64_t{1} << i % 64; }
    }
    return found;
}

/// Opcode lookup for one packet, `Own`, with sets of 32 bytes instead of tables of 512. Every other
/// packet is reported as `Other`.
template <class Packets, kind Own, kind Other>
struct opcodes_of_one {
    using tables = tables_of<Packets>;

    template <opcode_table const& Table>
    static constexpr byte_set known = bytes_where(
        Table, [](opcode_byte one) { return one.what != opcode_byte::meaning::invalid; });
    template <opcode_table const& Table>
    static constexpr byte_set own = bytes_where(Table, [](opcode_byte one) {
        return one == opcode_byte{opcode_byte::meaning::packet, Own};
    });
    static constexpr bool depends_on_block = known<tables::first> !=
                                                 known<tables::first_in_block> ||
                                             own<tables::first> != own<tables::first_in_block>;

    /// `prefix` is the byte after which the opcode continues.
    template <opcode_table const& Table>
    static constexpr auto in(unsigned prefix, uint8_t byte) noexcept -> opcode_byte {
        if (byte == prefix) { return {opcode_byte::meaning::prefix}; }
        if (!known<Table>.has(byte)) { return {}; }
        bool is_own = false;
        if constexpr (own<Table> != byte_set{}) { is_own = own<Table>.has(byte); }
        return {opcode_byte::meaning::packet, is_own ? Own : Other};
    }
    static constexpr auto first(uint8_t byte, block items) noexcept -> opcode_byte {
        if constexpr (depends_on_block) {
            if (items != block::none) { return in<tables::first_in_block>(escape, byte); }
        }
        return in<tables::first>(escape, byte);
    }
    static constexpr auto ext(uint8_t byte) noexcept -> opcode_byte {
        return in<tables::ext>(second_escape >> 8, byte);
    }
    static constexpr auto ext2(uint8_t byte) noexcept -> opcode_byte {
        return in<tables::ext2>(~0U, byte);
    }
};

}  // namespace detail

}  // namespace ptspec::packet
