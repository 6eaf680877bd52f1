// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// PIP, a new CR3 value.
///
/// Shape:  8 bytes: 02H 43H, then NR and CR3[51:5].
/// Units:  CR3 is the register itself. Bits 11:5 are part of the address with PAE paging, else of
///         the PCID. Bits 4:0 read as 0.
/// Errors: truncated.
/// Source: SDM vol. 3, "Paging Information (PIP) Packet"; PKT-080, PKT-081.
struct pip : packet_word<pip, 8> {
    static constexpr facts about{.id = kind::pip,
                                 .name = "PIP",
                                 .binds_to_ip = ip_binding::conditional,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x43> {};
    struct NR : flag<16> {};  ///< VMX non-root operation
    struct CR3 : address_field<63, 17, 5> {};
    struct layout : bit_layout<64, Escape, Opcode, NR, CR3> {};
};

}  // namespace ptspec::packet
