// SPDX-License-Identifier: BSL-1.0
// expect: port_fault
// expect: nodiscard
#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/base/host_memory.hpp>

#if defined(_MSC_VER)
#pragma warning(error : 4834)
#else
#pragma GCC diagnostic error "-Wunused-result"
#endif

// After a fault the unit has not processed the event: the caller must send it again.
auto jump(ptspec::engine::trace_unit<>& unit, ptspec::host_memory& memory) {
#ifndef SHOULD_FAIL
    return !unit.on(ptspec::engine::action::indirect_jump{0x2000}, memory).happened;
#else
    unit.on(ptspec::engine::action::indirect_jump{0x2000}, memory);
    return true;
#endif
}
