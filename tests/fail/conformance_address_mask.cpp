// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_ends_at_another_bit
// expect: Bit = 51] | another_bit<51U>
#include <ptspec/conformance.hpp>
#include <ptspec/topa/entry.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms<topa::entry::Base>(0x000F'FFFF'FFFF'F000, max_phys_addr{52}));
#else
static_assert(conforms<topa::entry::Base>(0x000F'FFFF'FFFF'F000));
#endif
