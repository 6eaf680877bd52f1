// SPDX-License-Identifier: BSL-1.0
#pragma once

// The parser of pt_model: it splits a script into events, and an event into words and arguments.
// Everything works in constant expressions, too.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trace_script {

using std::string_view;

/// A syntax error.
struct problem {
    bool is_there = false;
    std::size_t event = 0;   ///< counts from 1; 0 is the setup
    string_view expected{};  ///< what was expected
    string_view found{};

    constexpr explicit operator bool() const { return is_there; }
};

constexpr auto is_blank(char letter) -> bool {
    return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
}
constexpr auto trimmed(string_view all) -> string_view {
    while (!all.empty() && is_blank(all.front())) { all.remove_prefix(1); }
    while (!all.empty() && is_blank(all.back())) { all.remove_suffix(1); }
    return all;
}
constexpr auto starts_with(string_view all, string_view with) -> bool {
    return all.substr(0, with.size()) == with;
}

/// Takes the text up to a separator outside brackets, and leaves the text after it.
constexpr auto take_item(string_view& rest, char separator) -> string_view {
    int depth = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
        depth += rest[i] == '[' ? 1 : rest[i] == ']' ? -1 : 0;
        if (rest[i] == separator && depth <= 0) {
            auto const item = trimmed(rest.substr(0, i));
            rest.remove_prefix(i + 1);
            return item;
        }
    }
    auto const item = trimmed(rest);
    rest = {};
    return item;
}
/// Takes the text up to the next blank.
constexpr auto take_word(string_view& rest) -> string_view {
    rest = trimmed(rest);
    std::size_t end = 0;
    while (end < rest.size() && !is_blank(rest[end])) { ++end; }
    auto const word = rest.substr(0, end);
    rest = trimmed(rest.substr(end));
    return word;
}

/// An optional number.
struct maybe_number {
    bool is_there = false;
    std::uint64_t value = 0;

    constexpr explicit operator bool() const { return is_there; }
    constexpr auto operator*() const -> std::uint64_t { return value; }
    [[nodiscard]] constexpr auto value_or(std::uint64_t other) const -> std::uint64_t {
        return is_there ? value : other;
    }
};

constexpr auto number_in(string_view digits, unsigned base = 16) -> maybe_number {
    if (digits.empty()) { return {}; }
    std::uint64_t value = 0;
    for (char const letter : digits) {
        unsigned const digit = letter >= '0' && letter <= '9' ? static_cast<unsigned>(letter - '0')
                               : letter >= 'A' && letter <= 'F'
                                   ? static_cast<unsigned>(letter - 'A') + 10
                               : letter >= 'a' && letter <= 'f'
                                   ? static_cast<unsigned>(letter - 'a') + 10
                                   : 16;
        if (digit >= base || value > (~std::uint64_t{0} - digit) / base) { return {}; }
        value = value * base + digit;
    }
    return {true, value};
}

/// One event: time, repeat count, words, arguments `name=value`, and target.
struct event_text {
    static constexpr std::size_t max_arguments = 9;  ///< VM entry has nine
    struct argument {
        string_view name{};
        string_view value{};
        bool used = false;
    };

    string_view whole{};
    maybe_number cycle{};
    std::uint64_t times = 1;
    string_view kind{};  ///< the first word
    string_view rest{};  ///< the other words
    bool has_target = false;
    string_view target{};
    argument arguments[max_arguments] = {};
    std::size_t count = 0;

    /// The value of an argument; empty when it is absent.
    constexpr auto value(string_view name) -> string_view {
        for (std::size_t i = 0; i < count; ++i) {
            if (arguments[i].name == name) {
                arguments[i].used = true;
                return arguments[i].value;
            }
        }
        return {};
    }
    /// The first argument that was given but never read.
    [[nodiscard]] constexpr auto unused() const -> string_view {
        for (std::size_t i = 0; i < count; ++i) {
            if (!arguments[i].used) { return arguments[i].name; }
        }
        return {};
    }
};

/// Splits an event into its parts. `expected` describes a syntax error; it is empty when there is
/// none.
struct cut_event {
    event_text parts{};
    string_view expected{};
};

constexpr auto cut(string_view whole) -> cut_event {
    cut_event done;
    event_text& parts = done.parts;
    parts.whole = trimmed(whole);
    string_view rest = parts.whole;
    if (auto const arrow = rest.rfind("->"); arrow != string_view::npos) {
        parts.has_target = true;
        parts.target = trimmed(rest.substr(arrow + 2));
        rest = trimmed(rest.substr(0, arrow));
        if (parts.target.empty()) { return {parts, "a target after ->"}; }
    }
    if (starts_with(rest, "t=")) {
        parts.cycle = number_in(take_word(rest).substr(2), 10);
        if (!parts.cycle) { return {parts, "a decimal number of cycles after t="}; }
    }
    {
        auto after = rest;
        auto const times = number_in(take_word(after), 10);
        if (times && take_word(after) == "x") {
            if (*times == 0 || *times > 1'000'000) { return {parts, "1 to 1000000 times"}; }
            parts.times = *times;
            rest = after;
        }
    }
    parts.kind = take_word(rest);
    if (parts.kind.empty()) { return {parts, "an event"}; }
    auto words = rest;
    std::size_t words_end = 0;
    while (!words.empty()) {
        auto const word = take_word(words);
        auto const equals = word.find('=');
        bool const is_argument = equals != string_view::npos;
        if (!is_argument) {
            if (parts.count != 0) { return {parts, "words before arguments"}; }
            words_end = static_cast<std::size_t>(word.data() + word.size() - rest.data());
            continue;
        }
        if (parts.count == event_text::max_arguments) { return {parts, "fewer arguments"}; }
        parts.arguments[parts.count] = {word.substr(0, equals), word.substr(equals + 1)};
        ++parts.count;
    }
    parts.rest = rest.substr(0, words_end);
    return done;
}

}  // namespace trace_script
