// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// TSC, the time-stamp counter.
///
/// Shape:  8 bytes: 19H, then TSC[55:0].
/// Units:  ticks of the time-stamp counter, zero-extended.
/// Errors: truncated.
/// Source: SDM vol. 3, "Timestamp Counter (TSC) Packet"; PKT-100.
struct tsc : packet_word<tsc, 8> {
    static constexpr facts about{.id = kind::tsc,
                                 .name = "TSC",
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes,
                                 .keeps_block = true};

    struct Opcode : fixed<7, 0, 0x19> {};
    struct TSC : field<63, 8> {};
    struct layout : bit_layout<64, Opcode, TSC> {};
};

}  // namespace ptspec::packet
