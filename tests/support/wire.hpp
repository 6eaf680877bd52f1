// SPDX-License-Identifier: BSL-1.0
#pragma once

// Helpers for packet tests: bytes in hexadecimal, errors and packets to compare with.

#include <ptspec/packet/encode.hpp>

#include <stddef.h>
#include <stdint.h>

namespace ptspec::test {

/// Up to 24 bytes, written in the source as hexadecimal digits with optional blanks.
struct hex_bytes {
    static constexpr size_t most = 24;
    uint8_t bytes[most] = {};
    size_t count = 0;

    [[nodiscard]] constexpr auto data() const noexcept -> uint8_t const* { return bytes; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return count; }

    /// The first `n` bytes.
    [[nodiscard]] constexpr auto prefix(size_t n) const noexcept -> byte_view { return {bytes, n}; }
    /// The same bytes, followed by `byte`.
    [[nodiscard]] constexpr auto and_then(uint8_t byte) const noexcept -> hex_bytes {
        auto longer = *this;
        longer.bytes[longer.count++] = byte;
        return longer;
    }
    /// The bytes as one little-endian number.
    [[nodiscard]] constexpr auto number() const noexcept -> wide_bits {
        wide_bits sum{};
        for (size_t i = count; i-- != 0;) {
            sum.high = sum.high * 256 + sum.low / 0x0100'0000'0000'0000;
            sum.low = sum.low * 256 + bytes[i];
        }
        return sum;
    }
    friend constexpr auto operator==(hex_bytes const&, hex_bytes const&) -> bool = default;
};

constexpr auto hex_digit(char digit) noexcept -> unsigned {
    return digit <= '9' ? static_cast<unsigned>(digit - '0')
                        : static_cast<unsigned>((digit | 0x20) - 'a' + 10);
}

constexpr auto hex(text digits) noexcept -> hex_bytes {
    hex_bytes out;
    bool upper = true;
    for (char const digit : digits) {
        if (digit == ' ') { continue; }
        auto& byte = out.bytes[out.count];
        byte = static_cast<uint8_t>(byte * 16U + hex_digit(digit));
        out.count += upper ? 0 : 1;
        upper = !upper;
    }
    return out;
}

constexpr auto hex(char const* digits) noexcept -> hex_bytes {
    size_t count = 0;
    while (digits[count] != 0) { ++count; }
    return hex(text{digits, count});
}

/// The `need` that PKT-255 requires for the prefix `in` of a packet of `whole` bytes.
constexpr auto need_of_prefix(byte_view in, unsigned whole) noexcept -> unsigned {
    if (in.size() == 0) { return 1; }
    bool const is_cyc = (in[0] & 3) == 3;
    bool const is_trig = in[0] == 0xD9;
    if (is_cyc) { return static_cast<unsigned>(in.size()) + 1; }
    if (is_trig && in.size() == 1) { return 3; }
    if (in[0] == 0x02 && in.size() == 1) { return 2; }
    if (in[0] == 0x02 && in[1] == 0xC3 && in.size() == 2) { return 3; }
    return whole;
}

/// True when nothing was consumed or decoded, and the error is this one.
constexpr auto is_error(packet::decoded const& got, packet::error why, rule broken,
                        unsigned need = 0) noexcept -> bool {
    return !got && got.error == why && got.broken == broken && got.need == need &&
           got.length() == 0 && got.packet == packet::any_packet{};
}

template <class Packet>
constexpr auto is_error(packet::decoded_as<Packet> const& got, packet::error why, rule broken,
                        unsigned need = 0) noexcept -> bool {
    return !got && got.error == why && got.broken == broken && got.need == need &&
           got.length == 0 && got.packet == Packet{};
}

/// True when every proper prefix of `bytes` is `truncated`, with the correct need.
constexpr auto prefixes_are_truncated(hex_bytes const& bytes,
                                      packet::block items = packet::block::none) noexcept -> bool {
    auto const whole = static_cast<unsigned>(bytes.size());
    for (unsigned n = 0; n < whole; ++n) {
        auto const in = bytes.prefix(n);
        if (!is_error(packet::decode(in, {.block = items}), packet::error::truncated, rule::PKT_255,
                      need_of_prefix(in, whole))) {
            return false;
        }
    }
    return true;
}

/// True when exactly these bytes decode to this packet, and the packet encodes to them.
template <class Packet>
constexpr auto stands_for(hex_bytes const& bytes, Packet const& packet,
                          packet::block items = packet::block::none) noexcept -> bool {
    auto const length = static_cast<unsigned>(bytes.size());
    auto const typed = packet::decode_as<Packet>(bytes, {.block = items});
    auto const any = packet::decode(bytes, {.block = items});
    auto const written = packet::encode(packet, items);
    return typed && typed.packet == packet && typed.length == length &&
           typed.error == packet::error::none && typed.need == 0 && typed.broken == rule::none &&
           any && any.packet == packet::any_packet{packet, length} && any.length() == length &&
           any.need == 0 && any.broken == rule::none && written && written == bytes &&
           prefixes_are_truncated(bytes, items);
}

}  // namespace ptspec::test
