// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_ends_at_another_bit
// expect: Bit = 4] | another_bit<4U>
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms<ctl::PSBFreq>(unshifted{0xF}, 24));
#else
static_assert(conforms<ctl::PSBFreq>(unshifted{0x1F}, 24));
#endif
