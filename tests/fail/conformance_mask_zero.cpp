// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_has_no_bit
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms<ctl::OS>(4));
#else
static_assert(conforms<ctl::OS>(0));
#endif
