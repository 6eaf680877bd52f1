// SPDX-License-Identifier: BSL-1.0
// at most: 140 bytes
// The same for an MSR whose existence depends on the number of address ranges.

#include <ptspec/access/check.hpp>
#include <ptspec/cpu/presets.hpp>

using namespace ptspec;

auto faults(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return !access::check_write(cpu::preset::P_SKL, now, 0x583, value);
}
