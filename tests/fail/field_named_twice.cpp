// SPDX-License-Identifier: BSL-1.0
// expect: a field is named twice
// expect: ptspec::reg::ia32_rtit_ctl::OS
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::OS{true}, ctl::User{true}).raw != 0);
#else
static_assert(ctl{}.with(ctl::OS{true}, ctl::OS{false}).raw != 0);
#endif
