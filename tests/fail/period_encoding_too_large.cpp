// SPDX-License-Identifier: BSL-1.0
// expect: an_encoding_is_0_to_15
#include <ptspec/cpu/periods.hpp>

using namespace ptspec::cpu;

#ifndef SHOULD_FAIL
constexpr auto period = psb_period::encoded(15);
#else
constexpr auto period = psb_period::encoded(16);
#endif
static_assert(period.encoding() == 15);
