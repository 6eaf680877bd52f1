// SPDX-License-Identifier: BSL-1.0
// expect: raw
// one error
// at most 5 lines
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{0x2109}.raw == 0x2109);
#else
static_assert(ctl{.raw = 0x2109}.raw == 0x2109);
#endif
