// SPDX-License-Identifier: BSL-1.0
// expect: the_number_of_opcode_bytes_differs
#include <ptspec/conformance.hpp>
#include <ptspec/packet/list.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms_opcode<packet::psb>({0x02, 0x82}));
#else
static_assert(conforms_opcode<packet::psb>({0x02}));
#endif
