// SPDX-License-Identifier: BSL-1.0
// expect: constant_number<16
// expect: field<17, 14>'
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::MTCFreq{ptspec::constant<15>}).raw != 0);
#else
static_assert(ctl{}.with(ctl::MTCFreq{ptspec::constant<16>}).raw != 0);
#endif
