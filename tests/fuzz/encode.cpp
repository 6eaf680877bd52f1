// SPDX-License-Identifier: BSL-1.0
// Fuzzes encoding: each packet with any bits, and the functions that make packets.
//
//   byte 0      bits 7 and 4:0 the packet, modulo the number of kinds; bits 6:5 the block as in
//               decode.cpp
//   byte 1      the room for `append`, modulo 32
//   byte 2..17  the packet's bits
//   byte 18..   two numbers of 8 bytes and a length, for the functions that make packets

#include <ptspec/packet/encode.hpp>

#include <fuzz/check.hpp>
#include <fuzz/naive.hpp>

namespace {

using fuzz::require;
using namespace ptspec;
using packet::block;

template <class Packet, class Row>
void check_row(Packet const& one, Packet const& two) {
    if constexpr (Row::kind == row_kind::field) {
        require(one.template get<Row>() == two.template get<Row>(), "every field is unchanged");
    }
}

template <class Packet, class... Rows>
void check_rows(type_list<Rows...>, Packet const& one, Packet const& two) {
    (check_row<Packet, Rows>(one, two), ...);
}

/// The 16-byte image of a packet: opcode set, reserved bits 0.
template <class Packet>
void write_image(Packet const& packet, uint8_t (&image)[16]) {
    wide_bits const opcode{to_wide(Packet{}.raw)};
    wide_bits bits = to_wide(packet.raw);
    for (row_info const& row : rows_of<Packet>()) {
        for (unsigned bit = row.lsb; bit <= row.msb; ++bit) {
            uint64_t& half = bit < 64 ? bits.low : bits.high;
            uint64_t const place = uint64_t{1} << bit % 64;
            if (row.kind == row_kind::reserved) { half &= ~place; }
            if (row.kind == row_kind::fixed) {
                half = (half & ~place) | ((bit < 64 ? opcode.low : opcode.high) & place);
            }
        }
    }
    for (unsigned i = 0; i < 16; ++i) {
        image[i] = static_cast<uint8_t>(i < 8 ? bits.low >> (8 * i) : bits.high >> (8 * (i - 8)));
    }
}

template <class Packet>
void check_encode(Packet const& packet, block items, unsigned room) {
    uint8_t image[16];
    write_image(packet, image);
    auto const read = naive::decode(image, underlying(items), false);
    bool fits = read.why == packet::error::none && read.which == Packet::about.id;
    for (unsigned i = read.length; i < 16; ++i) { fits = fits && image[i] == 0; }

    auto const out = packet::encode(packet, items);
    require(static_cast<bool>(out) == fits, "encode rejects exactly what decode rejects");
    require(fits || (out.size() == 0 && out.bytes == decltype(out.bytes){}),
            "a rejected packet has no bytes");
    if (fits) {
        require(out == byte_view{image, read.length}, "the bytes are the image of the packet");
        fuzz::copy const bytes{out};
        auto const back = packet::decode_as<Packet>(bytes, {items, true});
        require(back && back.length == out.size(), "all bytes decode to one packet");
        check_rows(typename Packet::layout::rows{}, back.packet, packet);
        if constexpr (requires { packet.payload(); }) {
            require(back.packet.payload() == packet.payload(), "the payload is unchanged");
        }
    }

    auto const any = packet::encode(packet::any_packet{packet, 1}, items);
    require(any.broken == out.broken && byte_view{any} == byte_view{out},
            "any_packet encodes as its packet");

    uint8_t space[32];
    for (uint8_t& byte : space) { byte = 0xEE; }
    byte_buffer buffer{space, room};
    rule const broken = packet::append(buffer, packet, items);
    rule const expected = !fits ? out.broken : out.size() <= room ? rule::none : rule::PKT_347;
    require(broken == expected, "append rejects what encode rejects, and what does not fit");
    size_t const written = broken == rule::none ? out.size() : 0;
    require(buffer.size() == written && buffer.written() == byte_view{out}.first(written),
            "a packet is appended completely or not at all");
    for (size_t i = written; i < sizeof space; ++i) {
        require(space[i] == 0xEE, "no other byte is written");
    }
}

template <class... Packets>
void check_one(type_list<Packets...>, unsigned index, wide_bits bits, block items, unsigned room) {
    unsigned i = 0;
    ((i++ == index ? check_encode(Packets{from_wide<typename Packets::raw_type>(bits)}, items, room)
                   : void()),
     ...);
}

/// Encodes and decodes a packet, and returns the result.
template <class Packet>
auto there_and_back(Packet const& packet) -> Packet {
    auto const out = packet::encode(packet);
    require(static_cast<bool>(out), "a packet from these functions can be encoded");
    auto const back = packet::decode_as<Packet>(out);
    require(back && back.length == out.size() && back.packet == packet,
            "a packet from these functions is unchanged");
    return back.packet;
}

/// Tries the forms in the order of PKT-064; the first that reconstructs the IP is expected.
template <class Packet>
void check_compression(uint64_t ip, uint64_t last_ip) {
    auto const packet = there_and_back(Packet::compressed(ip, last_ip));
    require(packet.ip(last_ip) == ip, "the IP is reconstructed");
    for (auto const form :
         {packet::ip_bytes::update_16, packet::ip_bytes::update_32, packet::ip_bytes::sign_48,
          packet::ip_bytes::update_48, packet::ip_bytes::full}) {
        auto const one = there_and_back(Packet::of(form, ip));
        fuzz::copy const bytes{packet::encode(one)};
        bool const rebuilds = naive::last_ip_after(bytes, 0, last_ip) == ip;
        require((one.ip(last_ip) == ip) == rebuilds, "a form reconstructs the IP of the catalogue");
        if (rebuilds) {
            require(one == packet, "the first form that fits is used");
            break;
        }
    }
}

template <class Packet>
void check_branches(uint64_t bits, unsigned count) {
    auto const packet = Packet::of({count, bits});
    bool const legal = count >= 1 && count <= Packet::max_branches;
    require(static_cast<bool>(packet::encode(packet)) == legal, "a TNT encodes a legal count only");
    if (legal) {
        auto const back = there_and_back(packet).taken();
        require(back.count == count && back.bits == (bits & ((uint64_t{1} << count) - 1)),
                "the branches are unchanged");
        for (unsigned i = 0; i < count; ++i) {
            require(back.taken(i) == ((bits >> (count - 1 - i)) % 2 != 0), "oldest branch first");
        }
    }
}

void check_cyc(uint64_t value, unsigned at_least) {
    auto const packet = there_and_back(packet::cyc::of(value, at_least));
    require(packet.value() == value, "the count is unchanged");
    unsigned fewest = 1;
    for (uint64_t rest = value >> 5; rest != 0; rest >>= 7) { ++fewest; }
    require(packet.length() == (at_least > fewest ? at_least < 10 ? at_least : 10 : fewest),
            "the count has the fewest bytes, or at_least bytes");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    unsigned const choice = from.byte();
    block const items = (choice & 0x40) == 0   ? block::none
                        : (choice & 0x20) == 0 ? block::items_of_4
                                               : block::items_of_8;
    unsigned const room = from.byte() % 32U;
    wide_bits bits{};
    bits.low = from.number();
    bits.high = from.number();
    unsigned const which = (choice / 0x80 * 32 + choice % 32) % packet::all::size;
    check_one(packet::all{}, which, bits, items, room);

    uint64_t const one = from.number();
    uint64_t const two = from.number();
    unsigned const count = from.byte();
    check_compression<packet::tip>(one, two);
    check_compression<packet::fup>(one, one ^ two >> (count % 64));
    check_branches<packet::tnt_short>(one, count % 8);
    check_branches<packet::tnt_long>(one, count % 64);
    check_cyc(one, count % 12);
    check_cyc(one >> (count % 64), 1);
    return 0;
}
