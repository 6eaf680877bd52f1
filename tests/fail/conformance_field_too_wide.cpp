// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_ends_at_another_bit
// expect: Bit = 23] | another_bit<23U>
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms<ctl::CycThresh>(0xFU << 19));
#else
static_assert(conforms<ctl::CycThresh>(0x1FU << 19));
#endif
