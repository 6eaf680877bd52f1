// SPDX-License-Identifier: BSL-1.0
// The IP of a packet is no address of an output region.
// expect: packet_ip
// expect: phys_addr
#include <ptspec/topa/table.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
using address = uint64_t;
#else
using address = packet_ip;
#endif

auto region_at(address base) -> topa::region { return {.base = base}; }
