// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

/// Bit masks and shifts, and a 128-bit word.
namespace ptspec {

/// A mask of the `count` lowest bits: all ones if `count` is 64 or more.
[[nodiscard]] constexpr auto low_bits(unsigned count) noexcept -> uint64_t {
    return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// A 128-bit number, for words longer than 64 bits.
struct wide_bits {
    uint64_t low = 0;
    uint64_t high = 0;

    friend constexpr auto operator==(wide_bits const&, wide_bits const&) -> bool = default;
    friend constexpr auto operator&(wide_bits a, wide_bits b) noexcept -> wide_bits {
        return {a.low & b.low, a.high & b.high};
    }
    friend constexpr auto operator|(wide_bits a, wide_bits b) noexcept -> wide_bits {
        return {a.low | b.low, a.high | b.high};
    }
    friend constexpr auto operator~(wide_bits a) noexcept -> wide_bits { return {~a.low, ~a.high}; }
};

/// The raw bits of a word of any size, zero-extended to 128 bits.
[[nodiscard]] constexpr auto to_wide(uint64_t raw) noexcept -> wide_bits { return {raw, 0}; }
[[nodiscard]] constexpr auto to_wide(wide_bits raw) noexcept -> wide_bits { return raw; }
/// The raw bits of a word, truncated to its size: `from_wide<Packet::raw_type>(bits)`.
template <class Raw>
[[nodiscard]] constexpr auto from_wide(wide_bits bits) noexcept -> Raw {
    if constexpr (same_as<Raw, wide_bits>) {
        return bits;
    } else {
        return static_cast<Raw>(bits.low);
    }
}
/// The first `count` bytes of a little-endian number; the others become 0.
[[nodiscard]] constexpr auto first_bytes(wide_bits bits, unsigned count) noexcept -> wide_bits {
    return {bits.low & low_bits(8 * count), count > 8 ? bits.high & low_bits(8 * count - 64) : 0};
}
/// Masks of the first 0 to 16 bytes of a `wide_bits`. A load takes less time than the shifts.
struct byte_masks {
    uint64_t low[17];
    uint64_t high[17];
};
inline constexpr byte_masks first_bytes_masks = [] {
    byte_masks all{};
    for (unsigned i = 0; i <= 16; ++i) {
        wide_bits const mask = first_bytes(~wide_bits{}, i);
        all.low[i] = mask.low;
        all.high[i] = mask.high;
    }
    return all;
}();
/// A mask of the first `count` bytes, at most 16.
[[nodiscard]] constexpr auto first_bytes_mask(unsigned count) noexcept -> wide_bits {
    return {first_bytes_masks.low[count], first_bytes_masks.high[count]};
}

namespace detail {

/// The bits of a word from bit `lsb` up, right-justified and truncated to 64 bits.
template <class Raw>
constexpr auto shifted_right(Raw raw, unsigned lsb) noexcept -> uint64_t {
    if constexpr (same_as<Raw, wide_bits>) {
        return lsb >= 64  ? raw.high >> (lsb - 64)
               : lsb == 0 ? raw.low
                          : raw.low >> lsb | raw.high << (64 - lsb);
    } else {
        return static_cast<uint64_t>(raw) >> lsb;
    }
}

/// A word that holds a number from bit `lsb` up; the other bits are 0.
template <class Raw>
constexpr auto shifted_left(uint64_t number, unsigned lsb) noexcept -> Raw {
    if constexpr (same_as<Raw, wide_bits>) {
        return lsb >= 64  ? wide_bits{0, number << (lsb - 64)}
               : lsb == 0 ? wide_bits{number, 0}
                          : wide_bits{number << lsb, number >> (64 - lsb)};
    } else {
        return static_cast<Raw>(number << lsb);
    }
}

template <class Raw>
constexpr auto bit_mask(unsigned msb, unsigned lsb) noexcept -> Raw {
    if constexpr (same_as<Raw, wide_bits>) {
        return {lsb >= 64 ? 0 : low_bits(msb + 1) & ~low_bits(lsb),
                msb < 64 ? 0 : low_bits(msb - 63) & ~(lsb < 64 ? 0 : low_bits(lsb - 64))};
    } else {
        return static_cast<Raw>(low_bits(msb + 1) & ~low_bits(lsb));
    }
}
/// The mask of a field in a 64-bit word.
template <class Field>
constexpr uint64_t field_mask = bit_mask<uint64_t>(Field::msb, Field::lsb);

/// The number in bits `msb` to `lsb`.
template <class Raw>
constexpr auto bits_between(Raw raw, unsigned msb, unsigned lsb) noexcept -> uint64_t {
    return shifted_right(raw, lsb) & low_bits(msb - lsb + 1);
}

}  // namespace detail

}  // namespace ptspec
