// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 1,
// expect: a_table_must_begin_at_a_multiple_of_4_KB
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto table = topa::linked(0x1000, 0x2000, topa::region{0x10'0000});
#else
constexpr auto table = topa::linked(0x1000, 0x2800, topa::region{0x10'0000});
#endif
