// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/conformance/detail/difference.hpp>

/// Compares masks, shifts, bit numbers and values with fields.
namespace ptspec {

/// A number in a definition of other code.
template <class Number>
concept defined_number = integral<Number> || enumeration<Number>;

namespace detail {

template <defined_number Number>
constexpr auto number_of(Number number) noexcept -> uint64_t {
    return static_cast<uint64_t>(number);
}

/// True if bits `your_msb` to `your_lsb` are the bits of a field.
constexpr auto bits_are(uint64_t msb, uint64_t lsb, uint64_t your_msb, uint64_t your_lsb) noexcept
    -> bool {
    if (your_msb == msb && your_lsb == lsb) { return true; }
    if (__builtin_is_constant_evaluated()) {
        your_lsb != lsb ? stop_at_bit(your_lsb, difference::begins_elsewhere)
                        : stop_at_bit(your_msb, difference::ends_elsewhere);
    }
    return false;
}

constexpr auto mask_is(unsigned msb, unsigned lsb, uint64_t mask) noexcept -> bool {
    if (mask == 0) {
        if (__builtin_is_constant_evaluated()) { build_error::the_definition_has_no_bit(); }
        return false;
    }
    unsigned const your_msb = highest_bit(mask);
    unsigned const your_lsb = lowest_bit(mask);
    return bits_are(msb, lsb, your_msb, your_lsb) &&
           same_bits(bit_mask<uint64_t>(your_msb, your_lsb), mask, difference::gap);
}

constexpr auto shift_is(unsigned lsb, uint64_t shift) noexcept -> bool {
    return same_number<build_error::the_shift_is_not_the_lowest_bit_of_the_field>(lsb, shift);
}

}  // namespace detail

/// A mask or a value that is not shifted to its place yet: `unshifted{0xF}`.
struct unshifted {
    uint64_t number;

    constexpr explicit unshifted(defined_number auto value) noexcept
        : number{detail::number_of(value)} {}
};

/// A definition by bit numbers: `at_bits{17, 14}`, or `at_bits{1}` for one bit.
struct at_bits {
    uint64_t msb;
    uint64_t lsb;

    constexpr explicit at_bits(defined_number auto bit) noexcept
        : msb{detail::number_of(bit)}, lsb{detail::number_of(bit)} {}
    constexpr at_bits(defined_number auto highest, defined_number auto lowest) noexcept
        : msb{detail::number_of(highest)}, lsb{detail::number_of(lowest)} {}
};

/// True if a mask at its position in the word has exactly the bits of a field.
template <detail::bit_row Row>
[[nodiscard]] constexpr auto conforms(defined_number auto mask) noexcept -> bool {
    static_assert(Row::msb < 64, "a mask has 64 bits: use at_bits{msb, lsb}");
    return detail::mask_is(Row::msb, Row::lsb, detail::number_of(mask));
}

/// True if a mask at its position in the word, and the shift of its values, match a field.
template <detail::bit_row Row>
[[nodiscard]] constexpr auto conforms(defined_number auto mask, defined_number auto shift) noexcept
    -> bool {
    return conforms<Row>(mask) && detail::shift_is(Row::lsb, detail::number_of(shift));
}

/// True if a mask before the shift, and the shift, match a field.
template <detail::bit_row Row>
[[nodiscard]] constexpr auto conforms(unshifted mask, defined_number auto shift) noexcept -> bool {
    return detail::mask_is(Row::width - 1, 0, mask.number) &&
           detail::shift_is(Row::lsb, detail::number_of(shift));
}

/// True if bit numbers match a field.
template <detail::bit_row Row>
[[nodiscard]] constexpr auto conforms(at_bits place) noexcept -> bool {
    static_assert(Row::msb < 128, "a row of a longer word has no bit numbers here");
    return detail::bits_are(Row::msb, Row::lsb, place.msb, place.lsb);
}

/// The same four functions for an address field whose definition ends below MAXPHYADDR.
template <detail::address_row Row>
[[nodiscard]] constexpr auto conforms(defined_number auto mask, max_phys_addr width) noexcept
    -> bool {
    return detail::mask_is(detail::highest_bit_below<Row>(width), Row::lsb,
                           detail::number_of(mask));
}
template <detail::address_row Row>
[[nodiscard]] constexpr auto conforms(defined_number auto mask, defined_number auto shift,
                                      max_phys_addr width) noexcept -> bool {
    return conforms<Row>(mask, width) && detail::shift_is(Row::lsb, detail::number_of(shift));
}
template <detail::address_row Row>
[[nodiscard]] constexpr auto conforms(unshifted mask, defined_number auto shift,
                                      max_phys_addr width) noexcept -> bool {
    return detail::mask_is(detail::highest_bit_below<Row>(width) - Row::lsb, 0, mask.number) &&
           detail::shift_is(Row::lsb, detail::number_of(shift));
}
template <detail::address_row Row>
[[nodiscard]] constexpr auto conforms(at_bits place, max_phys_addr width) noexcept -> bool {
    return detail::bits_are(detail::highest_bit_below<Row>(width), Row::lsb, place.msb, place.lsb);
}

namespace detail {

constexpr auto value_is(uint64_t ours, uint64_t yours, uint64_t mask) noexcept -> bool {
    if (ours == yours) { return true; }
    if (__builtin_is_constant_evaluated()) {
        uint64_t const outside = yours & ~mask;
        outside != 0 ? stop_at_bit(lowest_bit(outside), difference::bit_outside)
                     : build_error::the_definition_is_another_value_of_the_field();
    }
    return false;
}

}  // namespace detail

/// True if a number is a field's value in its place in the word:
/// `conforms_value(ctl::PSBFreq{3}, RTIT_CTL_PSB_16K)`.
template <detail::field_row Field>
[[nodiscard]] constexpr auto conforms_value(Field value, defined_number auto number) noexcept
    -> bool {
    static_assert(Field::msb < 64);
    return detail::value_is(value.number() << Field::lsb, detail::number_of(number),
                            detail::field_mask<Field>);
}

/// True if a number is the encoding of a field's value.
template <detail::field_row Field>
[[nodiscard]] constexpr auto conforms_value(Field value, unshifted encoding) noexcept -> bool {
    return detail::value_is(value.number(), encoding.number, low_bits(Field::width));
}

/// True if a number, or an enumerator of another enumeration, has the value of an enumerator.
template <enumeration Enum>
[[nodiscard]] constexpr auto conforms_value(Enum enumerator, defined_number auto number) noexcept
    -> bool {
    return detail::same_number<build_error::the_enumerator_differs>(detail::number_of(enumerator),
                                                                    detail::number_of(number));
}

}  // namespace ptspec
