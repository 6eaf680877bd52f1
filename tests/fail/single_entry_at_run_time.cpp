// SPDX-License-Identifier: BSL-1.0
// expect: a_run_time_table_needs_try_ring_or_its_like
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
auto table_of(topa::region one) { return topa::try_single_entry(0x1000, one).table; }
#else
auto table_of(topa::region one) { return topa::single_entry(0x1000, one); }
#endif
