// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/kind.hpp>
#include <ptspec/base/word.hpp>

/// The common part of all packets: the bits on the wire and the length.
namespace ptspec::packet {

/// The payload size for reserved values of the field that selects it.
inline constexpr unsigned undefined_size = ~0U;

/// Payload sizes in bytes, indexed by the field declared with `selects_payload`.
template <unsigned... Sizes>
struct payload_of {
    static constexpr unsigned largest = [] {
        unsigned max_size = 0;
        ((max_size = Sizes != undefined_size && Sizes > max_size ? Sizes : max_size), ...);
        return max_size;
    }();
    [[nodiscard]] static constexpr auto size(uint64_t selector) noexcept -> unsigned {
        constexpr unsigned sizes[] = {Sizes...};
        return sizes[selector];
    }
};

struct no_payload {
    static constexpr unsigned largest = 0;
};

/// The payload of a BIP, an item of the open block. The BBP of the block gives its size, not the
/// packet.
struct payload_of_block {
    static constexpr unsigned largest = 8;
};

/// The payload of a CYC: each byte says whether another one follows, up to `MaxBytes` bytes.
template <unsigned MaxBytes>
struct payload_continues {
    static constexpr unsigned largest = MaxBytes;
};

namespace detail {

using namespace ptspec::detail;

constexpr auto bits_at(uint64_t const* values, unsigned const* places, size_t count) noexcept
    -> wide_bits {
    wide_bits all{};
    for (size_t i = 0; i < count; ++i) {
        if (values[i] != 0) { all = all | shifted_left<wide_bits>(values[i], places[i]); }
    }
    return all;
}
template <class Raw, class... Rows>
constexpr auto all_fixed_bits(type_list<Rows...>) noexcept -> Raw {
    uint64_t const values[] = {Rows::fixed_value...};
    unsigned const places[] = {Rows::lsb...};
    return from_wide<Raw>(bits_at(values, places, sizeof...(Rows)));
}

/// The fixed bits of a packet: its opcode, leaf and pattern.
template <class Packet>
inline constexpr auto opcode_bits = all_fixed_bits<typename Packet::raw_type>(
    typename Packet::layout::rows{});

/// The row of a layout that selects the payload size, if there is one.
template <class... Rows>
struct selector_among {};
template <class First, class... Rest>
struct selector_among<First, Rest...> : selector_among<Rest...> {};
template <class First, class... Rest>
    requires(First::selects_the_payload)
struct selector_among<First, Rest...> {
    using row = First;
};

template <class... Rows>
auto selector_in(type_list<Rows...>) -> selector_among<Rows...>;

}  // namespace detail

/// The field of a packet that selects its payload size: IPBytes of a TIP, PayloadBytes of a PTW.
/// Only packets whose payload is `payload_of` have one.
template <class Packet>
using payload_selector = typename decltype(detail::selector_in(
    typename Packet::layout::rows{}))::row;

/// A packet: its bytes as one little-endian number. Bit 8n+b is bit b of byte n.
///
/// `Derived` declares the fields of its first `HeadBytes` bytes and `struct layout :
/// bit_layout<...>` that tiles them, opcode included. `Payload` describes the bytes after them.
template <class Derived, unsigned HeadBytes, class Payload = no_payload>
struct packet_word
    : bit_word<Derived, choose_t<(HeadBytes + Payload::largest > 8), wide_bits, uint64_t>> {
    using word =
        bit_word<Derived, choose_t<(HeadBytes + Payload::largest > 8), wide_bits, uint64_t>>;
    using raw_type = typename word::raw_type;
    using payload_type = Payload;
    static constexpr unsigned head_bytes = HeadBytes;
    static constexpr unsigned max_bytes = HeadBytes + Payload::largest;

    /// The packet with all fields 0.
    constexpr packet_word() noexcept : word{detail::opcode_bits<Derived>} {
        static_assert(Derived::layout::bits == 8 * HeadBytes);
    }
    constexpr packet_word(raw_type bits) noexcept : word{bits} {}

    /// The bytes after the head, as a little-endian number. Missing bytes are 0.
    [[nodiscard]] constexpr auto payload() const noexcept -> uint64_t
        requires(Payload::largest != 0)
    {
        return detail::shifted_right(this->raw, 8 * HeadBytes) & low_bits(8 * Payload::largest);
    }

    /// Returns the packet with another payload, truncated to the bits that fit.
    [[nodiscard]] constexpr auto with_payload(uint64_t number) const noexcept -> Derived
        requires(Payload::largest != 0)
    {
        constexpr auto place = detail::bit_mask<raw_type>(8 * HeadBytes + 8 * Payload::largest - 1,
                                                          8 * HeadBytes);
        return Derived{(this->raw & ~place) |
                       (detail::shifted_left<raw_type>(number, 8 * HeadBytes) & place)};
    }

    // A packet with further rules declares static functions of its raw bits:
    //   broken_header       the rule that a header field violates: the packet is `reserved`
    //   broken_payload      the rule that the whole packet violates: it is `bad_packet`
    //   broken_when_strict  the same, checked only in strict mode

    /// The length of the packet in bytes, computed from the bytes present.
    [[nodiscard]] static constexpr auto length_of(raw_type raw, block items) noexcept -> unsigned {
        if constexpr (same_as<Payload, payload_of_block>) {
            return HeadBytes + underlying(items);
        } else if constexpr (Payload::largest != 0) {
            return HeadBytes + selected_size(raw);
        } else {
            return HeadBytes;
        }
    }

protected:
    /// The payload size that the selecting field gives, or `undefined_size`.
    [[nodiscard]] static constexpr auto selected_size(raw_type raw) noexcept -> unsigned {
        using selector = payload_selector<Derived>;
        return Payload::size(detail::bits_between(raw, selector::msb, selector::lsb));
    }
};

namespace detail {

/// The bits of the rows for which a different value gives the decode result `wanted`.
template <class... Rows>
constexpr auto bits_of_mismatch(type_list<Rows...> rows, mismatch wanted) noexcept -> uint64_t {
    mismatch const mismatches[] = {Rows::on_mismatch...};
    return bits_where<uint64_t>(rows, mismatches, wanted);
}

}  // namespace detail

/// An opcode: the bits that are compared, and their values.
///
/// Shape:  up to three bytes, the first in bits 7:0.
struct masked_opcode {
    uint32_t mask = 0;
    uint32_t value = 0;

    friend constexpr auto operator==(masked_opcode const&, masked_opcode const&) -> bool = default;
};

/// The opcode of a packet type without its leaf: MODE.Exec and MODE.TSX have the same.
///
/// Source: PKT-010..016.
template <class Packet>
[[nodiscard]] constexpr auto opcode_of() noexcept -> masked_opcode {
    constexpr uint64_t mask = detail::bits_of_mismatch(typename Packet::layout::rows{},
                                                       mismatch::bad_opcode);
    static_assert(mask >> 24 == 0, "an opcode has at most three bytes");
    return {static_cast<uint32_t>(mask),
            static_cast<uint32_t>(to_wide(detail::opcode_bits<Packet>).low & mask)};
}

/// The bits that select a packet type among those with the same opcode, the leaf of MODE. 0 for
/// packets that have no leaf.
template <class Packet>
inline constexpr uint64_t leaf_mask = detail::bits_of_mismatch(typename Packet::layout::rows{},
                                                               mismatch::reserved);

/// The bits that have one value in every packet of a type: opcode, leaf and pattern. `Packet{}` has
/// this value.
template <class Packet>
inline constexpr auto fixed_mask =
    detail::kind_mask<typename Packet::raw_type, typename Packet::layout, row_kind::fixed>;

}  // namespace ptspec::packet
