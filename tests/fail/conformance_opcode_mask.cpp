// SPDX-License-Identifier: BSL-1.0
// expect: the_opcode_mask_differs
// expect: Bit = 5] | mask_differs<5U>
#include <ptspec/conformance.hpp>
#include <ptspec/packet/list.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms_opcode<packet::tip>(0x0D, 0x1F));
#else
static_assert(conforms_opcode<packet::tip>(0x0D, 0x3F));
#endif
