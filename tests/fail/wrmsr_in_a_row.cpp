// SPDX-License-Identifier: BSL-1.0
// The address of a WRMSR and its value, swapped: they have names.
// expect: wrmsr
#include <ptspec/base/host_memory.hpp>
#include <ptspec/engine/trace_unit.hpp>

using namespace ptspec;

auto enable(engine::trace_unit<>& unit, host_memory& memory, uint64_t ctl, uint64_t rip) {
#ifndef SHOULD_FAIL
    return unit.wrmsr({.index = 0x570, .value = ctl, .at = rip, .next = rip + 2}, memory);
#else
    return unit.wrmsr(0x570, rip, rip + 2, ctl, memory);
#endif
}
