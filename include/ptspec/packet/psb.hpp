// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// PSB, the synchronisation point where a decoder can start.
///
/// Shape:  16 bytes: 02H 82H eight times. This pattern occurs nowhere else in a trace.
/// Errors: truncated; bad_packet when a byte after the first two does not match the pattern.
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-130..132.
struct psb : packet_word<psb, 16> {
    static constexpr facts about{.id = kind::psb, .name = "PSB"};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x82> {};
    struct Low : pattern<63, 16, 0x8202'8202'8202> {};
    struct High : pattern<127, 64, 0x8202'8202'8202'8202> {};
    struct layout : bit_layout<128, Escape, Opcode, Low, High> {};

    [[nodiscard]] static constexpr auto broken_payload(wide_bits raw) noexcept -> rule {
        return raw == detail::opcode_bits<psb> ? rule::none : rule::PKT_131;
    }
};

/// PSBEND, the end of the status packets that follow a PSB.
///
/// Shape:  2 bytes: 02H 23H.
/// Errors: truncated.
/// Source: SDM vol. 3, "PSBEND Packet"; PKT-133.
struct psbend : packet_word<psbend, 2> {
    static constexpr facts about{.id = kind::psbend, .name = "PSBEND", .in_psb_plus = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x23> {};
    struct layout : bit_layout<16, Escape, Opcode> {};
};

}  // namespace ptspec::packet
