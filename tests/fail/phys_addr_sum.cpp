// SPDX-License-Identifier: BSL-1.0
// The distance of two addresses is a number of bytes; their sum is nothing.
// expect: operator+
// expect: phys_addr
#include <ptspec/topa/table.hpp>

using namespace ptspec;

auto length(topa::region first, topa::region second) -> uint64_t {
#ifndef SHOULD_FAIL
    return second.base - first.base;
#else
    return second.base + first.base;
#endif
}
