// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>

/// Bit ranges and their roles in a word: fields, reserved bits, opcodes.
///
/// A row is a type. Compilers print type names, so an error message names the field; and a value of
/// a field's type means "this field with this value". Bit ranges are written `msb, lsb`.
namespace ptspec {

/// Functions that are declared and never defined. A call in a constant expression stops the build,
/// and the compiler prints the function's name as the error message.
namespace build_error {
void value_does_not_fit_in_the_field();
void address_has_bits_outside_the_field();
void a_run_time_number_needs_wrapped_or_checked();
}  // namespace build_error

// ------------------------------------------------------------------------------------ rows

/// The role of a row in a layout.
enum class row_kind : uint8_t {
    field,     ///< software reads and writes it
    reserved,  ///< reads 0; the word defines the effect of writing 1
    other,     ///< not part of Intel PT: preserved, never reserved
    fixed,     ///< opcode bits of a packet: a different value is a different packet
};

/// The effect of a write on a bit.
enum class row_access : uint8_t {
    plain,          ///< the written value is stored
    write_ignored,  ///< the old value stays
    forced_1,       ///< reads 1 regardless of the written value
    read_only,      ///< only the processor writes it
};

/// The decode result when a fixed row holds a different value.
enum class mismatch : uint8_t {
    nothing,     ///< the row is not fixed
    bad_opcode,  ///< the bytes are a different packet
    reserved,    ///< the value is reserved
    bad_packet,  ///< the packet is corrupt
};

/// The defaults of a row.
struct row_defaults {
    static constexpr row_kind kind = row_kind::field;
    static constexpr row_access access = row_access::plain;
    static constexpr bool is_address = false;
    static constexpr bool ends_at_max_phys_addr = false;
    static constexpr unsigned lowest_address_bit = 0;
    static constexpr bool selects_the_payload = false;
    static constexpr mismatch on_mismatch = mismatch::nothing;
    static constexpr uint64_t fixed_value = 0;
};

template <unsigned Msb, unsigned Lsb = Msb>
struct bit_range : row_defaults {
    static_assert(Msb >= Lsb, "a bit range is written msb, lsb");
    static constexpr unsigned msb = Msb;
    static constexpr unsigned lsb = Lsb;
    static constexpr unsigned width = Msb - Lsb + 1;
};

template <unsigned Msb, unsigned Lsb = Msb>
struct reserved : bit_range<Msb, Lsb> {
    static constexpr row_kind kind = row_kind::reserved;
};

/// Bits of the same register that Intel PT does not use.
template <unsigned Msb, unsigned Lsb = Msb>
struct other : bit_range<Msb, Lsb> {
    static constexpr row_kind kind = row_kind::other;
};

/// Opcode bits. A different value is a different packet.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct fixed : bit_range<Msb, Lsb> {
    static_assert(Msb < Lsb + 64 && Value <= low_bits(Msb - Lsb + 1));
    static constexpr row_kind kind = row_kind::fixed;
    static constexpr mismatch on_mismatch = mismatch::bad_opcode;
    static constexpr uint64_t fixed_value = Value;
};

/// Fixed bits that select a packet among those with the same opcode. Other values are reserved.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct leaf : fixed<Msb, Lsb, Value> {
    static constexpr mismatch on_mismatch = mismatch::reserved;
};

/// Fixed bits after the opcode. A different value means that the packet is corrupt.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct pattern : fixed<Msb, Lsb, Value> {
    static constexpr mismatch on_mismatch = mismatch::bad_packet;
};

/// The decoded value of an encoding, with its unit: `{8, "crystal cycles"}`. An empty unit means
/// that there is no decoded value.
///
/// A field whose number is an encoding declares `static constexpr auto amount(uint64_t encoding)
/// noexcept -> quantity`.
struct quantity {
    uint64_t count = 0;
    text unit{};
};

// ------------------------------------------------------------------------------------ fields

namespace detail {

/// The value of a literal. A run-time number stops the build.
template <integral Number>
constexpr auto known(Number const& literal) -> uint64_t {
    if (!is_known(literal)) { build_error::a_run_time_number_needs_wrapped_or_checked(); }
    return static_cast<uint64_t>(literal);
}

template <integral Number>
constexpr auto is_negative(Number number) noexcept -> bool {
    if constexpr (static_cast<Number>(-1) < Number{}) {
        return number < 0;
    } else {
        return false;
    }
}

}  // namespace detail

/// A run-time number, truncated to the bits that fit the field: `MTCFreq{wrapped{n}}`.
struct wrapped {
    uint64_t value;
};

/// A constant that may depend on a template parameter: `MTCFreq{constant<N>}`.
template <uint64_t Value>
struct constant_number {};
template <uint64_t Value>
inline constexpr constant_number<Value> constant{};

namespace detail {

/// The members of a field that do not depend on its position. Not a template, so it is compiled
/// once for all fields.
struct number_value {
    using value_type = uint64_t;
    value_type value;

    static constexpr auto from_number(uint64_t number) noexcept -> value_type { return number; }
    constexpr auto number() const noexcept -> uint64_t { return value; }
};
struct flag_value {
    using value_type = bool;
    value_type value;

    static constexpr auto fits(uint64_t number) noexcept -> bool { return number <= 1; }
    static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return number != 0;
    }
    constexpr auto number() const noexcept -> uint64_t { return value ? 1 : 0; }
};

}  // namespace detail

/// A field that holds a number.
template <unsigned Msb, unsigned Lsb = Msb>
struct field : bit_range<Msb, Lsb>, detail::number_value {
    static_assert(Msb < Lsb + 64);

    [[nodiscard]] static constexpr auto fits(uint64_t number) noexcept -> bool {
        return number <= low_bits(Msb - Lsb + 1);
    }

    consteval field(integral auto const& literal) : number_value{detail::known(literal)} {
        if (detail::is_negative(literal) || !fits(value)) {
            build_error::value_does_not_fit_in_the_field();
        }
    }
    constexpr field(wrapped number) noexcept
        : number_value{number.value & low_bits(Msb - Lsb + 1)} {}
    template <uint64_t Number>
        requires(fits(Number))
    constexpr field(constant_number<Number>) noexcept : number_value{Number} {}
};

/// A field of one bit.
template <unsigned Position>
struct flag : bit_range<Position>, detail::flag_value {
    constexpr flag(bool on) noexcept : flag_value{on} {}
    template <class Other>
    flag(Other) = delete;  // a flag is true or false
    constexpr flag(wrapped number) noexcept : flag_value{(number.value & 1) != 0} {}
};

/// A field whose encodings are named by an enumeration.
template <unsigned Msb, unsigned Lsb, enumeration Enum>
struct enumerated : bit_range<Msb, Lsb> {
    using value_type = Enum;
    value_type value;

    [[nodiscard]] static constexpr auto fits(uint64_t number) noexcept -> bool {
        return number <= low_bits(Msb - Lsb + 1);
    }
    [[nodiscard]] static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return static_cast<value_type>(number);
    }
    [[nodiscard]] constexpr auto number() const noexcept -> uint64_t {
        return static_cast<uint64_t>(value) & low_bits(Msb - Lsb + 1);
    }

    constexpr enumerated(Enum encoding) noexcept : value{encoding} {}
    constexpr enumerated(wrapped number) noexcept
        : value{static_cast<value_type>(number.value & low_bits(Msb - Lsb + 1))} {}
};

/// A field that holds the upper bits of an address. Its value is the whole address, with the bits
/// below `LowestAddressBit` 0. The address bits at and above MAXPHYADDR are reserved.
template <unsigned Msb, unsigned Lsb, unsigned LowestAddressBit = Lsb>
struct address_field : bit_range<Msb, Lsb> {
    using value_type = uint64_t;
    value_type value;
    static constexpr bool is_address = true;
    static constexpr bool ends_at_max_phys_addr = true;
    static constexpr unsigned lowest_address_bit = LowestAddressBit;
    static constexpr uint64_t address_mask = low_bits(Msb - Lsb + 1) << LowestAddressBit;

    [[nodiscard]] static constexpr auto fits(uint64_t address) noexcept -> bool {
        return (address & ~address_mask) == 0;
    }
    [[nodiscard]] static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return number << LowestAddressBit;
    }
    [[nodiscard]] constexpr auto number() const noexcept -> uint64_t {
        return value >> LowestAddressBit;
    }

    consteval address_field(integral auto const& literal) : value{detail::known(literal)} {
        if (detail::is_negative(literal) || !fits(value)) {
            build_error::address_has_bits_outside_the_field();
        }
    }
    constexpr address_field(wrapped address) noexcept : value{address.value & address_mask} {}
    template <uint64_t Address>
        requires(fits(Address))
    constexpr address_field(constant_number<Address>) noexcept : value{Address} {}
};

/// A field whose value the processor sets: writes are ignored.
template <class Field>
struct write_ignored : Field {
    static constexpr row_access access = row_access::write_ignored;
};

/// A field that reads as all ones regardless of the written value.
template <class Field>
struct forced_1 : Field {
    static constexpr row_access access = row_access::forced_1;
};

/// A field that only the processor writes.
template <class Field>
struct read_only : Field {
    static constexpr row_access access = row_access::read_only;
};

/// An address field without reserved bits at and above MAXPHYADDR.
template <class Field>
struct unbounded : Field {
    static constexpr bool ends_at_max_phys_addr = false;
};

/// A packet field that selects the payload size.
template <class Field>
struct selects_payload : Field {
    static constexpr bool selects_the_payload = true;
};

/// The result of `checked`: a field, valid only if `has_value` is true.
template <class Field>
struct checked_field {
    bool has_value;
    Field field;

    constexpr explicit operator bool() const noexcept { return has_value; }
};

/// Converts a run-time number to a field and checks the range: `if (auto f =
/// checked<ctl::MTCFreq>(n))`.
template <class Field>
[[nodiscard]] constexpr auto checked(uint64_t number) noexcept -> checked_field<Field> {
    return {Field::fits(number), Field{wrapped{number}}};
}

}  // namespace ptspec
