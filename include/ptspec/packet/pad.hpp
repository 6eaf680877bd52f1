// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// PAD, no information. Each 00H byte is one PAD.
///
/// Shape:  1 byte: 00H.
/// Errors: none.
/// Source: SDM vol. 3, "PAD Packet"; PKT-166.
struct pad : packet_word<pad, 1> {
    static constexpr facts about{
        .id = kind::pad, .name = "PAD", .in_psb_plus = true, .keeps_block = true};

    struct Opcode : fixed<7, 0, 0x00> {};
    struct layout : bit_layout<8, Opcode> {};
};

}  // namespace ptspec::packet
