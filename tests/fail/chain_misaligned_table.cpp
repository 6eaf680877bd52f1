// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 2,
// expect: a_table_must_begin_at_a_multiple_of_4_KB
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto chain = topa::chain(
    topa::table_at(0x1000, topa::region{0x10'0000}, topa::region{0x20'0000}),
    topa::table_at(0x2000, topa::region{0x30'0000}));
#else
constexpr auto chain = topa::chain(
    topa::table_at(0x1000, topa::region{0x10'0000}, topa::region{0x20'0000}),
    topa::table_at(0x2080, topa::region{0x30'0000}));
#endif
