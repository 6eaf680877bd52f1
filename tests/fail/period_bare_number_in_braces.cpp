// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: mtc_period
// expect: of_crystal_cycles(n), or encoded(n)
#include <ptspec/config/trace_config.hpp>

using namespace ptspec::cpu;
using namespace ptspec::config;

#ifndef SHOULD_FAIL
constexpr trace_config wanted{.mtc_every = mtc_period::encoded(3)};
#else
constexpr trace_config wanted{.mtc_every = {3}};
#endif
static_assert(wanted.mtc_every.crystal_cycles() == 8);
