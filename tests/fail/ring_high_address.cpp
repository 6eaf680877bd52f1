// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 1,
// expect: an_address_must_lie_below_the_physical_width
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto table = topa::ring({0x1000, {{40}}}, topa::region{0x10'0000},
                                  topa::region{0x80'0000'0000});
#else
constexpr auto table = topa::ring({0x1000, {{39}}}, topa::region{0x10'0000},
                                  topa::region{0x80'0000'0000});
#endif
