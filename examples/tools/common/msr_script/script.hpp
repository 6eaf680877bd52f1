// SPDX-License-Identifier: BSL-1.0
#pragma once

// Splits a statement into words and numbers.

#include "../tool.hpp"

#include <ptspec/base/lang.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace msr_script {

/// Why a statement is rejected.
struct refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using tool::quoted;

/// Parses a number of up to 64 bits; empty when the text is not all digits.
inline auto number_in(std::string_view digits, int base = 16) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    auto const end = digits.data() + digits.size();
    auto const [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error != std::errc{} || stop != end) { return std::nullopt; }
    return value;
}

// ------------------------------------------------------------------------------------ words

/// The words of one statement, in order. `=`, `[` and `]` are words of their own.
class words {
public:
    explicit words(std::string_view statement) : rest_{statement} { skip_blanks(); }

    [[nodiscard]] auto at_end() const -> bool { return rest_.empty(); }

    /// The next word. `what` describes it in the message when it is missing.
    auto next(std::string_view what) -> std::string_view {
        if (at_end()) { throw refusal{std::string{what} + " is missing"}; }
        auto const word = peek();
        rest_.remove_prefix(word.size());
        skip_blanks();
        return word;
    }

    /// Consumes the next word if it is this one.
    auto accept(std::string_view word) -> bool {
        if (peek() != word) { return false; }
        (void)next(word);
        return true;
    }
    void expect(std::string_view word) {
        if (!accept(word)) {
            throw refusal{quoted(word) + " is missing" +
                          (at_end() ? "" : " before " + quoted(peek()))};
        }
    }

    auto number(std::string_view what, int base = 16) -> std::uint64_t {
        auto const digits = next(what);
        if (auto const value = number_in(digits, base)) { return *value; }
        throw refusal{std::string{what} + " is not " + quoted(digits) + ", but " +
                      (base == 16 ? "a hexadecimal number without prefix" : "a decimal number") +
                      " of up to 64 bits"};
    }

    /// Rejects surplus words.
    void end() const {
        if (!at_end()) { throw refusal{quoted(peek()) + " is not expected here"}; }
    }

private:
    static constexpr std::string_view blanks = " \t\r\v\f";
    static constexpr std::string_view signs = "=[]";

    [[nodiscard]] auto peek() const -> std::string_view {
        if (rest_.empty() || signs.find(rest_[0]) != std::string_view::npos) {
            return rest_.substr(0, 1);
        }
        return rest_.substr(0, rest_.find_first_of(" \t\r\v\f=[]"));
    }
    void skip_blanks() {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
    }

    std::string_view rest_;
};

}  // namespace msr_script
