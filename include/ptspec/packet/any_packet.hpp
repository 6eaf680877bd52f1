// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/list.hpp>

namespace ptspec::packet {

/// Calls `body.operator()<Packet>()` for the packet type of one kind. Where the body returns
/// something, a value-initialised result has to exist.
template <class Body, class First, class... Rest>
[[gnu::always_inline]]  // so that what the body refers to can stay in registers
constexpr auto
for_kind(kind which, Body&& body, type_list<First, Rest...> /*packets*/) {
    using result = decltype(body.template operator()<First>());
    if constexpr (same_as<result, void>) {
        (void)((which == First::about.id ? (body.template operator()<First>(), true) : false) ||
               ... || (which == Rest::about.id ? (body.template operator()<Rest>(), true) : false));
    } else {
        result out{};
        (void)((which == First::about.id ? (out = body.template operator()<First>(), true)
                                         : false) ||
               ... ||
               (which == Rest::about.id ? (out = body.template operator()<Rest>(), true) : false));
        return out;
    }
}

namespace detail {

/// The first `length` bytes.
constexpr auto first_bytes(wide_bits bits, unsigned length) noexcept -> wide_bits {
    return {bits.low & low_bits(8 * length),
            length > 8 ? bits.high & low_bits(8 * length - 64) : 0};
}

/// What `any_packet` keeps, for who found it out by a table.
struct known_packet {
    wide_bits bits{};
    unsigned length = 0;
    kind which = kind::pad;
};

}  // namespace detail

/// Any of the packets: its bytes, its kind and its length. PAD unless said otherwise.
///
/// Shape:  at most 24 bytes, trivially copyable.
class any_packet {
public:
    constexpr any_packet() noexcept = default;

    template <packet_type Packet>
    constexpr any_packet(Packet const& packet, unsigned length) noexcept
        : bytes_{detail::widen(packet.raw)},
          kind_{Packet::about.id},
          length_{static_cast<uint8_t>(length)} {}

    /// A packet whose own bits tell its length: every one but BIP.
    template <packet_type Packet>
        requires(!same_as<typename Packet::payload_type, payload_of_block>)
    constexpr any_packet(Packet const& packet) noexcept
        : any_packet{packet, Packet::length_of(packet.raw, block::none)} {}

    constexpr explicit any_packet(detail::known_packet known) noexcept
        : bytes_{known.bits}, kind_{known.which}, length_{static_cast<uint8_t>(known.length)} {}

    [[nodiscard]] constexpr auto kind() const noexcept -> packet::kind { return kind_; }
    /// How many bytes it has on the wire.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned { return length_; }
    /// Its bytes as one little-endian number.
    [[nodiscard]] constexpr auto raw() const noexcept -> wide_bits { return bytes_; }

    template <packet_type Packet>
    [[nodiscard]] constexpr auto is() const noexcept -> bool {
        return kind_ == Packet::about.id;
    }
    /// The packet, which has to be a `Packet`.
    template <packet_type Packet>
    [[nodiscard]] constexpr auto as() const noexcept -> Packet {
        return Packet{detail::narrow<typename Packet::raw_type>(bytes_)};
    }

    friend constexpr auto operator==(any_packet const&, any_packet const&) -> bool = default;

private:
    wide_bits bytes_{};
    packet::kind kind_ = packet::kind::pad;
    uint8_t length_ = 1;
};

static_assert(sizeof(any_packet) <= 24 && __is_trivially_copyable(any_packet));

/// Calls `visitor` with the packet as what it is, and returns what it returned. The results for all
/// packets are of one type, which is void or has a default.
template <class Packets = all, class Visitor>
[[gnu::always_inline]]  // as above
constexpr auto
visit(Visitor&& visitor, any_packet const& packet) {
    return for_kind(
        packet.kind(), [&]<class Packet>() { return visitor(packet.template as<Packet>()); },
        Packets{});
}

/// The block context behind a packet.
///
/// Source: PKT-205.
template <packet_type Packet>
[[nodiscard]] constexpr auto block_after(Packet const& packet, block before) noexcept -> block {
    if constexpr (same_as<Packet, bbp>) {
        return packet.opens();
    } else {
        return Packet::about.keeps_block ? before : block::none;
    }
}

template <class Packets = all>
[[nodiscard]] constexpr auto block_after(any_packet const& packet, block before) noexcept -> block {
    return visit<Packets>([=](auto const& one) { return block_after(one, before); }, packet);
}

/// The last IP after a packet, given the one before it.
///
/// Source: PKT-059, PKT-060, PKT-061, PKT-068.
template <packet_type Packet>
[[nodiscard]] constexpr auto last_ip_after(Packet const& packet, uint64_t before) noexcept
    -> uint64_t {
    if constexpr (derived_from<Packet, ip_packet<Packet>>) {
        return packet.ip(before);
    } else {
        return same_as<Packet, psb> ? 0 : before;
    }
}

template <class Packets = all>
[[nodiscard]] constexpr auto last_ip_after(any_packet const& packet, uint64_t before) noexcept
    -> uint64_t {
    return visit<Packets>([=](auto const& one) { return last_ip_after(one, before); }, packet);
}

}  // namespace ptspec::packet
