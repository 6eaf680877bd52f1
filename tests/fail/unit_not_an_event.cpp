// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: an action is a struct of engine::action
#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/base/host_memory.hpp>

using namespace ptspec;

auto jump(engine::trace_unit<>& unit, host_memory& memory) {
#ifndef SHOULD_FAIL
    return unit.on(engine::action::indirect_jump{0x2000}, memory);
#else
    return unit.on(uint64_t{0x2000}, memory);
#endif
}
