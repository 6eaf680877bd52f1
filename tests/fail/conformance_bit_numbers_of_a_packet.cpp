// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_ends_at_another_bit
// expect: Bit = 127] | another_bit<127U>
#include <ptspec/conformance.hpp>
#include <ptspec/packet/psb.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms<packet::psb::Low>(at_bits{63, 16}));
#else
static_assert(conforms<packet::psb::Low>(at_bits{127, 16}));
#endif
