// SPDX-License-Identifier: BSL-1.0
#pragma once

// Options with numbers.

#include "tool.hpp"

#include <ptspec/cpu/quirks.hpp>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

/// A number from 0 to `most`, decimal or with 0x hexadecimal.
inline auto parse_number(std::string_view text, std::uint64_t most)
    -> std::optional<std::uint64_t> {
    bool const is_hex = text.starts_with("0x") || text.starts_with("0X");
    if (is_hex) { text.remove_prefix(2); }
    std::uint64_t value = 0;
    auto const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, value, is_hex ? 16 : 10);
    if (error != std::errc{} || stop != end || value > most) { return std::nullopt; }
    return value;
}

/// An address: hexadecimal, with or without 0x. Throws, with the name of the option, if it is none.
inline auto parse_address(std::string const& option, std::string_view text) -> std::uint64_t {
    auto const digits = text.starts_with("0x") || text.starts_with("0X") ? text.substr(2) : text;
    std::uint64_t value = 0;
    auto const end = digits.data() + digits.size();
    auto const [stop, error] = std::from_chars(digits.data(), end, value, 16);
    if (error == std::errc::result_out_of_range) {
        throw failure{option + ": the address " + quoted(text) + " has more than 64 bits"};
    }
    if (error != std::errc{} || stop != end) {
        throw failure{option + ": " + quoted(text) + " is no hexadecimal address"};
    }
    return value;
}

/// `0x1f`.
inline auto hex(std::uint64_t value) -> std::string {
    char digits[16];
    auto const made = std::to_chars(digits, digits + sizeof digits, value, 16);
    return "0x" + std::string{digits, made.ptr};
}

/// Numbers between separators.
inline auto parse_numbers(std::string_view text, char separator,
                          std::vector<std::uint64_t> const& most)
    -> std::optional<std::vector<std::uint64_t>> {
    std::vector<std::uint64_t> found;
    for (bool is_last = false; !is_last;) {
        auto const end = text.find(separator);
        is_last = end == std::string_view::npos;
        auto const value = found.size() < most.size()
                               ? parse_number(text.substr(0, end), most[found.size()])
                               : std::nullopt;
        if (!value) { return std::nullopt; }
        found.push_back(*value);
        if (!is_last) { text.remove_prefix(end + 1); }
    }
    return found;
}

inline auto number_of(command_line& line, std::string_view takes, std::uint64_t most,
                      std::uint64_t least = 0) -> std::uint64_t {
    auto const option = line.argument();
    auto const value = parse_number(line.value(), most);
    if (!value || *value < least) { throw failure{option + " takes " + std::string{takes}}; }
    return *value;
}
inline auto numbers_of(command_line& line, std::string_view takes, char separator,
                       std::vector<std::uint64_t> const& most, std::size_t least)
    -> std::vector<std::uint64_t> {
    auto const option = line.argument();
    auto const found = parse_numbers(line.value(), separator, most);
    if (!found || found->size() < least) { throw failure{option + " takes " + std::string{takes}}; }
    return *found;
}

/// The quirks of the processor that --cpu names.
inline auto take_cpu(command_line& line) -> ptspec::cpu::quirk_set {
    auto const found = numbers_of(line,
                                  "FAMILY/MODEL or FAMILY/MODEL/STEPPING in decimal, like 6/94/3",
                                  '/', {255 + 15, 255, 15}, 2);
    auto const part = [](std::uint64_t value) { return static_cast<unsigned>(value); };
    return ptspec::cpu::quirks_of(ptspec::cpu::cpu_model{part(found[0]), part(found[1]),
                                                         found.size() == 3 ? part(found[2]) : 0});
}

}  // namespace tool
