// SPDX-License-Identifier: BSL-1.0
// expect: an_address_must_lie_below_the_physical_width
// expect: check_entry(1,
#include <ptspec/topa/table.hpp>

using namespace ptspec;
using topa::region_size;

#ifndef SHOULD_FAIL
constexpr auto ring = topa::ring(max_phys_addr{40}, 0x1000, topa::region{0x10'0000},
                                 topa::region{0x80'0000'0000});
#else
constexpr auto ring = topa::ring(max_phys_addr{39}, 0x1000, topa::region{0x10'0000},
                                 topa::region{0x80'0000'0000});
#endif
