// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

namespace detail {

/// Packs the seven low bits of each of the eight bytes.
constexpr auto pack_7_bit_groups(uint64_t bytes) noexcept -> uint64_t {
    bytes = (bytes & 0x007F'007F'007F'007F) | (bytes & 0x7F00'7F00'7F00'7F00) >> 1;
    bytes = (bytes & 0x0000'3FFF'0000'3FFF) | (bytes & 0x3FFF'0000'3FFF'0000) >> 2;
    return (bytes & 0x0000'0000'0FFF'FFFF) | (bytes & 0x0FFF'FFFF'0000'0000) >> 4;
}

}  // namespace detail

/// CYC, the core clock cycles since the previous CYC.
///
/// Shape:  1 to 10 bytes: 03H in bits 1:0 of the first, Exp in bit 2 and five bits of the count
///         above; while Exp is 1 another byte follows, with its Exp in bit 0 and seven bits of the
///         count.
/// Units:  core clock cycles.
/// Errors: truncated; bad_packet for a count beyond 64 bits.
/// Source: SDM vol. 3, "Cycle Count Packet (CYC)"; PKT-107..111.
struct cyc : packet_word<cyc, 1, payload_continues<9>> {
    static constexpr facts about{
        .id = kind::cyc, .name = "CYC", .in_psb_plus = true, .keeps_block = true};

    struct Opcode : fixed<1, 0, 3> {};
    struct Exp : flag<2> {};
    struct value_4_0 : field<7, 3> {};
    struct layout : bit_layout<8, Opcode, Exp, value_4_0> {};

    /// The Exp bits of the first eight bytes, 1 if another byte follows: bit 2 of the first byte,
    /// bit 0 of the others.
    static constexpr uint64_t exp_mask = 0x0101'0101'0101'0104;

    /// The cycle count.
    [[nodiscard]] constexpr auto value() const noexcept -> uint64_t {
        // One or two bytes. Without this, event times of a trace with CYC packets take 7 to 10 %
        // more instructions.
        if (raw.low >> 16 == 0) [[likely]] { return get<value_4_0>() | raw.low >> 9 << 5; }
        return get<value_4_0>() |
               detail::pack_7_bit_groups(raw.low >> 9 & 0x007F'7F7F'7F7F'7F7F) << 5 |
               (raw.high >> 1 & 0x7F) << 54 | raw.high >> 9 << 61;
    }
    /// The number of bytes in the packet.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned {
        return length_of(raw, block::none);
    }
    /// A packet for a count, in the fewest bytes, or in `bytes` bytes if that is more.
    [[nodiscard]] static constexpr auto of(uint64_t count, unsigned bytes = 1) noexcept -> cyc {
        wide_bits bits = cyc{}.with(value_4_0{wrapped{count}}).raw;
        count >>= 5;
        for (unsigned at = 1; at < max_bytes && (count != 0 || at < bytes); ++at) {
            bits = bits | detail::shifted_left<wide_bits>(1, at == 1 ? Exp::lsb : 8 * (at - 1)) |
                   detail::shifted_left<wide_bits>((count & 0x7F) << 1, 8 * at);
            count >>= 7;
        }
        return cyc{bits};
    }

    [[nodiscard]] static constexpr auto length_of(wide_bits raw, block) noexcept -> unsigned {
        if ((raw.low & 1U << Exp::lsb) == 0) { return 1; }
        uint64_t const ends = ~raw.low & exp_mask;
        return ends != 0 ? lowest_bit(ends) / 8 + 1 : (raw.high & 1) == 0 ? 9 : 10;
    }
    [[nodiscard]] static constexpr auto broken_payload(wide_bits raw) noexcept -> rule {
        return length_of(raw, block::none) == max_bytes && (raw.high >> 8 & 0xF1) != 0
                   ? rule::PKT_110
                   : rule::none;
    }
};

}  // namespace ptspec::packet
