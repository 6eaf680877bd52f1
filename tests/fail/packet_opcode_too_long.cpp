// SPDX-License-Identifier: BSL-1.0
// expect: an opcode has at most three bytes
#include <ptspec/packet/classify.hpp>

using namespace ptspec::packet;
using namespace ptspec;

struct toy : packet_word<toy, 4> {
    static constexpr facts about{.id = kind::mnt, .name = "toy"};
#ifndef SHOULD_FAIL
    struct Opcode : fixed<23, 0, 0x88'C302> {};
    struct layout : bit_layout<32, Opcode, reserved<31, 24>> {};
#else
    struct Opcode : fixed<31, 0, 0x1188'C302> {};
    struct layout : bit_layout<32, Opcode> {};
#endif
};

static_assert(classify_first<type_list<toy>>(0x02).what == opcode_byte::meaning::prefix);
