// SPDX-License-Identifier: BSL-1.0
// expect: cyc_threshold
// expect: psb_period
#include <ptspec/config/trace_config.hpp>

using namespace ptspec::cpu;
using namespace ptspec::config;

#ifndef SHOULD_FAIL
constexpr trace_config wanted{.cyc_after = cyc_threshold::encoded(2)};
#else
constexpr trace_config wanted{.cyc_after = psb_period::encoded(2)};
#endif
static_assert(wanted.cyc_after.cycles() == 2);
