// SPDX-License-Identifier: BSL-1.0
// expect: a field is named twice
#include <ptspec/reg/xsave.hpp>

using state = ptspec::reg::xsave_pt_state;
using ctl = ptspec::reg::ia32_rtit_ctl;
#ifndef SHOULD_FAIL
static_assert(state{}.with(state::IA32_RTIT_CTL{ctl{1}}).quadwords[0] == 1);
#else
static_assert(
    state{}.with(state::IA32_RTIT_CTL{ctl{2}}, state::IA32_RTIT_CTL{ctl{1}}).quadwords[0] == 1);
#endif
