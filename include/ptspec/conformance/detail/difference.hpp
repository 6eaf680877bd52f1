// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/base/bits.hpp>

/// The differences between a definition of other code and that of ptspec, as errors.
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

}  // namespace detail

}  // namespace ptspec
