// SPDX-License-Identifier: BSL-1.0
// expect: a_PSB_period_is_a_power_of_two_from_2_KB_to_64_MB
#include <ptspec/cpu/periods.hpp>

using namespace ptspec::cpu;

#ifndef SHOULD_FAIL
constexpr auto period = psb_period::of_bytes(8192);
#else
constexpr auto period = psb_period::of_bytes(10000);
#endif
static_assert(period.encoding() == 2);
