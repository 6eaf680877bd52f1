// SPDX-License-Identifier: BSL-1.0
#pragma once

// Helpers for packet tests: bytes in hexadecimal, layout rows and facts to compare with.

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

/// True when the facts of a packet are these.
template <class Packet>
constexpr auto facts_are(packet::kind id, text name, packet::ip_binding binds_to_ip,
                         bool in_psb_plus, packet::cyc_rule cyc_eligible, bool keeps_block) noexcept
    -> bool {
    auto const& about = Packet::about;
    return about.id == id && about.name == name && about.binds_to_ip == binds_to_ip &&
           about.in_psb_plus == in_psb_plus && about.cyc_eligible == cyc_eligible &&
           about.keeps_block == keeps_block;
}

/// A layout row in the notation of the catalogue: its name, and the positions `byte.bit` of its
/// ends.
struct row {
    text name;
    unsigned first_byte;
    unsigned first_bit;
    unsigned last_byte;
    unsigned last_bit;
};

/// True when a packet has exactly these rows, apart from fixed ones.
template <class Packet, size_t Count>
constexpr auto rows_are(row const (&expected)[Count]) noexcept -> bool {
    size_t next = 0;
    for (auto const& info : rows_of<Packet>()) {
        if (info.kind == row_kind::fixed) { continue; }
        if (next == Count || !(expected[next].name == info.name) ||
            expected[next].first_byte * 8 + expected[next].first_bit != info.lsb ||
            expected[next].last_byte * 8 + expected[next].last_bit != info.msb) {
            return false;
        }
        ++next;
    }
    return next == Count;
}

/// True when a packet has fixed rows only.
template <class Packet>
constexpr auto has_no_fields() noexcept -> bool {
    for (auto const& info : rows_of<Packet>()) {
        if (info.kind != row_kind::fixed) { return false; }
    }
    return true;
}

}  // namespace ptspec::test
