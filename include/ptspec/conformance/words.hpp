// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>
#include <ptspec/conformance/bit_fields.hpp>

/// Compares the definitions of all fields of a word.
namespace ptspec {

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

}  // namespace ptspec
