// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// MTC, eight bits of the crystal clock.
///
/// Shape:  2 bytes: 59H, then CTC.
/// Units:  CTC is bits N+7:N of the crystal counter, N being IA32_RTIT_CTL.MTCFreq.
/// Errors: truncated.
/// Source: SDM vol. 3, "Mini Time Counter (MTC) Packet"; PKT-101, PKT-102.
struct mtc : packet_word<mtc, 2> {
    static constexpr facts about{.id = kind::mtc,
                                 .name = "MTC",
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes,
                                 .keeps_block = true};

    struct Opcode : fixed<7, 0, 0x59> {};
    struct CTC : field<15, 8> {};
    struct layout : bit_layout<16, Opcode, CTC> {};
};

}  // namespace ptspec::packet
