// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/print/rows.hpp>
#include <ptspec/print/text.hpp>

/// The arrangement of a figure of a word or a packet, independent of the output format.
///
/// A word is drawn in lines of bits. A packet, or any word longer than 64 bits, is drawn byte by
/// byte, as in the manual.
namespace draw {

using namespace ptspec;

using print::fixed_text;
using print::row_facts;
using print::access_name;
using print::decimal;
using print::hex;
using print::put;
using print::row_list;
using print::row_list_of;
using print::text_sink;

[[nodiscard]] constexpr auto drawn_in_bytes(row_list const& rows) noexcept -> bool {
    return rows.is_packet || rows.bits > 64;
}

/// The maximum number of characters of the byte numbers before a line: `8..15`.
[[nodiscard]] constexpr auto widest_byte_numbers(row_list const& rows) noexcept -> unsigned {
    return rows.bits / 8 > 100 ? 8 : 6;
}

/// The part of a row in one line of a figure.
struct piece {
    row_facts const* of;
    unsigned msb;
    unsigned lsb;

    [[nodiscard]] constexpr auto whole() const noexcept -> bool {
        return msb == of->row.msb && lsb == of->row.lsb;
    }
    [[nodiscard]] constexpr auto named() const noexcept -> bool {
        return of->row.kind == row_kind::field;
    }
};

/// One line of a figure: bits `msb` to `lsb`, or the bytes of a packet that one row fills.
struct picture_line {
    unsigned msb;
    unsigned lsb;
    unsigned columns;  ///< the width of the line in bits

    /// True for several bytes of a packet that are drawn as wide as one.
    [[nodiscard]] constexpr auto has_several_bytes() const noexcept -> bool {
        return msb - lsb >= columns;
    }
};

namespace detail {

constexpr auto row_at(row_list const& of, unsigned bit) noexcept -> row_facts const& {
    size_t i = 0;
    while (of.first[i].row.msb < bit) { ++i; }
    return of.first[i];
}

}  // namespace detail

/// Calls `visit(picture_line)` from top to bottom. A word is drawn from its highest bit down with
/// `bits_per_line` bits per line, a packet from its first byte on.
template <class Visitor>
constexpr void for_each_line(row_list const& of, unsigned bits_per_line, Visitor&& visit) {
    if (!drawn_in_bytes(of)) {
        for (unsigned end = of.bits; end != 0;) {
            unsigned const first = (end - 1) / bits_per_line * bits_per_line;
            visit(picture_line{end - 1, first, end - first});
            end = first;
        }
        return;
    }
    for (unsigned first = 0; first < of.bits;) {
        unsigned const filled = (detail::row_at(of, first).row.msb + 1 - first) / 8;
        unsigned const bytes = filled != 0 ? filled : 1;
        visit(picture_line{first + 8 * bytes - 1, first, 8});
        first += 8 * bytes;
    }
}

/// Calls `visit(piece)` for each row of a line from left to right, the highest bit first.
template <class Visitor>
constexpr void for_each_piece(row_list const& of, picture_line line, Visitor&& visit) {
    for (size_t i = of.count; i-- != 0;) {
        auto const& row = of.first[i].row;
        if (row.lsb > line.msb || row.msb < line.lsb) { continue; }
        visit(piece{&of.first[i], row.msb < line.msb ? row.msb : line.msb,
                    row.lsb > line.lsb ? row.lsb : line.lsb});
    }
}

/// The left and right end of a piece, including its borders.
struct place {
    unsigned left;
    unsigned right;
};

/// The place of a piece in its line, if a bit is `width` wide. Several bytes of a packet are drawn
/// as wide as one.
[[nodiscard]] constexpr auto place_of(piece one, picture_line line, unsigned width) noexcept
    -> place {
    return line.has_several_bytes()
               ? place{0, line.columns * width}
               : place{(line.msb - one.msb) * width, (line.msb - one.lsb + 1) * width};
}

// ------------------------------------------------------------------------------------ words

/// A buffer for the label of one piece.
using label_text = fixed_text<96>;

/// Prints the sizes of a payload: `0, 2, 4, 6 or 8 bytes`, `0 to 9 bytes`.
template <text_sink Sink>
constexpr void byte_counts(uint32_t sizes, Sink&& sink) {
    unsigned const lowest = lowest_bit(sizes);
    unsigned const highest = highest_bit(sizes);
    if (popcount(sizes) > 2 && popcount(sizes) == highest - lowest + 1) {
        decimal(lowest, sink);
        put(" to ", sink);
    } else {
        for (unsigned size = lowest; size < highest; ++size) {
            if ((sizes >> size & 1) == 0) { continue; }
            decimal(size, sink);
            bool const more = (sizes >> (size + 1) & low_bits(highest - size - 1)) != 0;
            put(more ? text{", "} : text{" or "}, sink);
        }
    }
    decimal(highest, sink);
    put(" bytes", sink);
}

/// Prints the label of a piece: the name, with the bits if it is part of a field, or with the sizes
/// if it is a payload. Spelled as in the manual: `CR3[11:5]`.
template <text_sink Sink>
constexpr void label(piece const& which, Sink&& sink) {
    auto const& row = which.of->row;
    put(row.name, sink);
    if (which.of->payload_sizes != 0 && popcount(which.of->payload_sizes) != 1) {
        put(" (", sink);
        byte_counts(which.of->payload_sizes, sink);
        put(")", sink);
    }
    if (which.named() && !which.whole()) {
        unsigned const first = row.lsb - row.lowest_address_bit;
        put("[", sink);
        decimal(which.msb - first, sink);
        if (which.msb != which.lsb) {
            put(":", sink);
            decimal(which.lsb - first, sink);
        }
        put("]", sink);
    }
}

/// Prints the bytes of a fixed row in memory order, separated by spaces: `02H 82H`.
template <text_sink Sink>
constexpr void fixed_bytes(piece const& which, Sink&& sink) {
    for (unsigned lsb = which.lsb; lsb < which.msb; lsb += 8) {
        if (lsb != which.lsb) { put(" ", sink); }
        hex(which.of->value >> (lsb - which.of->row.lsb) & 0xFF, sink, 2);
        put("H", sink);
    }
}

}  // namespace draw
