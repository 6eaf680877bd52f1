// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// TRIG, one or more triggers fired.
///
/// Shape:  3 or 5 bytes: D9H, flags, TRBV with one bit per trigger, and ICNT when ICNTV is 1.
/// Units:  ICNT counts instructions since the last packet that carried an IP.
/// Errors: truncated.
/// Source: PKT-240, PKT-242, PKT-243. UNCONFIRMED as a whole: known from decoders only.
struct trig : packet_word<trig, 3, payload_of<0, 2>> {
    static constexpr facts about{.id = kind::trig,
                                 .name = "TRIG",
                                 .binds_to_ip = ip_binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Opcode : fixed<7, 0, 0xD9> {};
    struct MULT : flag<13> {};  ///< more triggers fired than are reported
    struct ICNTV : selects_payload<flag<14>> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct TRBV : field<23, 16> {};
    struct layout : bit_layout<24, Opcode, reserved<12, 8>, MULT, ICNTV, IP, TRBV> {};

    /// The instruction count, 0 when ICNTV is 0.
    [[nodiscard]] constexpr auto ICNT() const noexcept -> uint64_t { return payload(); }
};

}  // namespace ptspec::packet
