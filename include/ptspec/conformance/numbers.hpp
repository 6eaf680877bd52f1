// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/conformance/fields.hpp>

/// Compares MSR indexes, encodings of VMCS fields, offsets and CPUID leaves.
namespace ptspec {

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

}  // namespace ptspec
