// SPDX-License-Identifier: BSL-1.0
// expect: conforms<
// expect: the_definition_begins_at_another_bit
// expect: Bit = 2] | another_bit<2U>
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms<ctl::CYCEn>(1U << 1));
#else
static_assert(conforms<ctl::CYCEn>(1U << 2));
#endif
