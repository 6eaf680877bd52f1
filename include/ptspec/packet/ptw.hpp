// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// PTW, the operand of a PTWRITE instruction.
///
/// Shape:  6 or 10 bytes: 02H 12H with PayloadBytes and IP, then 4 or 8 bytes of payload.
/// Errors: truncated; reserved when PayloadBytes is 2 or 3.
/// Source: SDM vol. 3, "PTWRITE (PTW) Packet"; PKT-170..174.
struct ptw : packet_word<ptw, 2, payload_of<4, 8, undefined_size, undefined_size>> {
    static constexpr facts about{.id = kind::ptw,
                                 .name = "PTW",
                                 .binds_to_ip = ip_binding::yes,
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<12, 8, 0x12> {};
    struct PayloadBytes : selects_payload<field<14, 13>> {};
    struct IP : flag<15> {};  ///< a FUP with this instruction's IP follows
    struct layout : bit_layout<16, Escape, Opcode, PayloadBytes, IP> {};

    [[nodiscard]] static constexpr auto broken_header(wide_bits raw) noexcept -> rule {
        return selected_size(raw) == undefined_size ? rule::PKT_173 : rule::none;
    }
};

}  // namespace ptspec::packet
