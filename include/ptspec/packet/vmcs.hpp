// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// VMCS, a new VMCS pointer.
///
/// Shape:  7 bytes: 02H C8H, then bits 51:12 of the address.
/// Units:  base is the address itself; all ones means that no VMCS is loaded.
/// Errors: truncated.
/// Source: SDM vol. 3, "VMCS Packet"; PKT-162.
struct vmcs : packet_word<vmcs, 7> {
    static constexpr facts about{.id = kind::vmcs,
                                 .name = "VMCS",
                                 .binds_to_ip = ip_binding::conditional,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xC8> {};
    struct base : address_field<55, 16, 12> {};
    struct layout : bit_layout<56, Escape, Opcode, base> {};
};

}  // namespace ptspec::packet
