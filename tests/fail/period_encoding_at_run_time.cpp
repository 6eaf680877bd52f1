// SPDX-License-Identifier: BSL-1.0
// expect: a_run_time_number_needs_a_function_that_begins_with_try
#include <ptspec/cpu/periods.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
auto every(uint64_t n) { return cpu::psb_period::try_encoded(n).period; }
#else
auto every(uint64_t n) { return cpu::psb_period::encoded(n); }
#endif
