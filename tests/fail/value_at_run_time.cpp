// SPDX-License-Identifier: BSL-1.0
// expect: a_run_time_number_needs_wrapped_or_checked
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
auto later(uint64_t n) -> ctl { return ctl{}.with(ctl::MTCFreq{ptspec::wrapped{n}}); }
#else
auto later(uint64_t n) -> ctl { return ctl{}.with(ctl::MTCFreq{n}); }
#endif
