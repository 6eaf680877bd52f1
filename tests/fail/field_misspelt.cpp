// SPDX-License-Identifier: BSL-1.0
// expect: 'MTCFrq'
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::MTCFreq{3}).raw != 0);
#else
static_assert(ctl{}.with(ctl::MTCFrq{3}).raw != 0);
#endif
