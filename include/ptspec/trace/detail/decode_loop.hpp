// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/ip_update.hpp>
#include <ptspec/trace/visitor.hpp>
#include <ptspec/base/attribute.hpp>

/// The fast path that decodes most packets of a trace. `packet::decode` decodes the others.
///
/// Throughput is latency-bound: the next packet's start depends on this one's length, and a
/// misprediction costs about 50 instructions. So one table lookup by the first byte gives the
/// length, kind and IP form of a packet. Only PAD, TNT and CYC, the most frequent kinds, have a
/// branch of their own. MTC has no length in the table of the loop. So only packets without a
/// length are compared with MTC, and a run of MTCs is read in a loop of its own: reading the events
/// of a trace with many MTCs takes a quarter less time.
namespace ptspec::trace::detail {

/// A packet that the fast path decoded.
struct quick_packet {
    wide_bits bits{};
    unsigned length = 0;  ///< 0: decode it with `packet::decode`
    packet::kind kind = packet::kind::pad;
    uint64_t ip = 0;  ///< the last IP after it
};

/// One comparison detects TNT, to have one branch instead of several unpredictable ones: rotated
/// right by one, odd bytes are negative, PAD is 0 and the escape is 1.
constexpr auto is_tnt(unsigned first) noexcept -> bool {
    using opcode = packet::tnt_short::Opcode;
    static_assert(opcode::msb == 0 && opcode::fixed_value == 0);
    static_assert(pad_opcode == 0 && packet::escape == 2);
    return static_cast<int>(first >> 1 | first << 31) > 1;
}
constexpr auto is_cyc(unsigned first) noexcept -> bool {
    using opcode = packet::cyc::Opcode;
    static_assert(opcode::lsb == 0);
    return (first & low_bits(opcode::width)) == opcode::fixed_value;
}

/// The length of a CYC, or 0 for the rare CYC of eight bytes or more. One mask finds its last byte.
/// `image` is 8 bytes.
constexpr auto length_of_cyc(uint64_t image) noexcept -> unsigned {
    uint64_t const ends = ~image & packet::cyc::exp_mask & low_bits(56);
    return ends == 0 ? 0 : lowest_bit(ends) / 8 + 1;
}
constexpr auto quick_decode_cyc(uint64_t image, uint64_t last_ip) noexcept -> quick_packet {
    unsigned const length = length_of_cyc(image);
    return {{image & first_bytes_masks.low[length], 0}, length, packet::kind::cyc, last_ip};
}

/// Decodes a packet that is neither TNT, PAD nor CYC. At least `lookahead_bytes` bytes are
/// readable, and no block is open.
///
/// always_inline: without it next() takes 4 % more instructions (g++ 12).
template <class Packets>
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto quick_decode(uint8_t const* at, uint64_t last_ip, bool strict) noexcept
    -> quick_packet {
    size_t const row = row_at<Packets>(at, strict);
    unsigned const length = opcode_infos<Packets>.length[row];
    // Two scalars: some compilers leave a struct in memory.
    uint64_t const low = load_le64(at) & first_bytes_masks.low[length];
    uint64_t const high = load_le64(at + 8) & first_bytes_masks.high[length];
    return {{low, high},
            length,
            opcode_infos<Packets>.kind[row],
            updated_ip(ip_update_of(opcode_infos<Packets>.form[row]), load_le64(at + 1), last_ip)};
}

/// The state of the decode loop. Passed and returned by value, to stay in registers.
struct loop_state {
    size_t place = 0;  // position in the bytes
    uint64_t last_ip = 0;
    packet::block items = packet::block::none;
    bool keep_going = true;  // the visitor has not stopped
};

/// Counts the PADs at the start of `bytes`, up to the next position that is a multiple of eight.
/// The first byte must be a PAD.
///
/// Processors pad up to a multiple of eight bytes, or to one byte before it, so that the two
/// branches predict well. A count of the zero bytes would add latency after the load.
constexpr auto leading_pads(uint64_t bytes, size_t place) noexcept -> unsigned {
    auto const gone = static_cast<unsigned>(place % 8);
    if (bytes << 8 * gone == 0) { return 8 - gone; }
    if (bytes << 8 * (gone + 1) == 0) { return 7 - gone; }
    return hide_from_optimizer(lowest_bit(bytes)) / 8;
}

/// A packet of any kind, and the loop state after it. `state.place` is its length; 0: there is no
/// packet.
struct decoded_one {
    packet::any_packet packet{};
    loop_state state{};
};

/// Decodes one packet of any kind.
///
/// noinline: it is the same for all visitors.
template <class Packets>
PTSPEC_ATTRIBUTE(noinline)
constexpr auto decode_one(byte_view from, packet::decode_options options, uint64_t last_ip) noexcept
    -> decoded_one {
    auto const got = packet::decode<Packets>(from, options);
    if (!got) { return {.state = {0, last_ip, options.block, true}}; }
    return {got.packet,
            {got.length(), packet::last_ip_after<Packets>(got.packet, last_ip),
             packet::block_after<Packets>(got.packet, options.block), true}};
}

/// Calls the visitor with one packet of known length. `lookahead_bytes` bytes must be readable.
template <class Visitor>
struct visitor_call {
    Visitor& visitor;
    uint8_t const* from;
    packet_place place;

    /// Passes the packet to the visitor.
    ///
    /// always_inline: without it next() takes 2 % more instructions (g++ 12).
    template <class Packet>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto operator()() const -> bool {
        uint64_t const low = load_le64(from) & first_bytes_masks.low[place.length];
        uint64_t const high = load_le64(from + 8) & first_bytes_masks.high[place.length];
        return call(visitor, Packet{from_wide<typename Packet::raw_type>({low, high})}, place);
    }
};

/// Calls the visitor with the packets of `bytes`, which begin at `offset` of the trace, until the
/// visitor stops or no complete valid packet follows. Fastest when `offset` is a multiple of eight.
template <class Packets, class Visitor>
constexpr auto decode_loop(byte_view bytes, uint64_t offset, bool strict, loop_state state,
                           Visitor& caller_visitor) -> loop_state {
    using namespace packet;
    copy_or_reference<Visitor> visitor = caller_visitor;
    uint8_t const* const data = bytes.data();
    size_t const fast_limit = bytes.size() < lookahead_bytes ? 0
                                                             : bytes.size() - (lookahead_bytes - 1);
    size_t place = state.place;
    uint64_t last_ip = state.last_ip;
    block items = state.items;
    bool keep_going = state.keep_going;
    while (keep_going) {
        size_t const until = items == block::none ? fast_limit : 0;
        if constexpr (skips_packets<Visitor>) {
            if (place < until) {
                auto const some = visitor.skip(data + place, until - place, offset + place,
                                               last_ip);
                if (some.size != 0) {
                    place += some.size;
                    last_ip = some.last_ip;
                }
            }
        }
        while (place < until) {
            unsigned const first = data[place];
            packet_place here{offset + place, last_ip, 1};
            if (first == pad_opcode) {
                if constexpr (accepts_pad_runs<Visitor>) {
                    here.length = leading_pads(load_le64(data + place), place);
                    keep_going = call_pads(visitor, here.length, here);
                } else {
                    keep_going = call(visitor, pad{}, here);
                }
                place += here.length;
            } else if (is_tnt(first)) {
                keep_going = call(visitor, tnt_short{first}, here);
                place += 1;
            } else if (is_cyc(first)) {
                auto const found = quick_decode_cyc(load_le64(data + place), last_ip);
                here.length = found.length;
                if (here.length == 0) { break; }
                keep_going = call(visitor, cyc{found.bits}, here);
                place += here.length;
            } else {
                size_t const row = row_at<Packets>(data + place, strict);
                here.length = skips_packets<Visitor> ? opcode_infos<Packets>.length[row]
                                                     : opcode_infos<Packets>.length_unless_mtc[row];
                if (here.length == 0) {
                    if (skips_packets<Visitor> || first != mtc::Opcode::fixed_value) { break; }
                    do {
                        keep_going =
                            visitor_call<copy_or_reference<Visitor>>{
                                visitor, data + place, {offset + place, last_ip, mtc::max_bytes}}
                                .template operator()<mtc>();
                        place += mtc::max_bytes;
                    } while (keep_going && place < until &&
                             data[place] == mtc::Opcode::fixed_value);
                    if (keep_going) { continue; }
                    if constexpr (is_copied<Visitor>) { caller_visitor = visitor; }
                    return {place, last_ip, items, false};
                }
                here.ip = last_ip = updated_ip(ip_update_of(opcode_infos<Packets>.form[row]),
                                               load_le64(data + place + 1), last_ip);
                bool is_taken = false;
                if constexpr (takes_whole_psb_plus<Visitor>) {
                    if (opcode_infos<Packets>.kind[row] == kind::psb) [[unlikely]] {
                        auto const whole = visitor.template take_psb_plus<Packets>(
                            data + place, until - place, here.offset, strict);
                        is_taken = whole.size != 0 || !whole.continues;
                        if (is_taken) {
                            place += whole.size;
                            last_ip = whole.last_ip;
                            keep_going = whole.continues;
                        }
                    }
                }
                if (!is_taken) {
                    uint8_t const* const from = data + place;
                    place += here.length;
                    keep_going = for_kind(
                        opcode_infos<Packets>.kind[row],
                        visitor_call<copy_or_reference<Visitor>>{visitor, from, here}, Packets{});
                }
                if constexpr (skips_packets<Visitor>) {
                    if (keep_going && place < until) {
                        auto const some = visitor.skip(data + place, until - place, offset + place,
                                                       last_ip);
                        place += some.size;
                        if (some.size != 0) { last_ip = some.last_ip; }
                    }
                }
            }
            if (!keep_going) {
                if constexpr (is_copied<Visitor>) { caller_visitor = visitor; }
                return {place, last_ip, items, false};
            }
        }
        auto const one = decode_one<Packets>(bytes.from(place), {items, strict}, last_ip);
        if (one.state.place == 0) { break; }
        packet_place const here{offset + place, one.state.last_ip, one.packet.length()};
        place += one.state.place;
        last_ip = one.state.last_ip;
        items = one.state.items;
        if constexpr (is_copied<Visitor>) {
            // The address of `visitor` must not escape.
            auto copy = visitor;
            keep_going = call_any<Packets>(copy, one.packet, here);
            visitor = copy;
        } else {
            keep_going = call_any<Packets>(visitor, one.packet, here);
        }
    }
    if constexpr (is_copied<Visitor>) { caller_visitor = visitor; }
    return {place, last_ip, items, keep_going};
}

}  // namespace ptspec::trace::detail

#undef PTSPEC_ATTRIBUTE
