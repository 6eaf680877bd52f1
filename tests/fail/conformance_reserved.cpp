// SPDX-License-Identifier: BSL-1.0
// expect: a_reserved_bit_differs
// expect: Bit = 18] | bit_differs<18U>
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms_reserved<ctl>(0xFE7F'0000'7084'0000));
#else
static_assert(conforms_reserved<ctl>(0xFE7F'0000'7080'0000));
#endif
