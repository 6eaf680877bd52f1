// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/base/bytes.hpp>
#include <ptspec/packet/packet_word.hpp>
#include <ptspec/base/word.hpp>

/// Compares the definitions of other code, such as the macros of a driver, with those of ptspec:
///
///     static_assert(conforms<ctl::CYCEn>(RTIT_CTL_CYCEN));
///
/// In a constant expression a difference stops the build; the message names the field, the bit and
/// the difference. At run time the functions return false.
///
/// A number is an integer or an enumerator. A negative one is sign-extended, as `1 << 31` is when
/// it is combined with a 64-bit word.
namespace ptspec {

namespace build_error {
template <unsigned Bit>
void the_definition_begins_at_another_bit();
template <unsigned Bit>
void the_definition_ends_at_another_bit();
template <unsigned Bit>
void the_definition_has_a_gap();
template <unsigned Bit>
void the_definition_has_a_bit_outside_the_field();
template <unsigned Bit>
void the_definition_lacks_a_bit_of_the_field();
template <unsigned Bit>
void the_member_moves_a_bit();
template <unsigned Bit>
void the_opcode_differs();
template <unsigned Bit>
void the_opcode_mask_differs();
void the_definition_has_no_bit();
void the_definition_is_another_value_of_the_field();
void the_shift_is_not_the_lowest_bit_of_the_field();
void the_member_is_signed();
void a_union_is_compared_at_run_time_or_by_its_named_member();
void only_gcc_reads_bit_fields_in_constant_expressions();
void the_number_of_opcode_bytes_differs();
void the_length_differs();
void the_address_differs();
void the_cpuid_leaf_differs();
void the_cpuid_subleaf_differs();
void the_enumerator_differs();
}  // namespace build_error

namespace detail {

enum class difference : uint8_t {
    begins_elsewhere,
    ends_elsewhere,
    gap,
    bit_outside,
    bit_missing,
    bit_moved,
    opcode,
    opcode_mask,
};

/// The errors that name a bit, indexed by it. g++ shows the arguments of a function as they are
/// written and only template arguments as numbers, so the bit is a template argument.
template <class Bits>
struct errors_at;
template <size_t... Bit>
struct errors_at<index_list<Bit...>> {
    using error = void (*)();
    using table = error const[sizeof...(Bit)];
    static constexpr table begins{build_error::the_definition_begins_at_another_bit<Bit>...};
    static constexpr table ends{build_error::the_definition_ends_at_another_bit<Bit>...};
    static constexpr table gap{build_error::the_definition_has_a_gap<Bit>...};
    static constexpr table outside{build_error::the_definition_has_a_bit_outside_the_field<Bit>...};
    static constexpr table missing{build_error::the_definition_lacks_a_bit_of_the_field<Bit>...};
    static constexpr table moved{build_error::the_member_moves_a_bit<Bit>...};
    static constexpr table opcode{build_error::the_opcode_differs<Bit>...};
    static constexpr table opcode_mask{build_error::the_opcode_mask_differs<Bit>...};
};

/// Stops the build with the difference and its bit, which is below 128.
constexpr void stop_at_bit(uint64_t bit, difference kind) {
    using errors = errors_at<make_index_list<128>>;
    switch (kind) {
        case difference::begins_elsewhere: return errors::begins[bit]();
        case difference::ends_elsewhere: return errors::ends[bit]();
        case difference::gap: return errors::gap[bit]();
        case difference::bit_outside: return errors::outside[bit]();
        case difference::bit_missing: return errors::missing[bit]();
        case difference::bit_moved: return errors::moved[bit]();
        case difference::opcode: return errors::opcode[bit]();
        case difference::opcode_mask: return errors::opcode_mask[bit]();
    }
}

/// Compares two numbers. If they differ, returns false, or in a constant expression stops the
/// build. Bit 0 of the numbers is bit `first_bit` of the word.
constexpr auto same_bits(uint64_t ours, uint64_t yours, difference kind,
                         unsigned first_bit = 0) noexcept -> bool {
    if (ours == yours) { return true; }
    if (__builtin_is_constant_evaluated()) {
        stop_at_bit(first_bit + lowest_bit(ours ^ yours), kind);
    }
    return false;
}

/// The same for an error without a bit.
template <void (*Error)()>
constexpr auto same_number(uint64_t ours, uint64_t yours) noexcept -> bool {
    if (ours == yours) { return true; }
    if (__builtin_is_constant_evaluated()) { Error(); }
    return false;
}

template <class Type>
concept bit_row = requires {
    Type::msb;
    Type::lsb;
    Type::kind;
};
template <class Type>
concept fixed_row = bit_row<Type> && Type::kind == row_kind::fixed;
template <class Type>
concept field_row = bit_row<Type> && Type::kind == row_kind::field;

template <class Type>
concept address_row = bit_row<Type> && Type::ends_at_max_phys_addr;

/// The highest bit of an address field below MAXPHYADDR.
template <address_row Row>
constexpr auto highest_bit_below(max_phys_addr width) noexcept -> unsigned {
    return width.bits - 1 - Row::lowest_address_bit + Row::lsb;
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

// ------------------------------------------------------------------------------------ fields

/// A number in a definition of other code.
template <class Number>
concept defined_number = integral<Number> || enumeration<Number>;

namespace detail {

template <defined_number Number>
constexpr auto number_of(Number number) noexcept -> uint64_t {
    return static_cast<uint64_t>(number);
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

// ------------------------------------------------------------------------------------ bit-fields

/// True if the compiler can read bit-fields in a constant expression; no clang can. At run time
/// `conforms_bit_field` works with every compiler.
#if defined(__GNUC__) && !defined(__clang__)
inline constexpr bool reads_constant_bit_fields = true;
#else
inline constexpr bool reads_constant_bit_fields = false;
#endif

namespace detail {

template <class Getter, class Result, class Struct>
auto parameter_of(Result (Getter::*)(Struct) const) -> bare_t<Struct>;

/// The struct whose bit number `bit` is 1 and all others are 0, in the order of x86.
template <class Struct>
constexpr auto struct_with_bit(unsigned bit) noexcept -> Struct {
    byte_array<sizeof(Struct)> bytes{};
    bytes.data()[bit / 8] = static_cast<uint8_t>(1U << bit % 8);
    return __builtin_bit_cast(Struct, bytes);
}

/// True if a member reads `yours` when bit number `bit` of the struct is 1.
constexpr auto member_reads(uint64_t msb, uint64_t lsb, uint64_t bit, uint64_t yours) noexcept
    -> bool {
    uint64_t const ours = bit < lsb || bit > msb ? 0 : uint64_t{1} << (bit - lsb);
    if (ours == yours) { return true; }
    if (__builtin_is_constant_evaluated()) {
        if (bit == msb && yours == 0 - ours) { build_error::the_member_is_signed(); }
        stop_at_bit(bit, ours == 0    ? difference::bit_outside
                         : yours == 0 ? difference::bit_missing
                                      : difference::bit_moved);
    }
    return false;
}

/// True if a member has the bits `msb` to `Field::lsb`.
template <field_row Field, class Getter>
constexpr auto is_member(Getter get, unsigned msb) noexcept -> bool {
    using type = decltype(parameter_of(&Getter::operator()));
    static_assert(__is_trivially_copyable(type),
                  "the lambda takes a struct, or a union of structs");
    static_assert(Field::msb < 8 * sizeof(type), "the struct ends below the field");
    if (__builtin_is_constant_evaluated()) {
        if (!reads_constant_bit_fields) {
            build_error::only_gcc_reads_bit_fields_in_constant_expressions();
        } else if (__is_union(type)) {
            build_error::a_union_is_compared_at_run_time_or_by_its_named_member();
        }
    }
    for (unsigned bit = 0; bit < 8 * sizeof(type); ++bit) {
        auto const value = get(struct_with_bit<type>(bit));
        if (!member_reads(msb, Field::lsb, bit, number_of(value))) { return false; }
    }
    return true;
}

}  // namespace detail

/// True if a member has the position and the width of a field. The member is what a lambda returns:
///
///     conforms_bit_field<ctl::MTCFreq>([](my_rtit_ctl const& it) { return it.mtc_freq; })
///
/// The lambda takes the struct of the word. Where the word is a union of a number and a struct, it
/// takes the struct (`decltype(my_word::bits)`), or, where the struct is anonymous, the union.
/// A constant expression reads only the member of a union that was written: for a union, put the
/// call into a test, not into a static_assert.
///
/// Errors: in a constant expression, for a union,
///         a_union_is_compared_at_run_time_or_by_its_named_member; with clang,
///         only_gcc_reads_bit_fields_in_constant_expressions: see `reads_constant_bit_fields`.
template <detail::field_row Field, class Getter>
[[nodiscard]] constexpr auto conforms_bit_field(Getter get) noexcept -> bool {
    return detail::is_member<Field>(get, Field::msb);
}

/// The same for an address field whose member ends below MAXPHYADDR, such as `base : 40`.
template <detail::field_row Field, class Getter>
    requires(detail::address_row<Field>)
[[nodiscard]] constexpr auto conforms_bit_field(Getter get, max_phys_addr width) noexcept -> bool {
    return detail::is_member<Field>(get, detail::highest_bit_below<Field>(width));
}

// ------------------------------------------------------------------------------------ whole words

/// Fields that `conforms_all` counts as defined, and whether their definitions conform.
template <class... Fields>
struct named_fields {
    bool conform;
};

/// A field with its definition, in any form that `conforms` takes.
template <detail::field_row Field, class... Definition>
[[nodiscard]] constexpr auto field_is(Definition... definition) noexcept -> named_fields<Field> {
    return {conforms<Field>(definition...)};
}

/// A field with the member of a struct, in the forms that `conforms_bit_field` takes.
template <detail::field_row Field, class Getter, class... Width>
[[nodiscard]] constexpr auto member_is(Getter get, Width... width) noexcept -> named_fields<Field> {
    return {conforms_bit_field<Field>(get, width...)};
}

/// Fields without a definition.
template <detail::field_row... Fields>
[[nodiscard]] constexpr auto left_out() noexcept -> named_fields<Fields...> {
    return {true};
}

namespace detail {

template <class Field, class Word>
struct named_in {
    static_assert(field_of<Field, Word>, "the word has no such field");
};
template <class Field, unsigned Count>
struct definitions_of {
    static_assert(Count != 0, "a field has no definition: name it, or put it into left_out");
    static_assert(Count < 2, "a field is named twice");
};

template <class Word, class... Fields>
constexpr void check_names(named_fields<Fields...>) noexcept {
    (void)(size_t{0} + ... + sizeof(named_in<Fields, Word>));
}
template <class Row, class... Fields>
constexpr auto times_named(named_fields<Fields...>) noexcept -> unsigned {
    return (0U + ... + (same_as<Row, Fields> ? 1U : 0U));
}
template <class Row, class... Named>
constexpr void check_count() noexcept {
    if constexpr (Row::kind == row_kind::field) {
        (void)sizeof(definitions_of<Row, (0U + ... + times_named<Row>(Named{}))>);
    }
}
template <class... Named, class... Rows>
constexpr void check_counts(type_list<Rows...>) noexcept {
    (check_count<Rows, Named...>(), ...);
}

}  // namespace detail

/// True if the definitions of all fields of a word conform. Every field must be named once:
///
///     conforms_all<reg::ia32_rtit_cr3_match>(field_is<cr3_match::CR3>(MY_CR3_MASK))
///
/// Errors: the build stops for a field that is not named, is named twice, or is of another word.
template <class Word, class... Named>
[[nodiscard]] constexpr auto conforms_all(Named... fields) noexcept -> bool {
    (detail::check_names<Word>(fields), ...);
    detail::check_counts<Named...>(typename Word::layout::rows{});
    return (true && ... && fields.conform);
}

// ------------------------------------------------------------------------------------ numbers

namespace detail {

constexpr auto address_is(uint64_t ours, uint64_t yours) noexcept -> bool {
    return same_number<build_error::the_address_differs>(ours, yours);
}

/// Converts a plain number that selects a register to the type of the parameter.
template <class Selector>
constexpr auto converted(Selector selector) noexcept {
    if constexpr (integral<Selector>) {
        return static_cast<unsigned>(selector);
    } else {
        return selector;
    }
}

}  // namespace detail

/// True if a number is the MSR index of a register, the encoding of a VMCS field, or the offset of
/// a word in its memory area. `selectors` select one of the registers of a type:
/// `conforms_address<reg::ia32_rtit_addr>(MSR_RTIT_ADDR0_B, 0, reg::range_end::b)`.
template <class Word, class... Selectors>
[[nodiscard]] constexpr auto conforms_address(defined_number auto number,
                                              Selectors... selectors) noexcept -> bool {
    uint64_t const yours = detail::number_of(number);
    if constexpr (sizeof...(Selectors) != 0) {
        return detail::address_is(Word::address(detail::converted(selectors)...), yours);
    } else if constexpr (requires { uint64_t{Word::address}; }) {
        return detail::address_is(Word::address, yours);
    } else if constexpr (requires { uint64_t{Word::encoding}; }) {
        return detail::address_is(Word::encoding, yours);
    } else {
        return detail::address_is(Word::offset, yours);
    }
}

/// True if a number is the leaf of a CPUID word.
template <class Word>
[[nodiscard]] constexpr auto conforms_leaf(defined_number auto leaf) noexcept -> bool {
    return detail::same_number<build_error::the_cpuid_leaf_differs>(Word::leaf,
                                                                    detail::number_of(leaf));
}
/// True if two numbers are the leaf and the sub-leaf of a CPUID word.
template <class Word>
[[nodiscard]] constexpr auto conforms_leaf(defined_number auto leaf,
                                           defined_number auto subleaf) noexcept -> bool {
    return conforms_leaf<Word>(leaf) && detail::same_number<build_error::the_cpuid_subleaf_differs>(
                                            Word::subleaf, detail::number_of(subleaf));
}

// ------------------------------------------------------------------------------------ packets

namespace detail {

template <class Type>
concept packet_struct = requires {
    Type::about;
    Type::head_bytes;
    typename Type::payload_type;
};

/// The bits of the opcode and the leaf. A pattern after the opcode is not included.
template <class Packet>
inline constexpr uint64_t opcode_mask = packet::opcode_of<Packet>().mask |
                                        packet::leaf_mask<Packet>;
template <class Packet>
inline constexpr uint64_t opcode = to_wide(Packet{}.raw).low & opcode_mask<Packet>;

constexpr auto opcode_is(wide_bits packet, size_t min_bytes, size_t max_bytes,
                         byte_view yours) noexcept -> bool {
    if (yours.size() < min_bytes || yours.size() > max_bytes) {
        if (__builtin_is_constant_evaluated()) {
            build_error::the_number_of_opcode_bytes_differs();
        }
        return false;
    }
    auto const bytes = to_le(packet);
    for (unsigned i = 0; i < yours.size(); ++i) {
        if (!same_bits(bytes[i], yours[i], difference::opcode, 8 * i)) { return false; }
    }
    return true;
}

template <class Payload>
inline constexpr unsigned min_payload = 0;
template <unsigned... Sizes>
inline constexpr unsigned min_payload<packet::payload_of<Sizes...>> = [] {
    unsigned min_size = packet::undefined_size;
    ((min_size = Sizes < min_size ? Sizes : min_size), ...);
    return min_size;
}();
template <>
inline constexpr unsigned min_payload<packet::payload_of_block> = 4;

template <class Packet>
inline constexpr unsigned min_length = Packet::head_bytes +
                                       min_payload<typename Packet::payload_type>;

constexpr auto lengths_are(unsigned min_bytes, unsigned max_bytes, uint64_t your_min,
                           uint64_t your_max) noexcept -> bool {
    using build_error::the_length_differs;
    return same_number<the_length_differs>(min_bytes, your_min) &&
           same_number<the_length_differs>(max_bytes, your_max);
}

}  // namespace detail

/// True if a number, little-endian, is the opcode of a packet, with its leaf and all fields 0:
/// `conforms_opcode<packet::cbr>(0x0302)`.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_opcode(defined_number auto number) noexcept -> bool {
    return detail::same_bits(detail::opcode<Packet>, detail::number_of(number),
                             detail::difference::opcode);
}
/// True if a number and a mask are the opcode of a packet: `conforms_opcode<packet::tip>(0x0D,
/// 0x1F)`.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_opcode(defined_number auto number,
                                             defined_number auto mask) noexcept -> bool {
    return detail::same_bits(detail::opcode_mask<Packet>, detail::number_of(mask),
                             detail::difference::opcode_mask) &&
           conforms_opcode<Packet>(number);
}
/// True if bytes are the opcode of a packet, perhaps with following bytes of its head. All fields
/// must be 0.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_opcode(byte_view bytes) noexcept -> bool {
    return detail::opcode_is(to_wide(Packet{}.raw),
                             highest_bit(detail::opcode_mask<Packet>) / 8 + 1, Packet::head_bytes,
                             bytes);
}
template <detail::packet_struct Packet, size_t Count>
[[nodiscard]] constexpr auto conforms_opcode(uint8_t const (&bytes)[Count]) noexcept -> bool {
    return conforms_opcode<Packet>(byte_view{bytes});
}
/// True if a number is the value of a part of the opcode:
/// `conforms_opcode<packet::cbr::Opcode>(0x03)`.
template <detail::fixed_row Row>
[[nodiscard]] constexpr auto conforms_opcode(defined_number auto number) noexcept -> bool {
    return detail::same_bits(Row::fixed_value, detail::number_of(number),
                             detail::difference::opcode);
}

/// True if a number is the length of a packet in bytes.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_length(defined_number auto bytes) noexcept -> bool {
    static_assert(detail::min_length<Packet> == Packet::max_bytes,
                  "the length of this packet varies: give its minimum and its maximum");
    return detail::lengths_are(detail::min_length<Packet>, Packet::max_bytes,
                               detail::number_of(bytes), detail::number_of(bytes));
}
/// True if two numbers are the minimum and the maximum length of a packet in bytes.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_length(defined_number auto min_bytes,
                                             defined_number auto max_bytes) noexcept -> bool {
    return detail::lengths_are(detail::min_length<Packet>, Packet::max_bytes,
                               detail::number_of(min_bytes), detail::number_of(max_bytes));
}

}  // namespace ptspec
