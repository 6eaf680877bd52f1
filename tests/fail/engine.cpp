// SPDX-License-Identifier: BSL-1.0
/// The engine

#include <ptspec/base/host_memory.hpp>
#include <ptspec/engine/generator.hpp>
#include <ptspec/engine/state.hpp>
#include <ptspec/engine/trace_unit.hpp>

#include <vector>

using namespace ptspec;

#if defined(_MSC_VER)
#pragma warning(error : 4834)
#else
#pragma GCC diagnostic error "-Wunused-result"
#endif

namespace unit_not_an_event {
/// A number is no action.
// expect: deleted
// expect: an action is a struct of engine::action
auto jump(engine::trace_unit<>& unit, host_memory& memory) {
#ifndef SHOULD_FAIL
    return unit.on(engine::action::indirect_jump{0x2000}, memory);
#else
    return unit.on(uint64_t{0x2000}, memory);
#endif
}
}  // namespace unit_not_an_event

namespace result_dropped_port_fault {
/// After a fault the unit has not processed the event: the caller must send it again.
// expect: port_fault | 'nodiscard' attribute
// expect: nodiscard
auto jump(ptspec::engine::trace_unit<>& unit, ptspec::host_memory& memory) {
#ifndef SHOULD_FAIL
    return !unit.on(ptspec::engine::action::indirect_jump{0x2000}, memory).happened;
#else
    unit.on(ptspec::engine::action::indirect_jump{0x2000}, memory);
    return true;
#endif
}
}  // namespace result_dropped_port_fault

namespace generator_into_no_sink {
/// A vector is no sink; a `byte_buffer` is one.
// expect: deleted
// expect: a sink has append(byte_view) -> bool
// one error
void jump(engine::generator& from, std::vector<unsigned char>& to) {
#ifndef SHOULD_FAIL
    byte_buffer out{to.data(), to.size()};
    from.on(engine::action::indirect_jump{0x2000}, out);
#else
    from.on(engine::action::indirect_jump{0x2000}, to);
#endif
}
}  // namespace generator_into_no_sink

namespace packet_ip_as_cs_offset {
/// The IP of a packet is no offset in CS: of a linear one, the base of CS would be added twice.
// expect: packet_ip
// expect: cs_offset
auto fup_of(engine::generator_state const& unit, uint64_t rip) -> packet_ip {
    packet_ip const ip = unit.in_packets(rip);
#ifndef SHOULD_FAIL
    return ip;
#else
    return unit.in_packets(ip);
#endif
}
}  // namespace packet_ip_as_cs_offset
