// SPDX-License-Identifier: BSL-1.0
// expect: a_run_time_table_needs_try_ring_or_its_like
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
auto table_at(uint64_t base) { return topa::try_ring(base, topa::region{.base = 0x10'0000}).table; }
#else
auto table_at(uint64_t base) { return topa::ring(base, topa::region{.base = 0x10'0000}); }
#endif
