// SPDX-License-Identifier: BSL-1.0
// The bounds of a walk over tables, swapped: they have names.
// expect: shape_of_chain
#include <ptspec/base/host_memory.hpp>
#include <ptspec/topa/walk.hpp>

using namespace ptspec;

auto tables_at(host_memory& memory, uint64_t first) -> uint64_t {
#ifndef SHOULD_FAIL
    return topa::shape_of_chain(memory, first, {.max_entries = 512, .max_tables = 16}).tables;
#else
    return topa::shape_of_chain(memory, first, 16, 512).tables;
#endif
}
