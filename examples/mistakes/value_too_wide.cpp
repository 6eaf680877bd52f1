// SPDX-License-Identifier: BSL-1.0
// expect: (16)
// expect: value_does_not_fit_in_the_field

// This file does not compile, and the message says why: MTCFreq has 4 bits, and 16 needs 5.

#include <ptspec/registers.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

constexpr auto wanted = ctl{}.with(ctl::MTCEn{true}, ctl::MTCFreq{16});

auto main() -> int { return wanted.raw != 0 ? 0 : 1; }
