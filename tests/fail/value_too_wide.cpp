// SPDX-License-Identifier: BSL-1.0
// expect: value_does_not_fit_in_the_field
// expect: (16)
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::MTCFreq{15}).raw != 0);
#else
static_assert(ctl{}.with(ctl::MTCFreq{16}).raw != 0);
#endif
