// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/packet/any_packet.hpp>
#include <ptspec/packet/classify.hpp>

/// Decodes bytes to packets. A pure function of the bytes and the block's item size.
namespace ptspec::packet {

/// Everything that a decode depends on besides the bytes.
struct decode_options {
    packet::block block = packet::block::none;
    bool strict = false;  ///< a set reserved bit of TMA is `bad_packet` (PKT-003, PKT-104)
};

/// The result of a decode.
struct decoded {
    any_packet packet{};  ///< valid if `error` is `none`
    packet::error error = packet::error::none;
    uint8_t need = 0;          ///< if truncated: the bytes known to be required so far, at most 16
    rule broken = rule::none;  ///< the rule that was violated

    constexpr explicit operator bool() const noexcept { return error == error::none; }
    /// The number of bytes consumed: 0 after an error.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned {
        return error == error::none ? packet.length() : 0;
    }
};

/// The result of a decode as one packet type.
template <class Packet>
struct decoded_as {
    Packet packet{};
    unsigned length = 0;  ///< the number of bytes consumed: 0 after an error
    packet::error error = packet::error::none;
    uint8_t need = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return error == error::none; }
};

/// The result of a decode with a visitor, which takes the packet. The members are as in `decoded`.
struct decode_result {
    packet::error error = packet::error::none;
    uint8_t need = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return error == error::none; }
};

/// The rule that makes a packet `reserved`, or `none`: a reserved value in its header. `bits` must
/// have the header; the bytes after it may be missing.
template <class Packet>
[[nodiscard]] constexpr auto broken_header(typename Packet::raw_type bits) noexcept -> rule {
    if constexpr (requires { Packet::broken_header(bits); }) {
        return Packet::broken_header(bits);
    } else {
        return rule::none;
    }
}

/// The rule that makes a packet `bad_packet`, or `none`. `bits` must have all bytes of the packet,
/// and `strict` is as in `decode_options`.
template <class Packet>
[[nodiscard]] constexpr auto broken_payload(typename Packet::raw_type bits, bool strict) noexcept
    -> rule {
    if constexpr (requires { Packet::broken_payload(bits); }) {
        return Packet::broken_payload(bits);
    } else if constexpr (requires { Packet::broken_when_strict(bits); }) {
        return strict ? Packet::broken_when_strict(bits) : rule::none;
    } else {
        return rule::none;
    }
}

namespace detail {

constexpr auto truncated(unsigned need) noexcept -> decode_result {
    return {error::truncated, static_cast<uint8_t>(need), rule::PKT_255};
}

struct no_sibling {};

/// True if `Other` is a later type with the same opcode.
template <class Packet, class Other>
constexpr auto is_sibling() noexcept -> bool {
    return underlying(Other::about.id) > underlying(Packet::about.id) &&
           opcode_of<Other>() == opcode_of<Packet>();
}

template <class Packet, class... Rest>
struct sibling_among {
    using type = no_sibling;
};
template <class Packet, class First, class... Rest>
struct sibling_among<Packet, First, Rest...> : sibling_among<Packet, Rest...> {};
template <class Packet, class First, class... Rest>
    requires(is_sibling<Packet, First>())
struct sibling_among<Packet, First, Rest...> {
    using type = First;
};
template <class Packet, class... Packets>
auto sibling_in(type_list<Packets...>) -> typename sibling_among<Packet, Packets...>::type;

/// Decodes everything after the opcode: header, length, payload. Missing bytes read as 0, which is
/// a valid value in every header, so a short header fails the length check.
template <class Packets, class Packet, class Sink>
constexpr auto decode_after_opcode(wide_bits image, size_t present, decode_options options,
                                   Sink&& sink) -> decode_result {
    using raw = typename Packet::raw_type;
    if constexpr (leaf_mask<Packet> != 0) {
        if (((image.low ^ to_wide(Packet{}.raw).low) & leaf_mask<Packet>) != 0) {
            using sibling = decltype(sibling_in<Packet>(Packets{}));
            if constexpr (same_as<sibling, no_sibling>) {
                return {error::reserved, 0, Packet::unknown_leaf};
            } else {
                return decode_after_opcode<Packets, sibling>(image, present, options, sink);
            }
        }
    }
    rule broken = broken_header<Packet>(from_wide<raw>(image));
    if (broken != rule::none) { return {error::reserved, 0, broken}; }
    unsigned const length = Packet::length_of(from_wide<raw>(image), options.block);
    if (present < length) { return truncated(length); }
    raw const bits = from_wide<raw>(first_bytes(image, length));
    broken = broken_payload<Packet>(bits, options.strict);
    if (broken != rule::none) { return {error::bad_packet, 0, broken}; }
    sink(Packet{bits}, length);
    return {};
}

/// The packet whose opcode is at the front, or the failure.
struct opcode_result {
    decode_result failed{};
    kind id = kind::pad;
};

template <class Opcodes>
constexpr auto find_opcode(wide_bits image, size_t present, block items) noexcept -> opcode_result {
    if (present == 0) { return {truncated(1)}; }
    auto opcode = Opcodes::first(static_cast<uint8_t>(image.low), items);
    if (opcode.what == opcode_byte::meaning::packet) { return {{}, opcode.id}; }
    rule unknown = rule::PKT_015;
    if (opcode.what == opcode_byte::meaning::prefix) {
        if (present < 2) { return {truncated(2)}; }
        opcode = Opcodes::ext(static_cast<uint8_t>(image.low >> 8));
        unknown = rule::PKT_012;
        if (opcode.what == opcode_byte::meaning::prefix) {
            if (present < 3) { return {truncated(3)}; }
            opcode = Opcodes::ext2(static_cast<uint8_t>(image.low >> 16));
            unknown = rule::PKT_013;
        }
    }
    if (opcode.what == opcode_byte::meaning::invalid) { return {{error::bad_opcode, 0, unknown}}; }
    return {{}, opcode.id};
}

/// The first packet type with the same opcode as `Packet`. The opcode tables name this type.
template <class Packet, class... Packets>
struct first_with_opcode_among;
template <class Packet, class First, class... Rest>
struct first_with_opcode_among<Packet, First, Rest...> : first_with_opcode_among<Packet, Rest...> {
};
template <class Packet, class First, class... Rest>
    requires(opcode_of<First>() == opcode_of<Packet>())
struct first_with_opcode_among<Packet, First, Rest...> {
    using type = First;
};
template <class Packet, class... Packets>
auto first_with_opcode_of(type_list<Packets...>) ->
    typename first_with_opcode_among<Packet, Packets...>::type;

}  // namespace detail

/// Decodes the packet at the front of `in` and calls `visitor(packet, length)` with the packet as
/// its own type. After an error the visitor is not called.
///
/// Errors: those of `decode`.
/// Source: PKT-003..006, PKT-010..016, PKT-255.
template <class Packets = all, class Visitor>
[[nodiscard]] constexpr auto decode(byte_view in, decode_options options, Visitor&& visitor)
    -> decode_result {
    wide_bits const image = load_le_wide(in);
    auto const opcode = detail::find_opcode<detail::opcodes<Packets>>(image, in.size(),
                                                                      options.block);
    return !opcode.failed ? opcode.failed
                          : for_kind(
                                opcode.id,
                                [&]<class Packet>() {
                                    return detail::decode_after_opcode<Packets, Packet>(
                                        image, in.size(), options, visitor);
                                },
                                Packets{});
}

/// Decodes the packet at the front of `in`. Empty input is `truncated` with need 1.
///
/// Errors: truncated, bad_opcode, reserved, bad_packet, checked in this order; but reserved is
///         checked before a truncated payload. An error consumes nothing.
/// Source: PKT-003..006, PKT-010..016, PKT-255.
template <class Packets = all>
[[nodiscard]] constexpr auto decode(byte_view in, decode_options options = {}) noexcept -> decoded {
    decoded out;
    auto const result = decode<Packets>(in, options, [&](auto const& packet, unsigned length) {
        out.packet = any_packet{packet, length};
    });
    out.error = result.error;
    out.need = result.need;
    out.broken = result.broken;
    return out;
}

/// Decodes the packet at the front of `in` as a `Packet`. Any other packet, complete or not, is
/// `bad_opcode`. An error in a MODE packet is reported for both MODE types, since they share an
/// opcode.
template <packet_type Packet, class Packets = all>
[[nodiscard]] constexpr auto decode_as(byte_view in, decode_options options = {}) noexcept
    -> decoded_as<Packet> {
    using named_packet = decltype(detail::first_with_opcode_of<Packet>(Packets{}));
    constexpr kind own = named_packet::about.id;
    constexpr kind other = own == kind::pad ? kind::psb : kind::pad;
    wide_bits const image = load_le_wide(in);
    auto const opcode = detail::find_opcode<detail::opcodes_of_one<Packets, own, other>>(
        image, in.size(), options.block);
    decode_result failed = opcode.failed;
    decoded_as<Packet> out;
    if (failed.error == error::none && opcode.id == own) {
        failed = detail::decode_after_opcode<Packets, named_packet>(
            image, in.size(), options, [&]<class Found>(Found const& packet, unsigned length) {
                if constexpr (same_as<Found, Packet>) {
                    out.packet = packet;
                    out.length = length;
                }
            });
    }
    if (failed.error == error::none && out.length == 0) {
        failed = {error::bad_opcode, 0, rule::PKT_010};
    }
    out.error = failed.error;
    out.need = failed.need;
    out.broken = failed.broken;
    return out;
}

}  // namespace ptspec::packet
