// SPDX-License-Identifier: BSL-1.0
// expect: a_CYC_threshold_is_0_or_a_power_of_two_up_to_16384_cycles
#include <ptspec/cpu/periods.hpp>

using namespace ptspec::cpu;

#ifndef SHOULD_FAIL
constexpr auto period = cyc_threshold::of_cycles(64);
#else
constexpr auto period = cyc_threshold::of_cycles(100);
#endif
static_assert(period.encoding() == 7);
