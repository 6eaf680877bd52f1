// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/hot_loop.hpp>

/// Packets that are written as they stand, told by one look into a table.
namespace ptspec::trace::detail {

/// What the first byte of a plain packet tells, or the first two.
struct plain {
    uint64_t fixed = ~uint64_t{0};  ///< bits that are the same in all of them
    uint64_t value = 0;             ///< those bits: opcode; 0 where reserved, or behind the packet
    uint32_t free_high = 0;         ///< bits 95:64 that may be 1
    uint32_t least = 0;             ///< there is no such packet below this number
    packet::kind which = packet::kind::pad;
    uint8_t length = 0;  ///< 0: packets that begin like this are not plain
    uint8_t form = 0;    ///< as in an outline
    uint8_t part = 0;  ///< which part of the table is meant, plus `by_second` where it is not this
    uint8_t keeps_ip = 1;        ///< whether there is a last IP stays as it was
    uint8_t has_ip = 0;          ///< it is the last IP
    uint8_t tells_whole_ip = 0;  ///< whatever the last IP was before

    /// Whether there is a last IP behind it.
    [[nodiscard]] constexpr auto has_ip_behind(uint8_t before) const noexcept -> uint8_t {
        return static_cast<uint8_t>((before & keeps_ip) | has_ip);
    }
};
inline constexpr unsigned by_second = 8;  // bits to the byte that chooses in the part
static_assert(sizeof(plain) == 32);       // so that a row is found by a shift

/// Of first bytes, of those behind the escape, and of MODE's leaves.
struct plain_table {
    plain rows[outline_table::rows];
};

/// The bits of a packet that its layout sets.
template <class Packet>
inline constexpr wide_bits fixed_bits_of = packet::detail::bits_of_kind<wide_bits>(
    typename Packet::layout::rows{}, row_kind::fixed);

/// A packet of this length is right whatever it holds, where its fixed bits are as they have to be and
/// it is no number below the least.
template <class Packet>
constexpr auto is_plain(unsigned length) noexcept -> bool {
    constexpr bool may_be_wrong = requires(typename Packet::raw_type bits) {
        Packet::broken_payload(bits);
    } && !requires { Packet::least_raw; };
    return length != 0 && Packet::most_bytes <= 12 && (length == 1 || !may_be_wrong);
}

template <class Packet>
constexpr void set_plain(plain& row, outline one) noexcept {
    if (!is_plain<Packet>(one.length)) { return; }
    wide_bits const whole = first_bytes_mask(one.length);
    wide_bits const fixed = packet::detail::widen(Packet::reserved_mask()) | fixed_bits_of<Packet>;
    row.fixed = ~whole.low | fixed.low;
    row.value = packet::detail::widen(packet::detail::opcode_bits<Packet>).low;
    row.free_high = static_cast<uint32_t>(whole.high & ~fixed.high);
    if constexpr (requires { Packet::least_raw; }) { row.least = uint32_t{Packet::least_raw}; }
    row.which = one.which;
    row.length = one.length;
    row.form = one.form;
    row.has_ip = derived_from<Packet, packet::ip_packet<Packet>> && one.form != 0;
    row.tells_whole_ip = ip_update_of(one.form).kept == 0;
    row.keeps_ip = row.has_ip == 0 && one.which != packet::kind::ovf;
}

/// The row of a packet whose opcode has three bytes.
template <class Packet>
constexpr void set_plain_by_third(plain_table& all) noexcept {
    using namespace packet::detail;
    constexpr auto opcode = static_cast<uint32_t>(widen(opcode_bits<Packet>).low);
    if constexpr ((opcode & 0xFFFF) == second_escape) {
        size_t const place = row_of(look_on::behind_escape, static_cast<uint8_t>(opcode >> 8));
        set_plain<Packet>(all.rows[place], {Packet::head_bytes, Packet::about.id});
    }
}

template <class... Packets>
constexpr void set_plain_by_third(plain_table& all, type_list<Packets...> /*packets*/) noexcept {
    (set_plain_by_third<Packets>(all), ...);
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
            one.which, [&]<class Packet>() { set_plain<Packet>(row, one); }, Packets{});
    }
    set_plain_by_third(all, Packets{});
    return all;
}

/// The table, made when it is first used.
template <class Packets>
struct plain_packets_of {
    static constexpr plain_table table = plain_packets<Packets>();
};

/// Two bytes that stand side by side, as one number: compared at once.
constexpr auto kind_and_length(packet::kind which, unsigned length) noexcept -> unsigned {
    return underlying(which) | length << 8;
}

/// Kind and length of the plain packets of one byte, by their byte; 0 where there is none.
struct plain_bytes {
    uint16_t of[256];
};
template <class Packets>
inline constexpr plain_bytes plain_bytes_of = [] {
    plain_bytes all{};
    for (unsigned i = 0; i < 256; ++i) {
        plain const& row = plain_packets_of<Packets>::table.rows[i];
        all.of[i] = static_cast<uint16_t>(row.length == 1 ? kind_and_length(row.which, row.length)
                                                          : 0);
    }
    return all;
}();

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

/// 0 where a packet is plain and of one byte.
template <class Packets>
constexpr auto wrong_byte(unsigned kind_and_length, uint64_t low, uint64_t high) noexcept
    -> uint64_t {
    unsigned const expected = plain_bytes_of<Packets>.of[low & 0xFF];
    return low >> 8 | high | (expected ^ kind_and_length);
}
/// 0 where a packet is plain and of this row.
constexpr auto wrong_bits(plain const& row, unsigned kind_and_length, uint64_t low,
                          uint64_t high) noexcept -> uint64_t {
    unsigned const expected = detail::kind_and_length(row.which, row.length);
    return ((low & row.fixed) ^ row.value) | (high & ~uint64_t{row.free_high}) |
           (expected ^ kind_and_length) | uint64_t{low < row.least};
}

/// A CYC of more than one byte is as it should be, up to seven bytes.
constexpr auto is_plain_cyc(packet::any_packet const& packet) noexcept -> bool {
    wide_bits const bits = packet.raw();
    unsigned const length = length_of_cyc(bits.low);
    auto const first = static_cast<uint8_t>(bits.low);
    return is_cyc(first) && packet.is<packet::cyc>() && packet.length() == length &&
           bits == (bits & first_bytes_mask(length));
}

}  // namespace ptspec::trace::detail
