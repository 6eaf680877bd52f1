// SPDX-License-Identifier: BSL-1.0
// expect: an_MTC_period_is_a_power_of_two_up_to_32768_crystal_cycles
#include <ptspec/cpu/periods.hpp>

using namespace ptspec::cpu;

#ifndef SHOULD_FAIL
constexpr auto period = mtc_period::of_crystal_cycles(32768);
#else
constexpr auto period = mtc_period::of_crystal_cycles(65536);
#endif
static_assert(period.encoding() == 15);
