// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// TraceStop, a TraceStop range stopped tracing.
///
/// Shape:  2 bytes: 02H 83H.
/// Errors: truncated.
/// Source: SDM vol. 3, "TraceStop Packet"; PKT-160.
struct tracestop : packet_word<tracestop, 2> {
    static constexpr facts about{
        .id = kind::tracestop, .name = "TraceStop", .binds_to_ip = ip_binding::conditional};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x83> {};
    struct layout : bit_layout<16, Escape, Opcode> {};
};

}  // namespace ptspec::packet
