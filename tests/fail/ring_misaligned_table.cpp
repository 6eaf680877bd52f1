// SPDX-License-Identifier: BSL-1.0
// expect: a_table_must_begin_at_a_multiple_of_4_KB
#include <ptspec/topa/table.hpp>

using namespace ptspec;
using topa::region_size;

#ifndef SHOULD_FAIL
constexpr auto ring = topa::ring(0x1000, topa::region{0x10'0000});
#else
constexpr auto ring = topa::ring(0x1080, topa::region{0x10'0000});
#endif
