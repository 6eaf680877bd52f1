// SPDX-License-Identifier: BSL-1.0
// The cycles that pass and those of the counter, swapped: the counter is one argument.
// expect: count_cycles
#include <ptspec/engine/clocks.hpp>

using namespace ptspec;

auto count(uint64_t before, uint64_t passed) -> uint64_t {
#ifndef SHOULD_FAIL
    return engine::count_cycles({.cycles = before, .bits = 12}, passed).cycles;
#else
    return engine::count_cycles(passed, before, 12, false).cycles;
#endif
}
