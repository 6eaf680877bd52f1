// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/decode_loop.hpp>

/// A table that decides whether a packet image is valid and can be written unchanged.
namespace ptspec::trace::detail {

/// The fixed bits of valid packets, by kind and length. All other bits may have any value. One
/// array for each member: an index needs no multiplication.
struct encode_table {
    static constexpr size_t lengths = 20;  // above the length of every packet
    static constexpr size_t rows = packet::kind_count * lengths;

    uint64_t fixed[rows];      ///< mask of the fixed bits in bits 63:0
    uint64_t value[rows];      ///< the value of these bits
    uint64_t zero_high[rows];  ///< mask of the bits in 127:64 that are 0
    uint64_t min_value[rows];  ///< the least value of bits 63:0
    /// The length in bytes; 0 in an unused row. A packet that claims more bytes than `lengths`
    /// selects a row of another kind, which has another length, or one after all rows.
    uint8_t length[rows + (256 - lengths)];

    [[nodiscard]] static constexpr auto row_of(packet::kind kind, unsigned bytes) noexcept
        -> size_t {
        return underlying(kind) % packet::kind_count * lengths + bytes;
    }
    /// Adds a row for the packets of `bytes` bytes whose bits in the mask `selectors` equal `bits`.
    /// If the row of this length is in use, sets the spare row of the kind, at length 0, which no
    /// packet has.
    template <class Packet>
    constexpr void set(unsigned bytes, wide_bits selectors, wide_bits bits) noexcept {
        size_t row = row_of(Packet::about.id, bytes);
        if (length[row] != 0) { row -= bytes; }
        wide_bits const whole = first_bytes_mask(bytes);
        wide_bits const same = selectors | to_wide(Packet::reserved_mask()) |
                               to_wide(packet::fixed_mask<Packet>);
        fixed[row] = ~whole.low | same.low;
        value[row] = bits.low;
        zero_high[row] = ~whole.high | same.high;
        if constexpr (requires { Packet::min_raw; }) { min_value[row] = Packet::min_raw; }
        length[row] = static_cast<uint8_t>(bytes);
    }
    /// True when this row describes the packet.
    [[nodiscard]]
    constexpr auto matches(size_t row, unsigned bytes, uint64_t low, uint64_t high) const noexcept
        -> bool {
        // Four branches that predict well cost less than combining the conditions into one.
        return bytes == length[row] && (low & fixed[row]) == value[row] &&
               (high & zero_high[row]) == 0 && low >= min_value[row];
    }
    /// True when the packet is valid and can be written unchanged.
    [[nodiscard]]
    constexpr auto accepts(packet::kind kind, unsigned bytes, uint64_t low,
                           uint64_t high) const noexcept -> bool {
        size_t const row = row_of(kind, bytes);
        if (matches(row, bytes, low, high)) [[likely]] { return true; }
        return matches(row - bytes, bytes, low, high) ||
               (row == row_of(packet::kind::psb, packet::psb::max_bytes) && bytes == length[row] &&
                wide_bits{low, high} == packet::psb{}.raw);
    }
};

/// True if every payload is valid, or every payload from `min_raw` on.
template <class Packet>
concept has_simple_payload = requires {
    Packet::min_raw;
} || !requires(typename Packet::raw_type bits) { Packet::broken_payload(bits); };

template <class Packet>
constexpr void add_to_table(encode_table& all) noexcept {
    using payload = typename Packet::payload_type;
    wide_bits const opcode = to_wide(Packet{}.raw);
    if constexpr (same_as<Packet, packet::cyc>) {
        wide_bits const exp_bits{packet::cyc::exp_mask, 0};
        for (unsigned bytes = 1; bytes <= 8; ++bytes) {
            all.set<Packet>(bytes, exp_bits & first_bytes_mask(bytes),
                            packet::cyc::of(0, bytes).raw);
        }
    } else if constexpr (requires { payload::size(0); }) {
        using selector = packet::payload_selector<Packet>;
        constexpr uint64_t max_value = low_bits(selector::width);
        wide_bits const selects = to_wide(
            Packet{typename Packet::raw_type{}}.with(selector{wrapped{max_value}}).raw);
        for (uint64_t i = 0; i <= max_value; ++i) {
            unsigned const bytes = payload::size(i);
            if (bytes == packet::undefined_size) { continue; }
            all.set<Packet>(Packet::head_bytes + bytes, selects,
                            to_wide(Packet{}.with(selector{wrapped{i}}).raw));
        }
    } else if constexpr (requires { Packet::never_both; }) {
        constexpr uint64_t both = Packet::never_both;
        constexpr uint64_t second = both & (both - 1);
        all.set<Packet>(Packet::head_bytes, {second, 0}, opcode);
        all.set<Packet>(Packet::head_bytes, {both, 0}, opcode | wide_bits{second, 0});
    } else if constexpr (same_as<Packet, packet::psb>) {  // `accepts` compares its 16 bytes
        all.length[encode_table::row_of(packet::kind::psb, Packet::max_bytes)] = Packet::max_bytes;
    } else if constexpr (!opens_or_needs_a_block<Packet> && has_simple_payload<Packet>) {
        all.set<Packet>(Packet::head_bytes, {}, opcode);
    }
}

/// The table. It is a template: only programs that use it evaluate it.
template <class Packets>
struct encode_tables;
template <class... Packets>
struct encode_tables<type_list<Packets...>> {
    static constexpr encode_table table = [] {
        encode_table all{};
        for (auto& bits : all.value) { bits = 1; }  // no fixed bit is set yet: matches no packet
        (add_to_table<Packets>(all), ...);
        return all;
    }();
};

}  // namespace ptspec::trace::detail
