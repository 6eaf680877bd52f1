// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/conformance/fields.hpp>

/// Compares the bit-fields of structs with fields.
namespace ptspec {

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

}  // namespace ptspec
