// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// EXSTOP, execution stopped because the core clock stopped.
///
/// Shape:  2 bytes: 02H 62H with IP.
/// Errors: truncated.
/// Source: SDM vol. 3, "Execution Stop (EXSTOP) Packet"; PKT-180, PKT-181.
struct exstop : packet_word<exstop, 2> {
    static constexpr facts about{.id = kind::exstop,
                                 .name = "EXSTOP",
                                 .binds_to_ip = ip_binding::conditional,
                                 .cyc_eligible = cyc_rule::yes,
                                 .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<14, 8, 0x62> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct layout : bit_layout<16, Escape, Opcode, IP> {};
};

/// MWAIT, the idle state that an MWAIT instruction requested.
///
/// Shape:  10 bytes: 02H C2H, the hints, three reserved bytes, the extensions, three reserved
///         bytes.
/// Units:  hints and ext as MWAIT takes them in EAX and ECX.
/// Errors: truncated.
/// Source: SDM vol. 3, "MWAIT Packet"; PKT-182, PKT-183.
struct mwait : packet_word<mwait, 10> {
    static constexpr facts about{.id = kind::mwait,
                                 .name = "MWAIT",
                                 .binds_to_ip = ip_binding::yes,
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xC2> {};
    struct hints : field<23, 16> {};
    struct ext : field<49, 48> {};
    // clang-format off
    struct layout : bit_layout<80,
        Escape, Opcode, hints, reserved<47, 24>, ext, reserved<79, 50>> {};
    // clang-format on
};

/// PWRE, entry into a C-state.
///
/// Shape:  4 bytes: 02H 22H, HW, the resolved thread C-state and its sub-state.
/// Units:  C-states as MWAIT encodes them.
/// Errors: truncated.
/// Source: SDM vol. 3, "Power Entry (PWRE) Packet"; PKT-184, PKT-185.
struct pwre : packet_word<pwre, 4> {
    static constexpr facts about{.id = kind::pwre,
                                 .name = "PWRE",
                                 .binds_to_ip = ip_binding::conditional,
                                 .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x22> {};
    struct HW : flag<23> {};  ///< the hardware initiated the entry
    struct substate : field<27, 24> {};
    struct state : field<31, 28> {};
    struct layout : bit_layout<32, Escape, Opcode, reserved<22, 16>, HW, substate, state> {};
};

/// PWRX, exit from a C-state.
///
/// Shape:  7 bytes: 02H A2H, the deepest and the last core C-state, the wake reason, reserved bits.
/// Units:  C-states as MWAIT encodes them. reason has one bit per cause: bit 0 an interrupt, bit 2
///         a store to the monitored address, bit 3 the hardware; 0 is none of these.
/// Errors: truncated.
/// Source: SDM vol. 3, "Power Exit (PWRX) Packet"; PKT-186, PKT-187.
struct pwrx : packet_word<pwrx, 7> {
    static constexpr facts about{.id = kind::pwrx,
                                 .name = "PWRX",
                                 .binds_to_ip = ip_binding::conditional,
                                 .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xA2> {};
    struct deepest : field<19, 16> {};
    struct last : field<23, 20> {};
    struct reason : field<27, 24> {};
    struct layout : bit_layout<56, Escape, Opcode, deepest, last, reason, reserved<55, 28>> {};
};

}  // namespace ptspec::packet
