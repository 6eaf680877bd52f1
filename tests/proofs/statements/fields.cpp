// SPDX-License-Identifier: BSL-1.0
// The fields of packets, in the order of their bits: their values, and packets with another value.
#include <tests/proofs/statements/packets.hpp>
#include <ptspec/packet/list.hpp>

using namespace ptspec;

namespace {

template <class Packet>
auto packet_of(uint64_t low, uint64_t high) -> Packet {
    return Packet{from_wide<typename Packet::raw_type>(wide_bits{low, high})};
}

template <class Packet, class... Rows>
void values(type_list<Rows...>, Packet which, uint64_t* to) {
    (
        [&] {
            if constexpr (Rows::kind == row_kind::field) {
                *to++ = static_cast<uint64_t>(which.template get<Rows>());
            }
        }(),
        ...);
}

template <class Packet, class... Rows>
auto changed(type_list<Rows...>, Packet which, uint32_t field, uint64_t value) -> Packet {
    Packet made = which;
    uint32_t at = 0;
    (
        [&] {
            if constexpr (Rows::kind == row_kind::field) {
                if (at++ == field) { made = which.with(Rows{wrapped{value}}); }
            }
        }(),
        ...);
    return made;
}

}  // namespace

extern "C" {

#define PACKET(name)                                                                               \
    void values_##name(uint64_t low, uint64_t high, uint64_t(&to)[5]) {                            \
        values(packet::name::layout::rows{}, packet_of<packet::name>(low, high), to);              \
    }                                                                                              \
    void with_##name(uint64_t low, uint64_t high, uint32_t field, uint64_t value,                  \
                     uint64_t(&to)[2]) {                                                           \
        auto const made = to_wide(changed(packet::name::layout::rows{},                            \
                                          packet_of<packet::name>(low, high), field, value)        \
                                      .raw);                                                       \
        to[0] = made.low;                                                                          \
        to[1] = made.high;                                                                         \
    }
PACKETS_WITH_FIELDS(PACKET)
}  // extern "C"
