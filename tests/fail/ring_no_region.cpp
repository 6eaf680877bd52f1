// SPDX-License-Identifier: BSL-1.0
// expect: a_table_must_have_an_output_region
// expect: check_entry(0,
#include <ptspec/topa/table.hpp>

using namespace ptspec;
using topa::region_size;

#ifndef SHOULD_FAIL
constexpr auto ring = topa::ring(0x1000, topa::region{0x10'0000});
#else
constexpr auto ring = topa::ring(0x1000);
#endif
