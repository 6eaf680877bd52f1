// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// CBR, the ratio of the core clock to the bus clock.
///
/// Shape:  4 bytes: 02H 03H, the ratio, one reserved byte.
/// Units:  CoreBusRatio multiplies the bus clock; 0 decodes, but gives no information about time.
/// Errors: truncated. Reserved bits are ignored when read, and written as 0.
/// Source: SDM vol. 3, "Core:Bus Ratio (CBR) Packet"; PKT-105, PKT-106.
struct cbr : packet_word<cbr, 4> {
    static constexpr facts about{
        .id = kind::cbr, .name = "CBR", .in_psb_plus = true, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x03> {};
    struct CoreBusRatio : field<23, 16> {};
    struct layout : bit_layout<32, Escape, Opcode, CoreBusRatio, reserved<31, 24>> {};
};

}  // namespace ptspec::packet
