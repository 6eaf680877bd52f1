// SPDX-License-Identifier: BSL-1.0
// An address of the output is no IP.
// expect: phys_addr
// expect: packet_ip
#include <ptspec/topa/position.hpp>

using namespace ptspec;

auto next_byte(topa::position where, topa::entry current) -> packet_ip {
    phys_addr const address = topa::trace_store_phys_addr(where, current);
#ifndef SHOULD_FAIL
    return address.value;
#else
    return address;
#endif
}
