// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// MODE.Exec, the execution mode of the code that follows.
///
/// Shape:  2 bytes: 99H, then leaf 0 and the mode.
/// Units:  CS_L is CS.L & EFER.LMA. IF is RFLAGS.IF, valid only with event trace.
/// Errors: truncated; reserved when CS_L and CS_D are both 1.
/// Source: SDM vol. 3, "MODE Packets"; PKT-085..087, PKT-090, PKT-091.
struct mode_exec : packet_word<mode_exec, 2> {
    static constexpr facts about{.id = kind::mode_exec,
                                 .name = "MODE.Exec",
                                 .binds_to_ip = ip_binding::yes,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<7, 0, 0x99> {};
    struct CS_L : flag<8> {};
    struct CS_D : flag<9> {};
    struct IF : flag<10> {};
    struct Leaf : leaf<15, 13, 0> {};
    struct layout : bit_layout<16, Opcode, CS_L, CS_D, IF, reserved<12, 11>, Leaf> {};
    static constexpr rule unknown_leaf = rule::PKT_089;

    /// The code size: 16, 32 or 64 bits.
    [[nodiscard]] constexpr auto code_bits() const noexcept -> unsigned {
        return get<CS_L>() ? 64 : get<CS_D>() ? 32 : 16;
    }
    static constexpr uint64_t never_both = uint64_t{1} << CS_L::lsb | uint64_t{1} << CS_D::lsb;
    [[nodiscard]] static constexpr auto broken_header(uint64_t raw) noexcept -> rule {
        return (raw & never_both) == never_both ? rule::PKT_090 : rule::none;
    }
};

/// MODE.TSX, a transaction began, committed or aborted.
///
/// Shape:  2 bytes: 99H, then leaf 1 and the state.
/// Errors: truncated; reserved when InTX and TXAbort are both 1.
/// Source: SDM vol. 3, "MODE Packets"; PKT-085, PKT-088, PKT-090, PKT-091.
struct mode_tsx : packet_word<mode_tsx, 2> {
    static constexpr facts about{.id = kind::mode_tsx,
                                 .name = "MODE.TSX",
                                 .binds_to_ip = ip_binding::yes,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<7, 0, 0x99> {};
    struct InTX : flag<8> {};
    struct TXAbort : flag<9> {};
    struct Leaf : leaf<15, 13, 1> {};
    struct layout : bit_layout<16, Opcode, InTX, TXAbort, reserved<12, 10>, Leaf> {};
    static constexpr rule unknown_leaf = rule::PKT_089;

    static constexpr uint64_t never_both = uint64_t{1} << InTX::lsb | uint64_t{1} << TXAbort::lsb;
    [[nodiscard]] static constexpr auto broken_header(uint64_t raw) noexcept -> rule {
        return (raw & never_both) == never_both ? rule::PKT_090 : rule::none;
    }
};

}  // namespace ptspec::packet
