// SPDX-License-Identifier: BSL-1.0
#include <ptspec/print/text.hpp>

#include <support/check_twice.hpp>

#include <string>

using namespace ptspec;

namespace {

template <class Number>
constexpr auto hex_of(Number number) {
    return print::written<40>([=](auto& out) { print::hex(number, out); });
}
constexpr auto hex_of(uint64_t number, unsigned digits) {
    return print::written<40>([=](auto& out) { print::hex(number, out, digits); });
}
constexpr auto decimal_of(uint64_t number) {
    return print::written<40>([=](auto& out) { print::decimal(number, out); });
}

}  // namespace

TEST_CASE("a hexadecimal number has upper-case digits and no leading zeros") {
    CHECK_TWICE([](auto value) {
        return hex_of(value(uint64_t{0})) == "0" && hex_of(value(uint64_t{9})) == "9" &&
               hex_of(value(uint64_t{0xABCDEF})) == "ABCDEF" &&
               hex_of(value(uint64_t{0x0123'4567'89AB'CDEF})) == "123456789ABCDEF" &&
               hex_of(value(~uint64_t{0})) == "FFFFFFFFFFFFFFFF";
    });
}

TEST_CASE("a hexadecimal number can be padded with leading zeros") {
    CHECK_TWICE([](auto value) {
        return hex_of(value(uint64_t{0}), 2) == "00" && hex_of(value(uint64_t{0x7F}), 1) == "7F" &&
               hex_of(value(uint64_t{0x7F}), 16) == "000000000000007F";
    });
}

TEST_CASE("sixteen bytes are printed as one hexadecimal number") {
    CHECK_TWICE([](auto value) {
        return hex_of(value(wide_bits{0x12, 0})) == "12" && hex_of(value(wide_bits{0, 0})) == "0" &&
               hex_of(value(wide_bits{0x12, 0xAB})) == "AB0000000000000012" &&
               hex_of(value(wide_bits{0, 1})) == "10000000000000000";
    });
}

TEST_CASE("a number is printed in decimal") {
    CHECK_TWICE([](auto value) {
        return decimal_of(value(uint64_t{0})) == "0" && decimal_of(value(uint64_t{9})) == "9" &&
               decimal_of(value(uint64_t{10})) == "10" &&
               decimal_of(value(uint64_t{1'234'567'890})) == "1234567890" &&
               decimal_of(value(~uint64_t{0})) == "18446744073709551615";
    });
}

TEST_CASE("a borrowed buffer truncates text and remembers it") {
    CHECK_TWICE([](auto value) {
        char room[6] = {};
        print::text_buffer out{room};
        out("ab");
        out("");
        print::put("cdef", out);
        bool const full = out.written() == text{"abcdef"} && !out.is_truncated();
        out("");
        bool const nothing_more = !out.is_truncated();
        out(value(text{"g"}));
        return full && nothing_more && out.written() == text{"abcdef"} && out.is_truncated();
    });
    CHECK_TWICE([](auto value) {
        char room[4] = {'-', '-', '-', '-'};
        print::text_buffer out{room, value(size_t{3})};
        out("abcdef");
        return out.written() == text{"abc"} && out.is_truncated() && room[3] == '-';
    });
}

TEST_CASE("written text has its exact length, and is empty if it was truncated") {
    CHECK_TWICE([](auto value) {
        print::fixed_text<4> out;
        bool const empty = out == "" && out.written().size() == 0;
        out("ab");
        out(value(text{"cd"}));
        bool const full = out == "abcd" && !(out == "abc") && !out.is_truncated;
        out("e");
        out("");
        return empty && full && out.is_truncated && out.written() == text{"abcd"} &&
               !(out == "abcd");
    });
}

TEST_CASE("written() gives the output of a function as a constant") {
    constexpr auto line = print::written<8>([](auto& out) {
        out("x=");
        print::decimal(42, out);
    });
    static_assert(line == "x=42");
    CHECK(line.length == 4);
}

TEST_CASE("a sink receives pieces of type text, and may be a function or a generic lambda") {
    static_assert(print::text_sink<void (*)(text)>);
    static_assert(print::text_sink<print::text_buffer>);
    static_assert(print::text_sink<print::fixed_text<1>>);
    static_assert(!print::text_sink<int>);
    std::string written;
    print::put("ab", [&](auto piece) {
        static_assert(same_as<decltype(piece), text>);
        written.append(piece.data(), piece.size());
    });
    print::hex(uint64_t{0x1F}, [&](text piece) { written.append(piece.data(), piece.size()); });
    CHECK(written == "ab1F");
}
