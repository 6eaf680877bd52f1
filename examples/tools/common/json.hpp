// SPDX-License-Identifier: BSL-1.0
#pragma once

// JSON, as the tools write it.

#include <ptspec/packet/tnt.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace json {

/// The length of the UTF-8 character at the front of a text; 0 when the bytes are not UTF-8.
inline auto utf8_length(std::string_view text) -> std::size_t {
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    auto const lead = byte(0);
    if (lead < 0x80) { return 1; }
    std::size_t const length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead > 0xF4 || text.size() < length) { return 0; }
    for (std::size_t i = 1; i < length; ++i) {
        if (byte(i) >> 6 != 2) { return 0; }
    }
    // Rejects overlong forms, surrogates, and characters above U+10FFFF.
    bool const is_other = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
                          (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F);
    return is_other ? 0 : length;
}

inline void append_json_string(std::string& out, std::string_view value) {
    out += '"';
    while (!value.empty()) {
        auto const length = utf8_length(value);
        auto const byte = static_cast<unsigned char>(value[0]);
        if (length == 0) {
            out += "\\ufffd";
        } else if (byte == '"' || byte == '\\') {
            out += '\\';
            out += value[0];
        } else if (byte < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", byte);
            out += escape;
        } else {
            out += value.substr(0, length);
        }
        value.remove_prefix(length == 0 ? 1 : length);
    }
    out += '"';
}

/// Appends `"name":value` pairs to a JSON object.
class json_fields {
public:
    explicit json_fields(std::string& out) : out_{out} {}

    template <class Number>
    void number(std::string_view name, Number value) {
        begin(name);
        char digits[24];
        // +: a bool becomes an int.
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, +value).ptr);
    }
    void hex(std::string_view name, std::uint64_t value) {
        begin(name);
        char digits[24];
        out_ += "\"0x";
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
        out_ += '"';
    }
    void nothing(std::string_view name) {
        begin(name);
        out_ += "null";
    }
    void string(std::string_view name, std::string_view value) {
        begin(name);
        append_json_string(out_, value);
    }
    void branches(std::string_view name, ptspec::packet::branches which) {
        begin(name);
        out_ += '"';
        for (unsigned i = 0; i < which.count; ++i) { out_ += which.taken(i) ? 'T' : 'N'; }
        out_ += '"';
    }
    void open(std::string_view name) {
        begin(name);
        out_ += '{';
    }

    /// `name` has no character that JSON escapes.
    void begin(std::string_view name) {
        if (out_.back() != '{') { out_ += ','; }
        out_ += '"';
        out_ += name;
        out_ += "\":";
    }

private:
    std::string& out_;
};

}  // namespace json
