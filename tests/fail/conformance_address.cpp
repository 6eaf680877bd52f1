// SPDX-License-Identifier: BSL-1.0
// expect: the_address_differs
// expect: conforms_address<
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms_address<ctl>(0x570));
#else
static_assert(conforms_address<ctl>(0x571));
#endif
