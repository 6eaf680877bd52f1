// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/print/rows.hpp>
#include <ptspec/print/text.hpp>

/// Prints the value of a word: `TraceEn=1 MTCFreq=3 (8 crystal cycles) reserved set 40000H`.
///
/// A number below 10 is a decimal digit. Larger numbers and all addresses are hexadecimal with the
/// suffix H, as in the manual. Amounts are decimal and followed by their unit.
namespace ptspec::print {

/// Options for printing a word.
struct style {
    bool zeros = false;     ///< also print fields that are 0
    bool meanings = true;   ///< in parentheses, the name or the amount of an encoding
    bool bare_hex = false;  ///< all numbers in hexadecimal without H; `; ` before reserved bits
    unsigned max_phys_addr = 64;  ///< address bits at and above this bit are reserved

    /// Prints all fields.
    static style const full;
    /// Prints all fields as bare hexadecimal numbers: `TraceEn=1 MTCFreq=F; reserved set 40000`.
    static style const plain_hex;
};

inline constexpr style style::full{.zeros = true};
inline constexpr style style::plain_hex{.zeros = true, .meanings = false, .bare_hex = true};

/// A field and its value.
struct field_value {
    row_facts const* facts;
    uint64_t encoding;
    uint64_t value;  ///< the encoding, or the address for an address field
};

/// Calls `visit(field_value)` for each field from bit 0 up.
template <callable<field_value> Visitor>
constexpr void for_each_field(row_list const& rows, wide_bits raw, Visitor&& visit) {
    for (auto const& one : rows) {
        if (one.row.kind != row_kind::field || one.payload_sizes != 0) { continue; }
        uint64_t const encoding = detail::shifted_right(raw, one.row.lsb) &
                                  low_bits(one.row.msb - one.row.lsb + 1);
        visit(field_value{&one, encoding, encoding << one.row.lowest_address_bit});
    }
}

template <class Word, callable<field_value> Visitor>
constexpr void for_each_field(Word const& word, Visitor&& visit) {
    for_each_field(row_list_of<Word>(), to_wide(word.raw), visit);
}

namespace detail {

template <class Sink>
constexpr void hex_with_h(wide_bits number, Sink& sink, style options) {
    hex(number, sink);
    if (!options.bare_hex) { put("H", sink); }
}

/// Prints a number that is not an address.
template <class Sink>
constexpr void plain_number(wide_bits number, Sink& sink, style options) {
    if (number.high == 0 && number.low < 10) {
        decimal(number.low, sink);
    } else {
        hex_with_h(number, sink, options);
    }
}

}  // namespace detail

/// Prints an amount with its unit, which is a plural: `8 crystal cycles`, `1 byte`.
template <class Sink>
constexpr void amount(quantity const& quantity, Sink&& out) {
    auto& sink = detail::checked_sink(out);
    decimal(quantity.count, sink);
    put(" ", sink);
    auto unit = quantity.unit;
    if (quantity.count == 1 && unit.data()[unit.size() - 1] == 's') { --unit.length; }
    put(unit, sink);
}

/// Prints the value of a field: `3 (8 crystal cycles)`.
template <class Sink>
constexpr void value(field_value const& field, Sink&& out, style options = {}) {
    auto& sink = detail::checked_sink(out);
    if (field.facts->row.is_address) {
        detail::hex_with_h({field.value, 0}, sink, options);
    } else {
        detail::plain_number({field.value, 0}, sink, options);
    }
    if (!options.meanings) { return; }
    auto const enumerator = field.facts->enumerator(field.encoding);
    auto const quantity = field.facts->amount_of(field.encoding);
    if (enumerator.size() != 0) {
        put(" (", sink);
        put(enumerator, sink);
        put(")", sink);
    } else if (quantity.unit.size() != 0) {
        put(" (", sink);
        amount(quantity, sink);
        put(")", sink);
    }
}

namespace detail {

/// Prints items on one line, separated by spaces.
template <class Sink>
struct item_writer {
    Sink sink;
    style options;
    bool any = false;

    constexpr void begin_item(text separator = " ") {
        if (any) { put(separator, sink); }
        any = true;
    }
    constexpr void fields(row_list const& rows, wide_bits raw) {
        for_each_field(rows, raw, [&](field_value const& field) {
            if (field.encoding == 0 && !options.zeros) { return; }
            begin_item();
            put(field.facts->row.name, sink);
            put("=", sink);
            value(field, sink, options);
        });
    }
    constexpr void other(wide_bits set) {
        if (set == wide_bits{} || options.bare_hex) { return; }
        begin_item();
        put("other set ", sink);
        hex_with_h(set, sink, options);
    }
    constexpr void reserved(wide_bits set) {
        if (set == wide_bits{}) { return; }
        begin_item(options.bare_hex ? text{"; "} : text{" "});
        put("reserved set ", sink);
        hex_with_h(set, sink, options);
    }
};

constexpr auto other_bits(row_list const& rows) noexcept -> wide_bits {
    wide_bits mask{};
    for (auto const& one : rows) {
        if (one.row.kind == row_kind::other) {
            mask = mask | bit_mask<wide_bits>(one.row.msb, one.row.lsb);
        }
    }
    return mask;
}

}  // namespace detail

/// Prints a word's fields from bit 0 up, separated by spaces, and the reserved bits that are set.
/// Prints `0` if there is nothing else.
template <class Word, class Sink>
constexpr void word(Word const& word, Sink&& out, style options = {}) {
    auto& sink = detail::checked_sink(out);
    detail::item_writer<decltype(sink)> items{sink, options};
    auto const rows = row_list_of<Word>();
    auto const raw = to_wide(word.raw);
    items.fields(rows, raw);
    items.other(raw & detail::other_bits(rows));
    items.reserved(to_wide(word.reserved_bits_set(options.max_phys_addr)));
    if (!items.any) { put("0", sink); }
}

}  // namespace ptspec::print
