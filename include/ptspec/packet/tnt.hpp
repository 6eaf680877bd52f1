// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// The branches in a TNT packet.
struct branches {
    unsigned count = 0;
    /// Bit count-1 is the oldest branch, bit 0 the youngest. 1 is taken.
    uint64_t bits = 0;

    /// True if branch `i` was taken. Branch 0 is the oldest; `i` must be below `count`.
    [[nodiscard]] constexpr auto taken(unsigned i) const noexcept -> bool {
        return (bits >> (count - 1 - i) & 1) != 0;
    }
    friend constexpr auto operator==(branches const&, branches const&) -> bool = default;
};

/// Branches as one number: the outcomes, the last one in bit 0, and a 1 above them.
struct marked_branches {
    static constexpr unsigned max_count = 62;
    static constexpr uint64_t none = 1;
    /// There can be none, because tracing is off. With 63 branches it could be that all are taken.
    static constexpr uint64_t off = ~uint64_t{0};

    /// Bits of `some` above its branches are ignored. It has at most `max_count` branches.
    [[nodiscard]] static constexpr auto of(branches some) noexcept -> uint64_t {
        return uint64_t{1} << some.count | (some.bits & low_bits(some.count));
    }
};

namespace detail {

/// The branches below the stop bit, which is the highest bit that is 1.
constexpr auto below_stop_bit(uint64_t bits) noexcept -> branches {
    unsigned const stop = highest_bit(bits | 1);  // 0 without a stop bit: no branches
    return {stop, bits & ~(uint64_t{1} << stop)};
}

}  // namespace detail

/// TNT.short, up to six taken or not-taken branches.
///
/// Shape:  1 byte: bit 0 is 0, above it the branches, above them the stop bit. 00H is PAD and 02H
///         is the escape of the longer opcodes, so it has at least one branch.
/// Units:  the bit directly below the stop bit is the oldest branch.
/// Errors: none when read; PKT-033 for no branch or more than six, PKT-344 inside a block, when
///         written.
/// Source: SDM vol. 3, "Taken/Not-taken (TNT) Packet"; PKT-030..033, PKT-039.
struct tnt_short : packet_word<tnt_short, 1> {
    static constexpr facts about{.id = kind::tnt_short,
                                 .name = "TNT.short",
                                 .binds_to_ip = ip_binding::yes,
                                 .cyc_eligible = cyc_rule::yes};
    static constexpr unsigned max_branches = 6;
    /// Smaller values are PAD, the escape byte or a TNT without branches.
    static constexpr uint64_t min_raw = 4;

    struct Opcode : fixed<0, 0, 0> {};
    struct bits : field<7, 1> {};
    struct layout : bit_layout<8, Opcode, bits> {};

    [[nodiscard]] constexpr auto taken() const noexcept -> branches {
        return detail::below_stop_bit(raw >> 1);
    }
    /// A packet for 1 to 6 branches. Any other count gives a packet that `encode` refuses.
    [[nodiscard]] static constexpr auto of(branches carried) noexcept -> tnt_short {
        return carried.count == 0 || carried.count > max_branches
                   ? tnt_short{}
                   : tnt_short{}.with(bits{wrapped{uint64_t{1} << carried.count |
                                                   (carried.bits & low_bits(carried.count))}});
    }
    [[nodiscard]] static constexpr auto broken_payload(uint64_t raw) noexcept -> rule {
        return raw < min_raw ? rule::PKT_033 : rule::none;
    }
};

/// TNT.long, up to 47 taken or not-taken branches.
///
/// Shape:  8 bytes: 02H A3H, then 48 bits that hold the branches and above them the stop bit.
/// Units:  the bit directly below the stop bit is the oldest branch.
/// Errors: truncated; bad_packet without a stop bit or without a branch.
/// Source: SDM vol. 3, "Taken/Not-taken (TNT) Packet"; PKT-034..037, PKT-039, PKT-040.
struct tnt_long : packet_word<tnt_long, 8> {
    static constexpr facts about{.id = kind::tnt_long,
                                 .name = "TNT.long",
                                 .binds_to_ip = ip_binding::yes,
                                 .cyc_eligible = cyc_rule::yes};
    static constexpr unsigned max_branches = 47;
    /// Smaller values have no stop bit, or no branch below it.
    static constexpr uint64_t min_raw = uint64_t{2} << 16;

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xA3> {};
    struct bits : field<63, 16> {};
    struct layout : bit_layout<64, Escape, Opcode, bits> {};

    [[nodiscard]] constexpr auto taken() const noexcept -> branches {
        return detail::below_stop_bit(raw >> 16);
    }
    /// A packet for 1 to 47 branches. Any other count gives a packet that `encode` refuses.
    [[nodiscard]] static constexpr auto of(branches carried) noexcept -> tnt_long {
        return carried.count == 0 || carried.count > max_branches
                   ? tnt_long{}
                   : tnt_long{}.with(bits{wrapped{uint64_t{1} << carried.count |
                                                  (carried.bits & low_bits(carried.count))}});
    }
    [[nodiscard]] static constexpr auto broken_payload(uint64_t raw) noexcept -> rule {
        return raw >= min_raw ? rule::none : raw >> 16 == 0 ? rule::PKT_036 : rule::PKT_037;
    }
};

}  // namespace ptspec::packet
