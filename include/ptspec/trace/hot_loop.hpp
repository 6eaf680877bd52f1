// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/visitor.hpp>

/// The loop in which nearly all packets of a trace are read.
namespace ptspec::trace::detail {

/// What reading changes. It goes in and out by value, so that it can stay in registers.
struct hot_state {
    size_t place = 0;  // in the bytes at hand
    uint64_t last_ip = 0;
    packet::block items = packet::block::none;
    bool go_on = true;  // the visitor wants more
};

/// Hands out the packets of `bytes`, which begin at `offset` of the trace, until the visitor wants
/// no more or until a packet needs more care: the last one, which may be cut, and everything that
/// is not one.
///
/// Nine packets of ten are short TNT, PAD, MTC or a CYC of one or two bytes: these are known by
/// their first two bytes, and change nothing but the place.
template <class Packets, class Visitor>
constexpr auto hot_loop(byte_view bytes, uint64_t offset, bool strict, hot_state now,
                        Visitor& visitor) -> hot_state {
    using namespace packet;
    using packet::detail::opcode_bits;
    using packet::detail::opcode_shape;
    using packet::detail::shape_of;
    constexpr opcode_shape tnt_opcode = shape_of<tnt_short>();
    constexpr unsigned escape = opcode_bits<psbend> & 0xFF;
    // The opcode of CYC, and whether a second and a third byte follow.
    constexpr opcode_shape cyc_opcode = shape_of<cyc>();
    constexpr unsigned second_follows = 1U << cyc::Exp::lsb;
    constexpr unsigned third_follows = 1U << 8;

    uint8_t const* const data = bytes.data();
    while (now.go_on && bytes.size() - now.place >= 2) {
        unsigned const two = data[now.place] | unsigned{data[now.place + 1]} << 8;
        unsigned const first = two & 0xFF;
        at here{offset + now.place, now.last_ip, 1};
        if ((first & tnt_opcode.mask) == tnt_opcode.value && first != escape &&
            now.items == block::none) {
            now.place += 1;
            now.go_on = first == opcode_bits<pad> ? call(visitor, pad{}, here)
                                                  : call(visitor, tnt_short{first}, here);
        } else if ((first & (cyc_opcode.mask | second_follows)) == cyc_opcode.value) {
            now.place += 1;
            now.go_on = call(visitor, cyc{wide_bits{first, 0}}, here);
        } else if ((two & (cyc_opcode.mask | second_follows | third_follows)) ==
                   (cyc_opcode.value | second_follows)) {
            now.place += 2;
            here.length = 2;
            now.go_on = call(visitor, cyc{wide_bits{two, 0}}, here);
        } else if (first == opcode_bits<mtc>) {
            now.place += 2;
            here.length = 2;
            now.go_on = call(visitor, mtc{two}, here);
        } else {
            auto const failure = packet::detail::decode_into<Packets>(
                bytes.from(now.place), {now.items, strict},
                [&](auto const& packet, unsigned length) {
                    now.place += length;
                    now.last_ip = last_ip_behind(packet, now.last_ip);
                    now.items = block_behind(packet, now.items);
                    now.go_on = call(visitor, packet, at{here.offset, now.last_ip, length});
                });
            if (failure.why != error::none) { break; }
        }
    }
    return now;
}

}  // namespace ptspec::trace::detail
