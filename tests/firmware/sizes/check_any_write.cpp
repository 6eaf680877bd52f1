// SPDX-License-Identifier: BSL-1.0
// at most: 3300 bytes by g++
// at most: 3600 bytes by clang++
// The check of a WRMSR whose index and processor are known at run time.

#include <ptspec/access/check.hpp>

using namespace ptspec;

auto why_refused(cpu::capabilities const& of, access::msr_state const& now, uint32_t index,
                 uint64_t value) noexcept -> rule {
    return access::check_write(of, now, index, value).broken;
}
