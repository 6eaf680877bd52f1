// SPDX-License-Identifier: BSL-1.0
// expect: the_opcode_differs
// expect: Bit = 8] | opcode_differs<8U>
#include <ptspec/conformance.hpp>
#include <ptspec/packet/list.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms_opcode<packet::psb>({0x02, 0x82}));
#else
static_assert(conforms_opcode<packet::psb>({0x02, 0x83}));
#endif
