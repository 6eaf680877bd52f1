// SPDX-License-Identifier: BSL-1.0
// expect: layout::bits == 8 * HeadBytes
#include <ptspec/packet/packet_word.hpp>

using namespace ptspec::packet;
using namespace ptspec;

struct toy : packet_word<toy, 2> {
    struct Opcode : fixed<7, 0, 0x11> {};
#ifndef SHOULD_FAIL
    struct layout : bit_layout<16, Opcode, reserved<15, 8>> {};
#else
    struct layout : bit_layout<8, Opcode> {};
#endif
};

static_assert(toy{}.raw == 0x11);
