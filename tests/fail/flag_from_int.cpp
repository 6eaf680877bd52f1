// SPDX-License-Identifier: BSL-1.0
// expect: from 'int' to
// expect: flag<2>'
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::OS{true}).raw != 0);
#else
static_assert(ctl{}.with(ctl::OS{2}).raw != 0);
#endif
