// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/decode_loop.hpp>
#include <ptspec/trace/packet_counts.hpp>

/// Counts packets by kind without building them.
namespace ptspec::trace::detail {

/// Eight bytes in one word, tested in parallel.
struct eight_bytes {
    static constexpr uint64_t ones = 0x0101'0101'0101'0101;
    static constexpr uint64_t tops = ones << 7;

    uint64_t word;

    /// Finds the bytes that are 0: bit 7 of each is set in the result, all other bits are clear.
    [[nodiscard]] constexpr auto zeros() const noexcept -> uint64_t {
        return ~(((word & ~tops) + ~tops) | word) & tops;
    }
    /// Finds the bytes that are neither TNT nor PAD, in the same form.
    [[nodiscard]] constexpr auto others() const noexcept -> uint64_t {
        return (word << 7 & tops) | eight_bytes{word ^ ones * packet::escape}.zeros();
    }
};

/// The number of bytes that a result of `eight_bytes` has found.
constexpr auto count_top_bits(uint64_t tops) noexcept -> unsigned {
    return static_cast<unsigned>((tops >> 7) * eight_bytes::ones >> 56);
}

/// The opcode information of the packet at `at`, including the length of a CYC.
template <class Packets>
constexpr auto opcode_info_with_cyc_at(uint8_t const* at, bool strict) noexcept -> opcode_info {
    opcode_info one = opcode_info_at<Packets>(at, strict);
    if (one.length == 0 && one.kind == packet::kind::cyc) {
        one.length = static_cast<uint8_t>(length_of_cyc(load_le64(at)));
    }
    return one;
}

/// Counts the packets of `bytes` from `place` on, where no block is open. Returns the position
/// where it stops: near the end, or at a packet that needs `packet::decode`.
///
/// Each iteration counts a run of up to eight TNTs and PADs at once, then looks up one other
/// packet. No branch depends on the packet kind, which is unpredictable.
template <class Packets>
constexpr auto count_loop(byte_view bytes, size_t place, bool strict, packet_counts& sum) noexcept
    -> size_t {
    using packet::kind;
    constexpr size_t bytes_per_iteration = 8 + lookahead_bytes;
    size_t const until = bytes.size() < bytes_per_iteration
                             ? 0
                             : bytes.size() - (bytes_per_iteration - 1);
    uint8_t const* const data = bytes.data();
    uint64_t tnt_and_pads = 0;
    uint64_t pads = 0;
    while (place < until) {
        eight_bytes const word{load_le64(data + place)};
        uint64_t const ends = word.others();
        unsigned const count = ends == 0 ? 8 : lowest_bit(ends) / 8;
        uint64_t const in_run = ends ^ (ends - 1);  // bits up to the end of the run, or all
        pads += count_top_bits(word.zeros() & in_run);
        tnt_and_pads += count;
        place += count;
        if (ends == 0) { continue; }
        opcode_info const one = opcode_info_with_cyc_at<Packets>(data + place, strict);
        if (one.length == 0) { break; }
        sum.add(one.kind, one.length);
        place += one.length;
    }
    sum.packets[underlying(kind::pad)] += pads;
    sum.bytes[underlying(kind::pad)] += pads;
    sum.packets[underlying(kind::tnt_short)] += tnt_and_pads - pads;
    sum.bytes[underlying(kind::tnt_short)] += tnt_and_pads - pads;
    return place;
}

}  // namespace ptspec::trace::detail
