// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_has_a_bit_outside_the_field
// expect: Bit = 23] | the_field<23U>
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms_value(ctl::PSBFreq{3}, 3U << 24));
#else
static_assert(conforms_value(ctl::PSBFreq{3}, 3U << 23));
#endif
