// SPDX-License-Identifier: BSL-1.0
// The IP of a packet is no offset in CS: of a linear one, the base of CS would be added twice.
// expect: packet_ip
// expect: cs_offset
#include <ptspec/engine/state.hpp>

using namespace ptspec;

auto fup_of(engine::generator_state const& unit, uint64_t rip) -> packet_ip {
    packet_ip const ip = unit.in_packets(rip);
#ifndef SHOULD_FAIL
    return ip;
#else
    return unit.in_packets(ip);
#endif
}
