// SPDX-License-Identifier: BSL-1.0
// expect: no member named
// expect: number
// expect: ptspec::reserved<18
// expect: ptspec::reg::ia32_rtit_ctl
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;
using bit_18 = ptspec::reserved<18>;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::DisTNT{true}).raw != 0);
#else
static_assert(ctl{}.with(bit_18{}).raw != 0);
#endif
