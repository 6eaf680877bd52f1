// SPDX-License-Identifier: BSL-1.0
// Fuzzes decoding: any bytes in any context.
//
//   byte 0    bits 1:0 the block (2 and 3: items of 4 and 8 bytes), bit 2 strict
//   byte 1..  the bytes to decode, also each prefix of them

#include <ptspec/packet/encode.hpp>

#include <fuzz/check.hpp>
#include <fuzz/naive.hpp>

namespace {

using fuzz::require;
using namespace ptspec;
using packet::kind;

/// The reserved bits in a byte of a packet, from the layouts of the rule catalogue.
auto reserved_in(kind which, unsigned byte) -> uint8_t {
    auto const& row = test::packet_rows[underlying(which)];
    unsigned mask = 0;
    for (unsigned i = 0; i < row.field_count; ++i) {
        auto const& field = row.fields[i];
        for (unsigned bit = field.lsb; field.name == "rsvd" && bit <= field.msb; ++bit) {
            if (bit / 8 == byte) { mask |= 1U << bit % 8; }
        }
    }
    return static_cast<uint8_t>(mask);
}

auto is_same(packet::decoded const& one, packet::decoded const& two) -> bool {
    return one.packet == two.packet && one.error == two.error && one.need == two.need &&
           one.broken == two.broken;
}

/// Checks one result.
void check_result(byte_view in, packet::decode_options how, packet::decoded const& got) {
    require((got.error == packet::error::none) == (got.broken == rule::none),
            "an error has a rule, a packet has none");
    if (got.error == packet::error::truncated) {
        require(got.need > in.size() && got.need <= 16, "truncated needs more bytes, at most 16");
        require(got.broken == rule::PKT_255, "truncated breaks PKT-255");
    } else {
        require(got.need == 0, "only truncated needs more bytes");
    }
    if (!got) {
        require(got.length() == 0, "an error consumes nothing");
        require(got.packet == packet::any_packet{}, "an error has no packet");
        return;
    }
    require(got.length() >= 1 && got.length() <= in.size(), "a packet is within the input");
    for (unsigned i = 0; i < 16; ++i) {
        auto const byte = static_cast<uint8_t>(i < 8 ? got.packet.raw().low >> (8 * i)
                                                     : got.packet.raw().high >> (8 * (i - 8)));
        require(byte == (i < got.length() ? in[i] : 0), "the bits of a packet are its bytes");
    }

    auto const out = packet::encode(got.packet, how.block);
    require(static_cast<bool>(out), "a decoded packet can be encoded");
    require(out.size() == got.length(), "encoding keeps the length");
    bool reserved_bits = false;
    for (unsigned i = 0; i < out.size(); ++i) {
        uint8_t const reserved = reserved_in(got.packet.kind(), i);
        require(out.bytes[i] == (in[i] & ~reserved), "encoding clears only reserved bits");
        reserved_bits = reserved_bits || (in[i] & reserved) != 0;
    }
    require(!(how.strict && reserved_bits && got.packet.is<packet::tma>()),
            "strict mode rejects a reserved bit of TMA");
    fuzz::copy const bytes{out};
    auto const back = packet::decode(bytes, how);
    require(back && back.packet.kind() == got.packet.kind() && back.length() == got.length(),
            "an encoded packet is decoded");
    require(reserved_bits || back.packet == got.packet, "the packet is unchanged");
}

/// Checks decode_as of the same bytes for one packet type.
template <class Packet>
void check_as(byte_view in, packet::decode_options how, packet::decoded const& any) {
    auto const got = packet::decode_as<Packet>(in, how);
    bool const is_it = any && any.packet.is<Packet>();
    require(static_cast<bool>(got) == is_it, "decode_as accepts this packet only");
    require(got.length == (is_it ? any.length() : 0), "decode_as consumes what decode does");
    require(!is_it || got.packet == any.packet.as<Packet>(), "decode_as returns the same packet");
    require(is_it || (got.error == any.error && got.need == any.need && got.broken == any.broken) ||
                (got.error == packet::error::bad_opcode && got.broken == rule::PKT_010),
            "decode_as fails as decode does, or on another packet");
}

template <class... Packets>
void check_as_each(type_list<Packets...>, byte_view in, packet::decode_options how,
                   packet::decoded const& any) {
    (check_as<Packets>(in, how, any), ...);
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    unsigned const choice = from.byte();
    packet::decode_options const how{(choice & 2) == 0   ? packet::block::none
                                     : (choice & 1) == 0 ? packet::block::items_of_4
                                                         : packet::block::items_of_8,
                                     (choice & 4) != 0};
    byte_view const bytes = from.rest().first(24);

    packet::decoded before{};
    for (size_t length = 0; length <= bytes.size(); ++length) {
        fuzz::copy const prefix{bytes.first(length)};
        auto const got = packet::decode(prefix, how);
        check_result(prefix, how, got);
        check_as_each(packet::all{}, prefix, how, got);

        auto const expected = naive::decode(prefix, underlying(how.block), how.strict);
        require(got.error == expected.why && got.need == expected.need &&
                    got.length() == expected.length && got.packet.kind() == expected.which,
                "decode follows the catalogue's grammar");

        if (length != 0) {
            if (before.error != packet::error::truncated) {
                require(is_same(got, before), "more bytes do not change a complete result");
            } else if (length < before.need) {
                require(got.error == packet::error::truncated && got.need >= before.need,
                        "fewer bytes than `need` are truncated");
            } else {
                require(got.error != packet::error::truncated || got.need > before.need,
                        "`need` bytes are enough, or `need` grows");
            }
        }
        before = got;
    }
    return 0;
}
