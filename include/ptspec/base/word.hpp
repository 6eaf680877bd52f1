// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bits.hpp>

/// Layouts and hardware words.
///
/// A layout lists the rows of a word from bit 0 up, and a word is its raw bits. All masks and
/// tables of a word are computed from its rows.
namespace ptspec {

template <class Lower, class Upper>
concept directly_below = Lower::msb + 1 == Upper::lsb;

namespace detail {

template <class One, class Two>
struct neighbours {
    static_assert(directly_below<One, Two>, "these two rows overlap or leave a gap");
};

template <size_t Count>
constexpr auto tile(unsigned const (&lsb)[Count], unsigned const (&msb)[Count],
                    unsigned bits) noexcept -> bool {
    unsigned next = 0;
    for (size_t i = 0; i < Count; ++i) {
        if (lsb[i] != next) { return false; }
        next = msb[i] + 1;
    }
    return next == bits;
}

template <class First, class... Rest>
struct explain_pairs {};
template <class One, class Two, class... Rest>
struct explain_pairs<One, Two, Rest...> : neighbours<One, Two>, explain_pairs<Two, Rest...> {};

template <unsigned Bits, class... Rows>
struct explained_tiling : explain_pairs<Rows...> {
    static constexpr unsigned lsb[sizeof...(Rows)] = {Rows::lsb...};
    static constexpr unsigned msb[sizeof...(Rows)] = {Rows::msb...};
    static_assert(lsb[0] == 0, "the first row has to begin at bit 0");
    static_assert(msb[sizeof...(Rows) - 1] + 1 == Bits,
                  "the last row has to end at the top of the word");
};

/// Instantiated only for layouts that do not tile: names the two rows in the error message.
template <bool Tile>
struct explain_tiling {
    template <unsigned Bits, class... Rows>
    using of = bool;
};
template <>
struct explain_tiling<false> {
    template <unsigned Bits, class... Rows>
    using of = explained_tiling<Bits, Rows...>;
};

}  // namespace detail

/// All rows of a word, from bit 0 up. Rows that do not tile the word stop the build.
///
/// The rows are base classes: `__is_base_of` checks membership in a time that does not depend on
/// the number of rows.
template <unsigned Bits, class... Rows>
struct bit_layout : Rows... {
    static constexpr bool tiles = detail::tile({Rows::lsb...}, {Rows::msb...}, Bits);
    static_assert(sizeof(typename detail::explain_tiling<tiles>::template of<Bits, Rows...>) != 0);
    static constexpr unsigned bits = Bits;
    using rows = type_list<Rows...>;
};

namespace detail {

/// The bits of the rows whose fact equals `wanted`.
template <class Raw, class Fact>
constexpr auto bits_where(Fact const* facts, Fact wanted, unsigned const* msb, unsigned const* lsb,
                          size_t count) noexcept -> Raw {
    Raw all{};
    for (size_t i = 0; i < count; ++i) {
        if (facts[i] == wanted) { all = static_cast<Raw>(all | bit_mask<Raw>(msb[i], lsb[i])); }
    }
    return all;
}

// Arrays of facts compile faster than one function call for each row.
template <class Raw, class Fact, class... Rows>
constexpr auto bits_where(type_list<Rows...>, Fact const* facts, Fact wanted) noexcept -> Raw {
    unsigned const msb[] = {Rows::msb...};
    unsigned const lsb[] = {Rows::lsb...};
    return bits_where<Raw>(facts, wanted, msb, lsb, sizeof...(Rows));
}
template <class Raw, class... Rows>
constexpr auto bits_of_kind(type_list<Rows...> rows, row_kind wanted) noexcept -> Raw {
    row_kind const kinds[] = {Rows::kind...};
    return bits_where<Raw>(rows, kinds, wanted);
}
template <class Raw, class... Rows>
constexpr auto bits_of_access(type_list<Rows...> rows, row_access wanted) noexcept -> Raw {
    row_access const accesses[] = {Rows::access...};
    return bits_where<Raw>(rows, accesses, wanted);
}

/// Masks as constants, so that they cost nothing at run time.
template <class Raw, class Layout, row_kind Kind>
inline constexpr Raw kind_mask = bits_of_kind<Raw>(typename Layout::rows{}, Kind);
template <class Raw, class Layout, row_access Access>
inline constexpr Raw access_mask = bits_of_access<Raw>(typename Layout::rows{}, Access);

/// The bits of an address row at and above `max_phys_addr`.
template <class Raw>
constexpr auto bits_above(unsigned msb, unsigned lsb, unsigned lowest_address_bit,
                          unsigned max_phys_addr) noexcept -> Raw {
    unsigned const first = max_phys_addr < lowest_address_bit
                               ? lsb
                               : max_phys_addr - lowest_address_bit + lsb;
    return first <= msb ? bit_mask<Raw>(msb, first) : Raw{};
}

template <class... Rows>
constexpr auto has_address_row(type_list<Rows...>) noexcept -> bool {
    bool const ends[] = {Rows::ends_at_max_phys_addr...};
    for (bool const one : ends) {
        if (one) { return true; }
    }
    return false;
}

/// The bits of all address rows at and above `max_phys_addr`.
template <class Raw, class... Rows>
constexpr auto address_bits_above(type_list<Rows...>, unsigned max_phys_addr) noexcept -> Raw {
    if constexpr (has_address_row(type_list<Rows...>{})) {
        return static_cast<Raw>(
            (Raw{} | ... |
             (Rows::ends_at_max_phys_addr
                  ? bits_above<Raw>(Rows::msb, Rows::lsb, Rows::lowest_address_bit, max_phys_addr)
                  : Raw{})));
    } else {
        return Raw{};
    }
}

/// True if no two of these bit ranges overlap.
template <size_t Count>
constexpr auto are_disjoint(unsigned const (&msb)[Count], unsigned const (&lsb)[Count]) noexcept
    -> bool {
    for (size_t i = 0; i < Count; ++i) {
        for (size_t k = 0; k < i; ++k) {
            if (msb[i] >= lsb[k] && msb[k] >= lsb[i]) { return false; }
        }
    }
    return true;
}

}  // namespace detail

template <class Row, class Word>
concept row_of = __is_base_of(Row, typename Word::layout);

template <class Field, class Word>
concept field_of = Field::kind == row_kind::field && __is_base_of(Field, typename Word::layout);

// ------------------------------------------------------------------------------------ words

/// A hardware word: its raw bits and nothing else.
///
/// `Derived` declares the fields and `struct layout : bit_layout<...>`. `Access` applies to the
/// fields that do not set their own.
///
/// `word{0x2109}` makes one from its bits. A designator, as in `word{.raw = 0x2109}`, cannot name a
/// member of a base.
template <class Derived, class Raw, row_access Access = row_access::plain>
struct bit_word {
    using raw_type = Raw;
    static constexpr row_access access = Access;
    Raw raw{};

    constexpr bit_word(Raw bits = {}) noexcept : raw{bits} {}

    friend constexpr auto operator==(bit_word const& one, bit_word const& two) noexcept -> bool {
        return one.raw == two.raw;
    }

    /// The value of a field.
    template <class Field>
    [[nodiscard]] constexpr auto get() const noexcept -> typename Field::value_type {
        static_assert(__is_base_of(Field, typename Derived::layout), "the word has no such field");
        if constexpr (Field::width == 1) {
            // Tests the bit without a shift, so that compilers can merge tests of several flags.
            bool const is_set = (raw & detail::bit_mask<Raw>(Field::msb, Field::lsb)) != Raw{};
            return Field::from_number(is_set ? 1 : 0);
        } else {
            return Field::from_number(detail::bits_between(raw, Field::msb, Field::lsb));
        }
    }

    /// Returns the word with the named fields changed. All other bits keep their value.
    template <class... Fields>
    [[nodiscard]] constexpr auto with(Fields... fields) const noexcept -> Derived {
        static_assert((__is_base_of(Fields, typename Derived::layout) && ...),
                      "the word has no such field");
        if constexpr (sizeof...(Fields) > 1) {
            static_assert(detail::are_disjoint({Fields::msb...}, {Fields::lsb...}),
                          "a field is named twice");
        }
        constexpr Raw named = (Raw{} | ... | detail::bit_mask<Raw>(Fields::msb, Fields::lsb));
        return Derived{static_cast<Raw>(
            (raw & static_cast<Raw>(~named)) |
            (Raw{} | ... | detail::shifted_left<Raw>(fields.number(), Fields::lsb)))};
    }

    /// The reserved bits, including the address bits at and above `max_phys_addr`.
    [[nodiscard]] static constexpr auto reserved_mask(unsigned max_phys_addr = 64) noexcept -> Raw {
        using layout = typename Derived::layout;
        return static_cast<Raw>(
            detail::kind_mask<Raw, layout, row_kind::reserved> |
            detail::address_bits_above<Raw>(typename layout::rows{}, max_phys_addr));
    }

    /// The bits that ignore writes.
    [[nodiscard]] static constexpr auto write_ignored_mask() noexcept -> Raw {
        return detail::access_mask<Raw, typename Derived::layout, row_access::write_ignored>;
    }

    /// The bits that read as 1 regardless of the written value.
    [[nodiscard]] static constexpr auto forced_1_mask() noexcept -> Raw {
        return detail::access_mask<Raw, typename Derived::layout, row_access::forced_1>;
    }

    /// The reserved bits that are 1.
    [[nodiscard]] constexpr auto reserved_bits_set(unsigned max_phys_addr = 64) const noexcept
        -> Raw {
        return static_cast<Raw>(raw & reserved_mask(max_phys_addr));
    }
};

/// A word that software can only read.
template <class Derived, class Raw>
using read_only_word = bit_word<Derived, Raw, row_access::read_only>;

// ------------------------------------------------------------------------------------ reflection

/// A row of a word, as data.
struct row_info {
    text name;  ///< the field's name, or `reserved` or `other`
    unsigned msb;
    unsigned lsb;
    row_kind kind;
    row_access access;
    bool is_address;
    unsigned lowest_address_bit;  ///< the address bit at `lsb`; 0 if the field is no address
};

template <size_t Count>
struct row_table {
    row_info rows[Count];

    [[nodiscard]] constexpr auto begin() const noexcept -> row_info const* { return rows; }
    [[nodiscard]] constexpr auto end() const noexcept -> row_info const* { return rows + Count; }
    [[nodiscard]] static constexpr auto size() noexcept -> size_t { return Count; }
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> row_info const& {
        return rows[i];
    }
};

namespace detail {

template <class Row>
constexpr auto name_of_row() noexcept -> text {
    if constexpr (Row::kind == row_kind::reserved) {
        return "reserved";
    } else if constexpr (Row::kind == row_kind::other) {
        return "other";
    } else {
        return name_of<Row>();
    }
}

/// The access of a row: its own, or else the default of the word's fields.
template <class Word, class Row>
constexpr auto access_of_row() noexcept -> row_access {
    return Row::access == row_access::plain && Row::kind == row_kind::field ? Word::access
                                                                            : Row::access;
}

template <class Word, class... Rows>
constexpr auto describe_rows(type_list<Rows...>) noexcept -> row_table<sizeof...(Rows)> {
    return {{{name_of_row<Rows>(), Rows::msb, Rows::lsb, Rows::kind, access_of_row<Word, Rows>(),
              Rows::is_address, Rows::lowest_address_bit}...}};
}

}  // namespace detail

/// All rows of a word from bit 0 up, with names and positions.
template <class Word>
[[nodiscard]] constexpr auto rows_of() noexcept {
    return detail::describe_rows<Word>(typename Word::layout::rows{});
}

}  // namespace ptspec
