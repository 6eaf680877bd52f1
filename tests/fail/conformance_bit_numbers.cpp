// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_begins_at_another_bit
// expect: Bit = 13] | another_bit<13U>
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms<ctl::MTCFreq>(at_bits{17, 14}));
#else
static_assert(conforms<ctl::MTCFreq>(at_bits{16, 13}));
#endif
