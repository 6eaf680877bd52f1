// SPDX-License-Identifier: BSL-1.0
// The value of a WRMSR as its index: an integer of 64 bits is no index.
// expect: deleted
// expect: msr_index
#include <ptspec/engine/action/register_write.hpp>

using namespace ptspec;

auto wrmsr_of(uint32_t index, uint64_t value) -> engine::msr_write {
#ifndef SHOULD_FAIL
    return {.index = index, .value = value};
#else
    return {.index = value, .value = index};
#endif
}
