// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 0,
// expect: a_table_must_have_an_output_region
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto table = topa::stop_on_full(0x1000, topa::region{0x10'0000});
#else
constexpr auto table = topa::stop_on_full(0x1000);
#endif
