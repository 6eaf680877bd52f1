// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/conformance/fields.hpp>
#include <ptspec/packet/packet_word.hpp>

/// Compares opcodes and lengths of packets.
namespace ptspec {

namespace detail {

template <class Type>
concept packet_struct = requires {
    Type::about;
    Type::head_bytes;
    typename Type::payload_type;
};

/// The bits of the opcode and the leaf. A pattern after the opcode is not included.
template <class Packet>
inline constexpr uint64_t opcode_mask = packet::opcode_of<Packet>().mask |
                                        packet::leaf_mask<Packet>;
template <class Packet>
inline constexpr uint64_t opcode = to_wide(Packet{}.raw).low & opcode_mask<Packet>;

constexpr auto opcode_is(wide_bits packet, size_t min_bytes, size_t max_bytes,
                         byte_view yours) noexcept -> bool {
    if (yours.size() < min_bytes || yours.size() > max_bytes) {
        if (__builtin_is_constant_evaluated()) {
            build_error::the_number_of_opcode_bytes_differs();
        }
        return false;
    }
    auto const bytes = to_le(packet);
    for (unsigned i = 0; i < yours.size(); ++i) {
        if (!same_bits(bytes[i], yours[i], difference::opcode, 8 * i)) { return false; }
    }
    return true;
}

template <class Payload>
inline constexpr unsigned min_payload = 0;
template <unsigned... Sizes>
inline constexpr unsigned min_payload<packet::payload_of<Sizes...>> = [] {
    unsigned min_size = packet::undefined_size;
    ((min_size = Sizes < min_size ? Sizes : min_size), ...);
    return min_size;
}();
template <>
inline constexpr unsigned min_payload<packet::payload_of_block> = 4;

template <class Packet>
inline constexpr unsigned min_length = Packet::head_bytes +
                                       min_payload<typename Packet::payload_type>;

constexpr auto lengths_are(unsigned min_bytes, unsigned max_bytes, uint64_t your_min,
                           uint64_t your_max) noexcept -> bool {
    using build_error::the_length_differs;
    return same_number<the_length_differs>(min_bytes, your_min) &&
           same_number<the_length_differs>(max_bytes, your_max);
}

}  // namespace detail

/// True if a number, little-endian, is the opcode of a packet, with its leaf and all fields 0:
/// `conforms_opcode<packet::cbr>(0x0302)`.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_opcode(defined_number auto number) noexcept -> bool {
    return detail::same_bits(detail::opcode<Packet>, detail::number_of(number),
                             detail::difference::opcode);
}
/// True if a number and a mask are the opcode of a packet: `conforms_opcode<packet::tip>(0x0D,
/// 0x1F)`.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_opcode(defined_number auto number,
                                             defined_number auto mask) noexcept -> bool {
    return detail::same_bits(detail::opcode_mask<Packet>, detail::number_of(mask),
                             detail::difference::opcode_mask) &&
           conforms_opcode<Packet>(number);
}
/// True if bytes are the opcode of a packet, perhaps with following bytes of its head. All fields
/// must be 0.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_opcode(byte_view bytes) noexcept -> bool {
    return detail::opcode_is(to_wide(Packet{}.raw),
                             highest_bit(detail::opcode_mask<Packet>) / 8 + 1, Packet::head_bytes,
                             bytes);
}
template <detail::packet_struct Packet, size_t Count>
[[nodiscard]] constexpr auto conforms_opcode(uint8_t const (&bytes)[Count]) noexcept -> bool {
    return conforms_opcode<Packet>(byte_view{bytes});
}
/// True if a number is the value of a part of the opcode:
/// `conforms_opcode<packet::cbr::Opcode>(0x03)`.
template <detail::fixed_row Row>
[[nodiscard]] constexpr auto conforms_opcode(defined_number auto number) noexcept -> bool {
    return detail::same_bits(Row::fixed_value, detail::number_of(number),
                             detail::difference::opcode);
}

/// True if a number is the length of a packet in bytes.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_length(defined_number auto bytes) noexcept -> bool {
    static_assert(detail::min_length<Packet> == Packet::max_bytes,
                  "the length of this packet varies: give its minimum and its maximum");
    return detail::lengths_are(detail::min_length<Packet>, Packet::max_bytes,
                               detail::number_of(bytes), detail::number_of(bytes));
}
/// True if two numbers are the minimum and the maximum length of a packet in bytes.
template <detail::packet_struct Packet>
[[nodiscard]] constexpr auto conforms_length(defined_number auto min_bytes,
                                             defined_number auto max_bytes) noexcept -> bool {
    return detail::lengths_are(detail::min_length<Packet>, Packet::max_bytes,
                               detail::number_of(min_bytes), detail::number_of(max_bytes));
}

}  // namespace ptspec
