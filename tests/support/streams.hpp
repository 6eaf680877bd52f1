// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace ptspec::test {

/// An array of bytes: `bytes(0x02, 0x82)`.
template <class... Values>
constexpr auto bytes(Values... values) -> byte_array<sizeof...(Values)> {
    return {{static_cast<std::uint8_t>(values)...}};
}

/// Concatenates byte arrays in a constant expression.
template <std::size_t... Sizes>
constexpr auto join(byte_array<Sizes> const&... parts) -> byte_array<(Sizes + ... + 0)> {
    byte_array<(Sizes + ... + 0)> out{};
    std::size_t at = 0;
    auto const put = [&](auto const& part) {
        for (std::size_t i = 0; i < part.size(); ++i) { out.bytes[at++] = part[i]; }
    };
    (put(parts), ...);
    return out;
}

/// PSB, PKT-130.
inline constexpr auto psb = bytes(0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
                                  0x82, 0x02, 0x82, 0x02, 0x82);

/// Random bytes with a fixed seed, drawn from values that make traces interesting.
inline auto random_stream(std::uint32_t seed, std::size_t size) -> std::vector<std::uint8_t> {
    std::mt19937 random{seed};
    std::vector<std::uint8_t> out;
    while (out.size() < size) {
        auto const choice = random() % 16;
        if (choice < 2) {
            for (auto i = random() % 20; i != 0; --i) {
                out.push_back(0x02);
                out.push_back(0x82);
            }
        } else if (choice < 3) {
            out.push_back(0x02);
        } else if (choice < 4) {
            out.push_back(0x82);
        } else if (choice < 12) {
            constexpr std::uint8_t common[] = {0x00, 0x06, 0x1C, 0x0B, 0x0F, 0x59, 0x2D,
                                               0x6D, 0x71, 0x01, 0x7D, 0x99, 0x19, 0xD9};
            out.push_back(common[random() % sizeof common]);
        } else {
            out.push_back(static_cast<std::uint8_t>(random()));
        }
    }
    out.resize(size);
    return out;
}

}  // namespace ptspec::test
