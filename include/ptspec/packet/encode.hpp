// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/decode.hpp>

/// Encodes packets to bytes. Refuses every packet that `decode` would not read back unchanged.
namespace ptspec::packet {

/// The bytes of a packet, or the rule that it violates.
template <unsigned MaxBytes>
struct encoded {
    byte_array<MaxBytes> bytes{};
    unsigned length = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
    [[nodiscard]] constexpr auto data() const noexcept -> uint8_t const* { return bytes.data(); }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return length; }

    friend constexpr auto operator==(encoded const& one, byte_view two) noexcept -> bool {
        return byte_view{one} == two;
    }
};

namespace detail {

/// The bits of a packet with the opcode set and the reserved bits 0.
template <class Packet>
constexpr auto canonical_bits(Packet const& packet) noexcept -> wide_bits {
    constexpr wide_bits kept = ~(to_wide(Packet::reserved_mask()) | to_wide(fixed_mask<Packet>));
    return (to_wide(packet.raw) & kept) | to_wide(Packet{}.raw);
}

/// The rule that these bits violate as a `Packet`, or `none`.
template <class Packets, class Packet>
constexpr auto violated_rule(wide_bits bits, block items) noexcept -> rule {
    using raw = typename Packet::raw_type;
    if (rule const broken = broken_header<Packet>(from_wide<raw>(bits)); broken != rule::none) {
        return broken;
    }
    if (rule const broken = broken_payload<Packet>(from_wide<raw>(bits), false);
        broken != rule::none) {
        return broken;
    }
    auto const read = classify_first<Packets>(static_cast<uint8_t>(bits.low), items);
    if (read.what == opcode_byte::meaning::packet &&
        opcode_of_kind(read.id, Packets{}) != opcode_of<Packet>()) {
        return rule::PKT_344;
    }
    unsigned const length = Packet::length_of(from_wide<raw>(bits), items);
    return bits == first_bytes(bits, length) ? rule::none : rule::PKT_340;
}

}  // namespace detail

/// The bytes of a packet as one little-endian number, or the rule that it violates.
struct encoded_wide {
    wide_bits bytes{};  ///< 0 after the first `length` bytes
    unsigned length = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

/// Encodes a packet as `encode` does, to a number: for writers that store 16 bytes at once.
///
/// Errors: those of `encode`.
/// Source: PKT-340..346.
template <packet_type Packet, class Packets = all>
[[nodiscard]] constexpr auto encode_wide(Packet const& packet, block items = block::none) noexcept
    -> encoded_wide {
    wide_bits const bits = detail::canonical_bits(packet);
    rule const broken = detail::violated_rule<Packets, Packet>(bits, items);
    if (broken != rule::none) { return {{}, 0, broken}; }
    return {bits, Packet::length_of(from_wide<typename Packet::raw_type>(bits), items), rule::none};
}

/// Encodes a packet. Reserved bits are written as 0.
///
/// Errors: the rule that the packet violates: a reserved value in its header, no branch in a TNT, a
///         payload longer than its size field gives (PKT-340), a TNT.short or BIP that would be
///         decoded as the other one (PKT-344).
/// Source: PKT-340..347.
template <packet_type Packet, class Packets = all>
[[nodiscard]] constexpr auto encode(Packet const& packet, block items = block::none) noexcept
    -> encoded<Packet::max_bytes> {
    auto const wide = encode_wide<Packet, Packets>(packet, items);
    encoded<Packet::max_bytes> out{{}, wide.length, wide.broken};
    copy_bytes(out.bytes.data(), to_le(wide.bytes).data(), wide.length);
    return out;
}

template <class Packets = all>
[[nodiscard]] constexpr auto encode(any_packet const& packet, block items = block::none) noexcept
    -> encoded<16> {
    if (packet.kind() == kind::none) { return {{}, 0, rule::PKT_015}; }
    return for_kind(
        packet.kind(),
        [&]<class Packet>() {
            auto const one = encode(packet.template as<Packet>(), items);
            encoded<16> out;
            out.length = one.length;
            out.broken = one.broken;
            for (unsigned i = 0; i < one.length; ++i) { out.bytes.bytes[i] = one.bytes[i]; }
            return out;
        },
        Packets{});
}

/// Appends a packet to `out`, completely or not at all.
///
/// Errors: the errors of `encode`, and PKT-347 when there is no room. On an error nothing is
///         written.
/// Source: PKT-347.
template <class Packet>
    requires(packet_type<Packet> || same_as<Packet, any_packet>)
[[nodiscard]] constexpr auto append(byte_buffer& out, Packet const& packet,
                                    block items = block::none) noexcept -> rule {
    auto const bytes = encode(packet, items);
    return !bytes ? bytes.broken : out.append(bytes) ? rule::none : rule::PKT_347;
}

}  // namespace ptspec::packet
