// SPDX-License-Identifier: BSL-1.0
// The index of an MSR and the value for it, swapped: an integer of 64 bits is no index.
// expect: deleted
// expect: msr_index
#include <ptspec/access/check.hpp>

using namespace ptspec;

auto is_allowed(cpu::capabilities const& caps, access::msr_state const& now, uint32_t index,
                uint64_t value) -> bool {
#ifndef SHOULD_FAIL
    return static_cast<bool>(access::check_write(caps, now, index, value));
#else
    return static_cast<bool>(access::check_write(caps, now, value, index));
#endif
}
