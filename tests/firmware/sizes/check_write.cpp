// SPDX-License-Identifier: BSL-1.0
// at most: 140 bytes
// With constant capabilities and a constant index, the check of a WRMSR is a few mask tests.

#include <ptspec/access/check.hpp>
#include <ptspec/cpu/presets.hpp>

using namespace ptspec;

auto faults(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return !access::check_write(cpu::preset::P_SKL, now, 0x570, value);
}
