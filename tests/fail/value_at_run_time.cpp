// SPDX-License-Identifier: BSL-1.0
// expect: is not a constant expression
#include <ptspec/reg/rtit_ctl.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
auto later(uint64_t n) -> ctl { return ctl{}.with(ctl::MTCFreq{ptspec::wrapped{n}}); }
#else
auto later(uint64_t n) -> ctl { return ctl{}.with(ctl::MTCFreq{n}); }
#endif
