// SPDX-License-Identifier: BSL-1.0
// expect: bit_word<ptspec::reg::ia32_rtit_status,
// expect: from 'ctl'
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_status.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;
using st = ptspec::reg::ia32_rtit_status;

#ifndef SHOULD_FAIL
constexpr st now{st{}.raw};
#else
constexpr st now{ctl{}};
#endif
