// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/made_stream.hpp>

#include <ptspec/flow/walker.hpp>

// Walks a trace that is written as text over code that is written as text.
namespace ptspec::test {

/// Bytes in hexadecimal, at 1000H.
struct made_code {
    std::uint8_t bytes[256] = {};
    std::size_t size = 0;

    static constexpr std::uint64_t address = 0x1000;

    constexpr explicit made_code(std::string_view digits) {
        auto const value = [](char digit) {
            return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
        };
        for (std::size_t i = 0; i + 1 < digits.size(); i += digits[i] == ' ' ? 1 : 2) {
            if (digits[i] == ' ') { continue; }
            bytes[size++] = static_cast<std::uint8_t>(value(digits[i]) << 4 | value(digits[i + 1]));
        }
    }
    [[nodiscard]] constexpr auto view() const -> byte_view { return {bytes, size}; }
    [[nodiscard]] constexpr auto code(std::uint64_t at, std::uint32_t) const -> byte_view {
        return at - address < size ? view().from(static_cast<std::size_t>(at - address))
                                   : byte_view{};
    }
};

/// Everything that a walker reports.
struct walk_report {
    static constexpr std::size_t most = 64;

    std::uint64_t ips[most] = {};
    std::size_t count = 0;
    flow::edge edges[most] = {};
    std::size_t edge_count = 0;
    flow::gap gaps[most] = {};
    std::size_t gap_count = 0;
    std::uint64_t blocks = 0;

    constexpr void instruction(flow::executed const& one) {
        if (count != most) { ips[count++] = one.ip; }
    }
    constexpr void block(flow::executed_block const& one) { blocks += one.count; }
    constexpr void edge(flow::edge const& one) {
        if (edge_count != most) { edges[edge_count++] = one; }
    }
    constexpr void gap(flow::gap const& one) {
        if (gap_count != most) { gaps[gap_count++] = one; }
    }

    /// The low 12 bits of the IPs, as text: `000 002`.
    [[nodiscard]] constexpr auto executed(std::string_view wanted) const -> bool {
        std::size_t at = 0;
        for (std::size_t i = 0; i < count; ++i) {
            for (unsigned digit = 3; digit-- != 0;) {
                auto const value = static_cast<unsigned>(ips[i] >> 4 * digit & 15);
                char const letter = static_cast<char>(value < 10 ? '0' + value : 'a' + value - 10);
                if (at == wanted.size() || wanted[at++] != letter) { return false; }
            }
            if (i + 1 != count && (at == wanted.size() || wanted[at++] != ' ')) { return false; }
        }
        return at == wanted.size() && blocks == count;
    }
    /// One gap, for this reason.
    [[nodiscard]] constexpr auto lost(flow::gap_reason why) const -> bool {
        return gap_count == 1 && gaps[0].why == why;
    }
};

/// Walks a trace of the kind `manual`, whose ON is at 1000H.
template <flow::code_source Code>
constexpr auto walk(made_stream const& trace, Code const& code, flow::walk_options const& how = {})
    -> walk_report {
    walk_report made;
    flow::block blocks[8] = {};
    flow::block_cache cache{blocks};
    flow::walker walker{borrowed_bytes{trace.bytes, trace.size}, code, cache, how};
    (void)walker.run(made);
    return made;
}

}  // namespace ptspec::test
