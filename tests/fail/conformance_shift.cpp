// SPDX-License-Identifier: BSL-1.0
// expect: the_shift_is_not_the_lowest_bit_of_the_field
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms<ctl::PSBFreq>(0xFU << 24, 24));
#else
static_assert(conforms<ctl::PSBFreq>(0xFU << 24, 23));
#endif
