// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// BBP, the start of a block of BIPs.
///
/// Shape:  3 bytes: 02H 63H, the type of the group and the size of its items.
/// Units:  SZ is 1 for items of 4 bytes and 0 for items of 8.
/// Errors: truncated.
/// Source: SDM vol. 3, "Block Begin Packet (BBP)"; PKT-200, PKT-201.
struct bbp : packet_word<bbp, 3> {
    static constexpr facts about{.id = kind::bbp,
                                 .name = "BBP",
                                 .binds_to_ip = ip_binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x63> {};
    struct type : field<20, 16> {};
    struct SZ : flag<23> {};
    struct layout : bit_layout<24, Escape, Opcode, type, reserved<22, 21>, SZ> {};

    /// The item size of the block that this packet opens.
    [[nodiscard]] constexpr auto opens() const noexcept -> block {
        return get<SZ>() ? block::items_of_4 : block::items_of_8;
    }
};

/// BIP, one item of a block.
///
/// Shape:  5 or 9 bytes: 04H with the id, then 4 or 8 bytes, as the last BBP selects. Outside a
///         block the same byte is a TNT.short.
/// Errors: truncated; PKT-344 when written outside a block.
/// Source: SDM vol. 3, "Block Item Packet (BIP)"; PKT-202, PKT-203.
struct bip : packet_word<bip, 1, payload_of_block> {
    static constexpr facts about{.id = kind::bip,
                                 .name = "BIP",
                                 .binds_to_ip = ip_binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed,
                                 .keeps_block = true};

    struct Opcode : fixed<2, 0, 4> {};
    struct id : field<7, 3> {};
    struct layout : bit_layout<8, Opcode, id> {};
};

/// BEP, the end of a record, which has one block or more.
///
/// Shape:  2 bytes: 02H 33H with IP.
/// Errors: truncated.
/// Source: SDM vol. 3, "Block End Packet (BEP)"; PKT-204.
struct bep : packet_word<bep, 2> {
    static constexpr facts about{.id = kind::bep,
                                 .name = "BEP",
                                 .binds_to_ip = ip_binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<14, 8, 0x33> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct layout : bit_layout<16, Escape, Opcode, IP> {};
};

}  // namespace ptspec::packet
