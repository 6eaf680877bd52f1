// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// MNT, a model-specific value.
///
/// Shape:  11 bytes: 02H C3H 88H, then 8 bytes.
/// Errors: truncated.
/// Source: SDM vol. 3, "Maintenance (MNT) Packet"; PKT-164.
struct mnt : packet_word<mnt, 11> {
    static constexpr facts about{
        .id = kind::mnt, .name = "MNT", .in_psb_plus = true, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Escape2 : fixed<15, 8, 0xC3> {};
    struct Opcode : fixed<23, 16, 0x88> {};
    struct payload : field<87, 24> {};
    struct layout : bit_layout<88, Escape, Escape2, Opcode, payload> {};
};

}  // namespace ptspec::packet
