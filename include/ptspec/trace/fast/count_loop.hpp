// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/fast/decode_loop.hpp>
#include <ptspec/trace/packet_counts.hpp>

/// How packets are counted of which nobody wants to know more.
namespace ptspec::trace::detail {

/// Eight bytes that are looked at together.
struct eight_bytes {
    static constexpr uint64_t ones = 0x0101'0101'0101'0101;
    static constexpr uint64_t tops = ones << 7;

    uint64_t word;

    /// The top bit of each byte that is 0; the others are 0.
    [[nodiscard]] constexpr auto zeros() const noexcept -> uint64_t {
        return ~(((word & ~tops) + ~tops) | word) & tops;
    }
    /// The top bit of each byte that is neither TNT nor PAD.
    [[nodiscard]] constexpr auto others() const noexcept -> uint64_t {
        return (word << 7 & tops) | eight_bytes{word ^ ones * escape}.zeros();
    }
};

/// How many tops there are.
constexpr auto count_of_tops(uint64_t tops) noexcept -> unsigned {
    return static_cast<unsigned>((tops >> 7) * eight_bytes::ones >> 56);
}

/// The outline of the packet that begins here, with the length of a CYC, too.
template <class Packets>
[[gnu::always_inline]]  // so that it costs no call
constexpr auto
opcode_info_with_cyc_at(uint8_t const* at, bool strict) noexcept -> opcode_info {
    opcode_info one = opcode_info_at<Packets>(at, strict);
    if (one.length == 0 && one.which == packet::kind::cyc) {
        one.length = static_cast<uint8_t>(length_of_cyc(load_le64(at)));
    }
    return one;
}

/// Counts the packets of `bytes` from `place` on, where no block is open, and returns the place
/// where that ended: near the end, or at a packet that needs more care.
///
/// TNT and PAD stand in rows, of which eight bytes are counted at once, whatever they are; behind
/// each row one other packet is looked up. So a round has no branch that goes one way as often as
/// the other.
template <class Packets>
constexpr auto count_loop(byte_view bytes, size_t place, bool strict, packet_counts& sum) noexcept
    -> size_t {
    using packet::kind;
    constexpr size_t seen_in_a_round = 8 + lookahead_bytes;
    size_t const until = bytes.size() < seen_in_a_round ? 0 : bytes.size() - (seen_in_a_round - 1);
    uint8_t const* const data = bytes.data();
    uint64_t rows = 0;  // bytes of TNT and PAD
    uint64_t pads = 0;
    while (place < until) {
        eight_bytes const row{load_le64(data + place)};
        uint64_t const ends = row.others();
        unsigned const count = ends == 0 ? 8 : lowest_bit(ends) / 8;
        uint64_t const in_row = ends ^ (ends - 1);  // up to the end, or everything
        pads += count_of_tops(row.zeros() & in_row);
        rows += count;
        place += count;
        if (ends == 0) { continue; }
        opcode_info const one = opcode_info_with_cyc_at<Packets>(data + place, strict);
        if (one.length == 0) { break; }
        sum.add(one.which, one.length);
        place += one.length;
    }
    sum.packets[underlying(kind::pad)] += pads;
    sum.bytes[underlying(kind::pad)] += pads;
    sum.packets[underlying(kind::tnt_short)] += rows - pads;
    sum.bytes[underlying(kind::tnt_short)] += rows - pads;
    return place;
}

}  // namespace ptspec::trace::detail
