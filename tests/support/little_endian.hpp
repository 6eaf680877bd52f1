// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/streams.hpp>

#include <cstddef>
#include <cstdint>

/// Numbers as bytes, for files that tests write out.
namespace ptspec::test {

/// The bytes of a number, little-endian.
template <std::size_t Size>
constexpr auto number(std::uint64_t value) -> byte_array<Size> {
    byte_array<Size> out{};
    for (auto& byte : out.bytes) {
        byte = static_cast<std::uint8_t>(value);
        value /= 256;
    }
    return out;
}
constexpr auto u16(std::uint64_t value) { return number<2>(value); }
constexpr auto u32(std::uint64_t value) { return number<4>(value); }
constexpr auto u64(std::uint64_t value) { return number<8>(value); }

/// The characters of a literal, without its NUL.
template <std::size_t Size>
constexpr auto letters(char const (&text)[Size]) -> byte_array<Size - 1> {
    byte_array<Size - 1> out{};
    for (std::size_t i = 0; i + 1 < Size; ++i) {
        out.bytes[i] = static_cast<std::uint8_t>(text[i]);
    }
    return out;
}

/// A record of perf.data: its header, and the rest.
template <class Rest>
constexpr auto perf_record(unsigned type, unsigned misc, Rest const& rest) {
    return join(u32(type), u16(misc), u16(8 + rest.size()), rest);
}

/// A record that is only a header.
constexpr auto perf_record(unsigned type, unsigned misc) {
    return join(u32(type), u16(misc), u16(8));
}

}  // namespace ptspec::test
