// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: a flag is true or false
// expect: ctl::TraceEn{1}
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::TraceEn{true}).raw == 1);
#else
static_assert(ctl{}.with(ctl::TraceEn{1}).raw == 1);
#endif
