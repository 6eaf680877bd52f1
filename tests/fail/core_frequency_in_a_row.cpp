// SPDX-License-Identifier: BSL-1.0
// Cycles and TSC ticks, swapped: they have names.
// expect: core_frequency
#include <ptspec/trace/time.hpp>

using namespace ptspec;

auto frequency(uint64_t cycles, uint64_t ticks, uint64_t of_tsc) -> uint64_t {
#ifndef SHOULD_FAIL
    return trace::core_frequency({.cycles = cycles, .tsc_ticks = ticks}, of_tsc);
#else
    return trace::core_frequency(ticks, cycles, of_tsc);
#endif
}
