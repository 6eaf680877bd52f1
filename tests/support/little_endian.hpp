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

/// A perf.data file in pipe layout.
template <class... Records>
constexpr auto perf_pipe(Records const&... all) {
    return join(letters("PERFILE2"), u64(16), all...);
}

/// A `perf_event_attr` of 64 bytes.
struct perf_attr {
    unsigned type = 8;
    std::uint64_t config = 0;
    std::uint64_t sample_type = 0;
    std::uint64_t read_format = 0;
    std::uint64_t flags = 0;

    [[nodiscard]] constexpr auto bytes() const {
        return join(u32(type), u32(64), u64(config), u64(1), u64(sample_type), u64(read_format),
                    u64(flags), u64(0), u64(0));
    }
};

}  // namespace ptspec::test
