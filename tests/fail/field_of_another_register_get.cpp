// SPDX-License-Identifier: BSL-1.0
// expect: the word has no such field
// expect: ptspec::reg::ia32_rtit_status::Stopped
// expect: ptspec::reg::ia32_rtit_ctl
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_status.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;
using st = ptspec::reg::ia32_rtit_status;

#ifndef SHOULD_FAIL
static_assert(!st{}.get<st::Stopped>());
#else
static_assert(!ctl{}.get<st::Stopped>());
#endif
