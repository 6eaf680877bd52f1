// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/check_options.hpp>
#include <ptspec/trace/check/checker.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ptspec::test {

/// Bytes written as text, with a mark.
///
/// A token is bytes in hexadecimal, PSB, CBR, or a whole PSB+: ON with a FUP to 1000H, as the kind
/// of processor writes it, or OFF without FUP. `!` marks where the next token begins.
struct made_stream {
    std::uint8_t bytes[1024] = {};
    std::size_t size = 0;
    std::size_t mark = 0;

    constexpr made_stream(std::string_view text, engine::model_kind of) {
        while (!text.empty()) {
            std::size_t const end = text.find(' ');
            std::string_view token = text.substr(0, end);
            text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
            if (token.starts_with('!')) {
                mark = size;
                token.remove_prefix(1);
            }
            add(token, of);
        }
    }
    [[nodiscard]] constexpr auto view() const -> byte_view { return {bytes, size}; }

private:
    static constexpr std::string_view psb = "02820282028202820282028202820282";
    static constexpr std::string_view cbr = "02031800";

    constexpr void add(std::string_view token, engine::model_kind of) {
        using engine::model_kind;
        if (token == "PSB") { return hex(psb); }
        if (token == "CBR") { return hex(cbr); }
        if (token != "ON" && token != "OFF") { return hex(token); }
        bool const is_on = token == "ON";
        hex(psb);
        switch (of) {
            case model_kind::manual:
                hex(cbr);
                hex(is_on ? "99017d001000000000" : "");
                return hex("0223");
            case model_kind::atom:
                hex(cbr);
                hex(is_on ? "7d0010000000009901" : "");
                return hex("0223");
            case model_kind::broadwell:
                hex(cbr);
                hex(is_on ? "992099017d00100000000000" : "00000000");
                return hex("0223");
            case model_kind::skylake:
                hex(is_on ? "000000992099017d0010000000000000" : "");
                hex(cbr);
                return hex("0223");
            case model_kind::icelake:
                hex(is_on ? "00000099209901dd0010000000000000" : "");
                hex(cbr);
                return hex("0223");
        }
    }
    constexpr void hex(std::string_view digits) {
        auto const value = [](char digit) {
            return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
        };
        for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
            bytes[size++] = static_cast<std::uint8_t>(value(digits[i]) << 4 | value(digits[i + 1]));
        }
    }
};

/// The violations of a stream: their number, and the last; and the notes.
struct findings {
    unsigned count = 0;
    trace::violation last{};
    unsigned notes = 0;

    friend constexpr auto operator==(findings const&, findings const&) -> bool = default;
};

constexpr auto findings_in(byte_view stream, trace::check_options const& rules) -> findings {
    findings got;
    trace::check(stream, rules, [&](trace::violation const& one) {
        if (one.is_note) {
            ++got.notes;
        } else {
            got.last = one;
            ++got.count;
        }
    });
    return got;
}

}  // namespace ptspec::test
