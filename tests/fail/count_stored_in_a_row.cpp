// SPDX-License-Identifier: BSL-1.0
// The number of bytes and the address of the last one, swapped: the addresses are one argument.
// expect: count_stored
#include <ptspec/engine/output/result.hpp>

using namespace ptspec;

void count(engine::write_result& result, uint64_t first, uint64_t last) {
#ifndef SHOULD_FAIL
    result.count_stored({first, last}, 8);
#else
    result.count_stored(first, 8, last);
#endif
}
