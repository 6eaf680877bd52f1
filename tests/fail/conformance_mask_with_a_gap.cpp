// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_has_a_gap
// expect: Bit = 15] | a_gap<15U>
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms<ctl::MTCFreq>(0x3C000));
#else
static_assert(conforms<ctl::MTCFreq>(0x34000));
#endif
