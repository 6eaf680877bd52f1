// SPDX-License-Identifier: BSL-1.0
// at most: 26000 bytes by g++
// at most: 30000 bytes by clang++
// The trace unit with one kind of event: packets, PSB+, overflow, and output to ToPA tables.

#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/base/host_memory.hpp>

using namespace ptspec;

auto jump(engine::trace_unit<>& unit, host_memory& memory, uint64_t to) noexcept -> port_fault {
    return unit.on(engine::action::indirect_jump{to}, memory);
}
