// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/hot_loop.hpp>

/// Packets that are written as they stand, told by one look into a table.
namespace ptspec::trace::detail {

/// What the first byte of a plain packet tells, or the first two.
struct plain {
    uint64_t zero_low = ~uint64_t{0};  ///< bits that are 0: reserved, or behind the packet
    uint32_t free_high = 0;            ///< bits 95:64 that may be 1
    packet::kind which = packet::kind::pad;
    uint8_t length = 0;  ///< 0: packets that begin like this are not plain
    uint8_t form = 0;    ///< as in an outline
    uint8_t part = 0;  ///< which part of the table is meant, plus `by_second` where it is not this
};
inline constexpr unsigned by_second = 8;  // bits to the byte that chooses in the part
static_assert(sizeof(plain) == 16);       // so that a row is found by a shift

/// Of first bytes, of those behind the escape, and of MODE's leaves.
struct plain_table {
    plain rows[outline_table::rows];
};

/// A packet with this outline is right whatever it holds, where its reserved bits are 0. An OVF is
/// not plain for what it does to the writer.
template <class Packet>
constexpr auto is_plain(outline one) noexcept -> bool {
    constexpr bool may_be_wrong = requires(typename Packet::raw_type bits) {
        Packet::broken_payload(bits);
    };
    return one.length != 0 && Packet::most_bytes <= 12 && !same_as<Packet, packet::ovf> &&
           (one.length == 1 || !may_be_wrong);
}

template <class Packets>
constexpr auto plain_packets() noexcept -> plain_table {
    plain_table all{};
    for (size_t i = 0; i < outline_table::rows; ++i) {
        outline const one = outlines<Packets>.at(i);
        plain& row = all.rows[i];
        unsigned const where = one.next == look_on::nowhere ? 0 : by_second;
        row.part = static_cast<uint8_t>(underlying(one.next) + where);
        packet::for_kind(
            one.which,
            [&]<class Packet>() {
                if (!is_plain<Packet>(one)) { return; }
                wide_bits const whole = first_bytes_mask(one.length);
                wide_bits const reserved = packet::detail::widen(Packet::reserved_mask());
                row.zero_low = ~whole.low | reserved.low;
                row.free_high = static_cast<uint32_t>(whole.high & ~reserved.high);
                row.which = one.which;
                row.length = one.length;
                row.form = one.form;
            },
            Packets{});
    }
    return all;
}

/// The table, made when it is first used.
template <class Packets>
struct plain_packets_of {
    static constexpr plain_table table = plain_packets<Packets>();
};

/// The kinds of plain packets of one byte, by their byte; another number where there is none.
struct plain_bytes {
    uint8_t kinds[256];
};
template <class Packets>
inline constexpr plain_bytes plain_bytes_of = [] {
    plain_bytes all{};
    for (unsigned i = 0; i < 256; ++i) {
        plain const& row = plain_packets_of<Packets>::table.rows[i];
        all.kinds[i] = row.length == 1 ? underlying(row.which) : uint8_t{packet::kinds};
    }
    return all;
}();

/// Two bytes that stand side by side, as one number: compared at once.
constexpr auto kind_and_length(packet::kind which, unsigned length) noexcept -> unsigned {
    return underlying(which) | length << 8;
}

/// The row of packets that begin with these bits.
template <class Packets>
[[gnu::always_inline]]  // so that it costs no call
constexpr auto
plain_row(uint64_t low) noexcept -> plain const& {
    unsigned const part = plain_packets_of<Packets>::table.rows[low & 0xFF].part;
    size_t const place = size_t{256} * (part % by_second) +
                         static_cast<uint8_t>(low >> (part & by_second));
    return plain_packets_of<Packets>::table.rows[place];
}

/// 0 where a packet of one byte is plain.
template <class Packets>
constexpr auto wrong_byte(packet::kind which, uint64_t low, uint64_t high) noexcept -> uint64_t {
    uint8_t const expected = plain_bytes_of<Packets>.kinds[low & 0xFF];
    return low >> 8 | high | (uint64_t{expected} ^ underlying(which));
}

/// A CYC of more than one byte is as it should be, up to seven bytes.
constexpr auto is_plain_cyc(packet::any_packet const& packet) noexcept -> bool {
    wide_bits const bits = packet.raw();
    unsigned const length = length_of_cyc(bits.low);
    auto const first = static_cast<uint8_t>(bits.low);
    return !is_even(first) && is_cyc(first) && packet.is<packet::cyc>() &&
           packet.length() == length && bits == (bits & first_bytes_mask(length));
}

}  // namespace ptspec::trace::detail
