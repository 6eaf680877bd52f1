// SPDX-License-Identifier: BSL-1.0
// Decoding and encoding of every packet. With ONLY_DECODE or ONLY_ENCODE only one of both.
#include <tests/proofs/statements/packets.hpp>

#include <ptspec/packet/encode.hpp>

using namespace ptspec;
using packet::block;

namespace {

/// The error, the bytes needed, the length and the rule as one number.
auto outcome(packet::error error, unsigned need, unsigned length, rule broken) -> uint64_t {
    return static_cast<uint64_t>(error) | uint64_t{need} << 8 | uint64_t{length} << 16 |
           static_cast<uint64_t>(broken) << 32;
}

template <class Packet>
auto encode_as(uint64_t low, uint64_t high, uint8_t items, uint64_t (&to)[2]) -> uint32_t {
    Packet const made{from_wide<typename Packet::raw_type>(wide_bits{low, high})};
    auto const bytes = packet::encode_wide(made, static_cast<block>(items));
    to[0] = bytes.bytes.low;
    to[1] = bytes.bytes.high;
    return bytes.length | static_cast<uint32_t>(bytes.broken) << 16;
}

template <class... Rows>
void store_fields(type_list<Rows...>, auto const& packet, uint64_t* to) {
    (
        [&] {
            if constexpr (Rows::kind == row_kind::field) {
                *to++ = ptspec::detail::bits_between(packet.raw, Rows::msb, Rows::lsb);
            }
        }(),
        ...);
}

}  // namespace

extern "C" {

#ifndef ONLY_ENCODE
uint64_t decode(uint8_t const (&bytes)[16], uint32_t size, uint8_t items, bool strict,
                uint64_t (&to)[3]) {
    if (size > 16) { __builtin_unreachable(); }  // bounds the loops
    auto const found = packet::decode({bytes, size}, {static_cast<block>(items), strict});
    to[0] = found.packet.raw().low;
    to[1] = found.packet.raw().high;
    to[2] = static_cast<uint64_t>(found.packet.kind());
    return outcome(found.error, found.need, found.length(), found.broken);
}
#endif

#ifndef ONLY_DECODE
#define PACKET(name)                                                                               \
    uint32_t encode_##name(uint64_t low, uint64_t high, uint8_t items, uint64_t(&to)[2]) {         \
        return encode_as<packet::name>(low, high, items, to);                                      \
    }
PACKETS(PACKET)
#undef PACKET

uint64_t cyc_of(uint64_t count, uint32_t bytes, uint64_t (&to)[2]) {
    auto const made = packet::cyc::of(count, bytes);
    to[0] = made.raw.low;
    to[1] = made.raw.high;
    return made.length();
}
uint64_t cyc_value(uint64_t low, uint64_t high) {
    return packet::cyc{wide_bits{low, high}}.value();
}
uint64_t tnt_short_of(uint32_t count, uint64_t bits) {
    return packet::tnt_short::of({count, bits}).raw;
}
uint64_t tnt_long_of(uint32_t count, uint64_t bits) {
    return packet::tnt_long::of({count, bits}).raw;
}
void tnt_short_taken(uint64_t raw, uint64_t (&to)[2]) {
    auto const found = packet::tnt_short{raw}.taken();
    to[0] = found.count;
    to[1] = found.bits;
}
void tnt_long_taken(uint64_t raw, uint64_t (&to)[2]) {
    auto const found = packet::tnt_long{raw}.taken();
    to[0] = found.count;
    to[1] = found.bits;
}
#endif

}  // extern "C"
