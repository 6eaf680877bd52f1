// SPDX-License-Identifier: BSL-1.0
// expect: payload_of_block
#include <ptspec/packet/any_packet.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(any_packet{bip{}, 5}.length() == 5);
#else
static_assert(any_packet{bip{}}.length() == 5);
#endif
