// SPDX-License-Identifier: BSL-1.0
// expect: from 'int' to
// expect: enumerated<35, 32,
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::ADDR0_CFG{ptspec::reg::addr_cfg::filter}).raw != 0);
#else
static_assert(ctl{}.with(ctl::ADDR0_CFG{1}).raw != 0);
#endif
