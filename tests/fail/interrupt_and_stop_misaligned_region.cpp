// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 0,
// expect: a_region_must_be_aligned_to_its_own_size
#include <ptspec/topa/builders.hpp>

using namespace ptspec;
using topa::region_size;

#ifndef SHOULD_FAIL
constexpr auto table = topa::interrupt_and_stop(
    0x1000, topa::region{0x2'0000, region_size::size_64K}, topa::region{0x10'0000});
#else
constexpr auto table = topa::interrupt_and_stop(
    0x1000, topa::region{0x2'8000, region_size::size_64K}, topa::region{0x10'0000});
#endif
