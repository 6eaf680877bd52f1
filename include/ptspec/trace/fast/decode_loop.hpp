// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/fast/opcode_info.hpp>
#include <ptspec/trace/visitor.hpp>

/// How nearly all packets of a trace are read. Everything else is `packet::decode`.
///
/// What takes time is not the work but waiting: where the next packet begins is known only when this
/// one's length is, and a branch that goes another way than last time costs as much as fifty
/// instructions. So a packet's outline comes from one look into a table by its first byte, whatever
/// packet it is, and nothing but PAD, TNT and CYC, of which traces are made, has a branch of its own.
namespace ptspec::trace::detail {

/// What a packet of a form does to the last IP.
struct ip_update {
    uint64_t kept;   ///< the bits that stay
    uint64_t taken;  ///< the bits of the payload that count
    uint64_t sign;   ///< the one of them that all bits above are copies of, or 0
};
struct ip_update_table {
    uint64_t kept[9];  // side by side, so that a form is an index without a multiplication
    uint64_t taken[9];
    uint64_t sign[9];
};
inline constexpr ip_update_table ip_updates = [] {
    constexpr uint64_t sign = uint64_t{1} << 47;
    ip_update_table all{};  // of all zeros: what a PSB does
    for (uint8_t i = 0; i < clears_ip; ++i) {
        auto const how = static_cast<packet::ip_bytes>(i);
        all.kept[i] = packet::rebuilt_ip(how, 0, ~uint64_t{0});
        all.sign[i] = packet::rebuilt_ip(how, sign, 0) > sign ? sign : 0;
        all.taken[i] = all.sign[i] != 0 ? low_bits(48) : ~all.kept[i];
    }
    return all;
}();
constexpr auto ip_update_of(unsigned form) noexcept -> ip_update {
    return {ip_updates.kept[form], ip_updates.taken[form], ip_updates.sign[form]};
}

struct byte_masks {
    uint64_t low[lookahead_bytes + 1];
    uint64_t high[lookahead_bytes + 1];
};
inline constexpr byte_masks first_bytes_masks = [] {
    byte_masks all{};
    for (unsigned i = 0; i <= lookahead_bytes; ++i) {
        wide_bits const mask = packet::detail::first_bytes(~wide_bits{}, i);
        all.low[i] = mask.low;
        all.high[i] = mask.high;
    }
    return all;
}();
/// The first n bytes.
constexpr auto first_bytes_mask(unsigned count) noexcept -> wide_bits {
    return {first_bytes_masks.low[count], first_bytes_masks.high[count]};
}

/// The last IP behind a packet with this payload: the eight bytes behind the first.
constexpr auto updated_ip(ip_update update, uint64_t payload, uint64_t last_ip) noexcept
    -> uint64_t {
    return (last_ip & update.kept) | (((payload & update.taken) ^ update.sign) - update.sign);
}

/// A packet as far as one look tells.
struct quick_packet {
    packet::detail::known_packet packet{};  ///< of length 0 where it needs a closer look
    uint64_t ip = 0;                        ///< the last IP behind it
};

/// One branch, where several would each go either way as often: rotated by one, what is odd is
/// negative, and of the others PAD and the escape are the lowest.
constexpr auto is_tnt(unsigned first) noexcept -> bool {
    static_assert(tnt_opcode.mask == 1 && tnt_opcode.value == 0);
    static_assert(opcode_bits<packet::pad> == 0 && escape == 2);
    return static_cast<int>(first >> 1 | first << 31) > 1;
}
constexpr auto is_cyc(unsigned first) noexcept -> bool {
    return (first & cyc_opcode.mask) == cyc_opcode.value;
}

/// The length of a CYC, or 0 where it has eight bytes or more, which is too seldom to be looked at
/// here. One mask finds its end. There have to be 8 bytes.
constexpr auto length_of_cyc(uint64_t image) noexcept -> unsigned {
    constexpr uint64_t first_goes_on = uint64_t{1} << packet::cyc::Exp::lsb;
    constexpr uint64_t others_go_on = packet::detail::cyc_ends_low & low_bits(56);
    uint64_t const ends = ~image & (others_go_on | first_goes_on);
    return ends == 0 ? 0 : lowest_bit(ends) / 8 + 1;
}
constexpr auto quick_decode_cyc(uint64_t image, uint64_t last_ip) noexcept -> quick_packet {
    unsigned const length = length_of_cyc(image);
    return {{{image & first_bytes_masks.low[length], 0}, length, packet::kind::cyc}, last_ip};
}

/// Looks at a packet that is neither TNT, PAD nor CYC. There have to be `lookahead_bytes` bytes, and no
/// block may be open.
template <class Packets>
[[gnu::always_inline]]  // so that what the caller does not need is not computed
constexpr auto
quick_decode(uint8_t const* at, uint64_t last_ip, bool strict) noexcept -> quick_packet {
    size_t const row = row_at<Packets>(at, strict);
    unsigned const length = opcode_infos<Packets>.length[row];
    // Not as one: what is built as a struct some compilers leave in memory.
    uint64_t const low = load_le64(at) & first_bytes_masks.low[length];
    uint64_t const high = load_le64(at + 8) & first_bytes_masks.high[length];
    return {{{low, high}, length, opcode_infos<Packets>.which[row]},
            updated_ip(ip_update_of(opcode_infos<Packets>.form[row]), load_le64(at + 1), last_ip)};
}

/// What reading changes. It goes in and out by value, so that it can stay in registers.
struct loop_state {
    size_t place = 0;  // in the bytes at hand
    uint64_t last_ip = 0;
    packet::block items = packet::block::none;
    bool go_on = true;  // the visitor wants more
};

/// How many PADs stand at the front of eight bytes, of which the first is one: at most up to a place
/// that eight divides.
///
/// Processors fill eight bytes up with PADs, or all of them but the last. That it is so again is a
/// branch that is foreseen; to count them takes as long as to load them.
constexpr auto pads_in_front(uint64_t bytes, size_t place) noexcept -> unsigned {
    auto const gone = static_cast<unsigned>(place % 8);
    if (bytes << 8 * gone == 0) { return 8 - gone; }
    if (bytes << 8 * (gone + 1) == 0) { return 7 - gone; }
    return hide_from_optimizer(lowest_bit(bytes)) / 8;
}

/// What there is behind one packet.
template <class Visitor>
struct after_one {
    loop_state now;
    carried<Visitor> visitor;
};

/// Hands out one packet, whatever it is. Where there is none the place stays as it was.
template <class Packets, class Visitor>
[[gnu::noinline]]  // so that nobody has the address of what the loop keeps in registers
constexpr auto
decode_one(byte_view from, packet::context how, uint64_t offset, uint64_t last_ip,
           carried<Visitor> visitor) -> after_one<Visitor> {
    loop_state now{0, last_ip, how.items, true};
    (void)packet::detail::decode_into<Packets>(from, how, [&](auto const& packet, unsigned length) {
        now.place = length;
        now.last_ip = last_ip_after(packet, last_ip);
        now.items = block_after(packet, how.items);
        now.go_on = call(visitor, packet, {offset, now.last_ip, length});
    });
    return {now, visitor};
}

/// Hands out one packet that was seen at a glance, of which there are `lookahead_bytes` bytes.
template <class Visitor>
struct visitor_call {
    Visitor& visitor;
    uint8_t const* from;
    at where;

    template <class Packet>
    [[gnu::always_inline]]  // as often as there are kinds, for each of which it does something else
    constexpr auto
    operator()() const -> bool {
        uint64_t const low = load_le64(from) & first_bytes_masks.low[where.length];
        uint64_t const high = load_le64(from + 8) & first_bytes_masks.high[where.length];
        return call(visitor, Packet{packet::detail::narrow<typename Packet::raw_type>({low, high})},
                    where);
    }
};

/// Hands out the packets of `bytes`, which begin at `offset` of the trace, until the visitor wants
/// no more or until there is no whole packet.
/// Fastest where `offset` is a multiple of eight.
template <class Packets, class Visitor>
constexpr auto decode_loop(byte_view bytes, uint64_t offset, bool strict, loop_state now,
                           Visitor& theirs) -> loop_state {
    using namespace packet;
    carried<Visitor> visitor = theirs;
    uint8_t const* const data = bytes.data();
    size_t const calm_until = bytes.size() < lookahead_bytes ? 0
                                                             : bytes.size() - (lookahead_bytes - 1);
    size_t place = now.place;
    uint64_t last_ip = now.last_ip;
    block items = now.items;
    bool go_on = now.go_on;
    while (go_on) {
        size_t const until = items == block::none ? calm_until : 0;
        while (place < until) {
            unsigned const first = data[place];
            at here{offset + place, last_ip, 1};
            if (first == opcode_bits<pad>) {
                if constexpr (takes_pads_in_rows<Visitor>) {
                    here.length = pads_in_front(load_le64(data + place), place);
                    go_on = call_with_pads(visitor, here.length, here);
                } else {
                    go_on = call(visitor, pad{}, here);
                }
                place += here.length;
            } else if (is_tnt(first)) {
                go_on = call(visitor, tnt_short{first}, here);
                place += 1;
            } else if (is_cyc(first)) {
                auto const found = quick_decode_cyc(load_le64(data + place), last_ip);
                here.length = found.packet.length;
                if (here.length == 0) { break; }
                go_on = call(visitor, cyc{found.packet.bits}, here);
                place += here.length;
            } else {
                size_t const row = row_at<Packets>(data + place, strict);
                here.length = opcode_infos<Packets>.length[row];
                if (here.length == 0) { break; }
                here.ip = last_ip = updated_ip(ip_update_of(opcode_infos<Packets>.form[row]),
                                               load_le64(data + place + 1), last_ip);
                uint8_t const* const from = data + place;
                place += here.length;
                go_on = for_kind(opcode_infos<Packets>.which[row],
                                 visitor_call<carried<Visitor>>{visitor, from, here}, Packets{});
            }
            if (!go_on) {
                if constexpr (is_carried<Visitor>) { theirs = visitor; }
                return {place, last_ip, items, false};
            }
        }
        auto const behind = decode_one<Packets, Visitor>(bytes.from(place), {items, strict},
                                                         offset + place, last_ip, visitor);
        if constexpr (is_carried<Visitor>) { visitor = behind.visitor; }
        if (behind.now.place == 0) { break; }
        place += behind.now.place;
        last_ip = behind.now.last_ip;
        items = behind.now.items;
        go_on = behind.now.go_on;
    }
    if constexpr (is_carried<Visitor>) { theirs = visitor; }
    return {place, last_ip, items, go_on};
}

}  // namespace ptspec::trace::detail
