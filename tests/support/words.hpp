// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <boost/hana.hpp>

namespace ptspec::test {

namespace detail {

template <class... Words>
constexpr auto tuple_of(type_list<Words...>) {
    return boost::hana::tuple_t<Words...>;
}

}  // namespace detail

/// All words of registers and tables. PT state is not one, although it has rows.
/// tests/laws_words.cpp checks the laws for all words; tests/registers_csv.cpp compares each word,
/// and this list, with the catalogue.
inline constexpr auto all_words = boost::hana::concat(
    boost::hana::filter(detail::tuple_of(reg::all{}),
                        [](auto word) {
                            using type = typename decltype(word)::type;
                            return boost::hana::bool_c<!same_as<type, reg::xsave_pt_state>>;
                        }),
    boost::hana::tuple_t<topa::entry, topa::end_entry>);

/// A run of ones, set bit by bit.
constexpr auto ones(unsigned msb, unsigned lsb) -> uint64_t {
    uint64_t mask = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
        if (lsb <= bit && bit <= msb) { mask += uint64_t{1} << bit; }
    }
    return mask;
}

}  // namespace ptspec::test
