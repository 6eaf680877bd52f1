// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// OVF, packets before this one were lost.
///
/// Shape:  2 bytes: 02H F3H.
/// Errors: truncated.
/// Source: SDM vol. 3, "Overflow (OVF) Packet"; PKT-150.
struct ovf : packet_word<ovf, 2> {
    static constexpr facts about{.id = kind::ovf,
                                 .name = "OVF",
                                 .binds_to_ip = ip_binding::conditional,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xF3> {};
    struct layout : bit_layout<16, Escape, Opcode> {};
};

}  // namespace ptspec::packet
