// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 1,
// expect: this_processor_takes_one_region_so_use_single_entry
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto table = topa::stop_on_full({0x1000, {.many_entries = true}},
                                          topa::region{0x10'0000});
#else
constexpr auto table = topa::stop_on_full({0x1000, {.many_entries = false}},
                                          topa::region{0x10'0000});
#endif
