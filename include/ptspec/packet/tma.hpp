// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// TMA, the crystal clock at the time of the preceding TSC packet.
///
/// Shape:  7 bytes: 02H 73H, CTC in two bytes, a reserved byte, FC in nine bits.
/// Units:  CTC is bits 15:0 of the crystal counter; FC counts TSC ticks since its last edge.
/// Errors: truncated; bad_packet in strict mode when a reserved bit is set.
/// Source: SDM vol. 3, "TSC/MTC Alignment (TMA) Packet"; PKT-103, PKT-104.
struct tma : packet_word<tma, 7> {
    static constexpr facts about{
        .id = kind::tma, .name = "TMA", .in_psb_plus = true, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x73> {};
    struct CTC : field<31, 16> {};
    struct FC : field<48, 40> {};
    // clang-format off
    struct layout : bit_layout<56,
        Escape, Opcode, CTC, reserved<39, 32>, FC, reserved<55, 49>> {};
    // clang-format on

    [[nodiscard]] static constexpr auto broken_when_strict(uint64_t raw) noexcept -> rule {
        return (raw & reserved_mask()) != 0 ? rule::PKT_104 : rule::none;
    }
};

}  // namespace ptspec::packet
