// SPDX-License-Identifier: BSL-1.0
// A physical address is no RIP.
// expect: phys_addr
// expect: cs_offset
#include <ptspec/engine/action/register_write.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
using address = uint64_t;
#else
using address = phys_addr;
#endif

auto wrmsr_at(address rip) -> engine::msr_write { return {.index = 0x570, .at = rip}; }
