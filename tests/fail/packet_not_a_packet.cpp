// SPDX-License-Identifier: BSL-1.0
// expect: packet_type
#include <ptspec/packet/decode.hpp>

using namespace ptspec::packet;

constexpr uint8_t bytes[] = {0x59, 0x80};

#ifndef SHOULD_FAIL
static_assert(decode_as<mtc>(bytes).length == 2);
#else
static_assert(decode_as<int>(bytes).length == 2);
#endif
