// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/raw_bits.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

constexpr uint64_t all = ~uint64_t{0};

}  // namespace

TEST_CASE("low_bits sets `count` bits, up to all 64") {
    CHECK_TWICE([](auto value) {
        return low_bits(value(0U)) == 0 && low_bits(value(1U)) == 1 && low_bits(value(2U)) == 3 &&
               low_bits(value(7U)) == 0x7F && low_bits(value(32U)) == 0xFFFF'FFFF &&
               low_bits(value(63U)) == 0x7FFF'FFFF'FFFF'FFFF && low_bits(value(64U)) == all &&
               low_bits(value(65U)) == all;
    });
}

TEST_CASE("the operators of wide_bits apply to both halves") {
    CHECK_TWICE([](auto value) {
        auto const one = value(wide_bits{0xFF00, 0x1200});
        auto const two = value(wide_bits{0x0FF0, 0x1034});
        return (one & two) == wide_bits{0x0F00, 0x1000} &&
               (one | two) == wide_bits{0xFFF0, 0x1234} &&
               ~one == wide_bits{0xFFFF'FFFF'FFFF'00FF, 0xFFFF'FFFF'FFFF'EDFF} &&
               wide_bits{} == wide_bits{0, 0};
    });
    CHECK_TWICE([](auto value) {
        auto const one = value(wide_bits{1, 2});
        return one == wide_bits{1, 2} && one != wide_bits{1, 3} && one != wide_bits{0, 2};
    });
}

TEST_CASE("shifted_right() extracts bits from any position") {
    CHECK_TWICE([](auto value) {
        auto const raw = value(uint64_t{0x0123'4567'89AB'CDEF});
        return detail::shifted_right(raw, 0) == raw &&
               detail::shifted_right(raw, 4) == 0x12'3456'789A'BCDE &&
               detail::shifted_right(raw, 63) == 0 && detail::shifted_right(~raw, 63) == 1 &&
               detail::shifted_right(value(uint8_t{0x81}), 7) == 1;
    });
    CHECK_TWICE([](auto value) {
        auto const raw = value(wide_bits{0x0123'4567'89AB'CDEF, 0xFEDC'BA98'7654'3210});
        return detail::shifted_right(raw, 0) == 0x0123'4567'89AB'CDEF &&
               detail::shifted_right(raw, 4) == 0x0012'3456'789A'BCDE &&
               detail::shifted_right(raw, 8) == 0x1001'2345'6789'ABCD &&
               detail::shifted_right(raw, 60) == 0xEDCB'A987'6543'2100 &&
               detail::shifted_right(raw, 63) == 0xFDB9'7530'ECA8'6420 &&
               detail::shifted_right(raw, 64) == 0xFEDC'BA98'7654'3210 &&
               detail::shifted_right(raw, 68) == 0x0FED'CBA9'8765'4321 &&
               detail::shifted_right(raw, 127) == 1;
    });
}

TEST_CASE("shifted_left() puts a number at any position") {
    CHECK_TWICE([](auto value) {
        auto const number = value(uint64_t{0x8000'0000'0000'00A5});
        return detail::shifted_left<uint64_t>(number, 0) == number &&
               detail::shifted_left<uint64_t>(number, 8) == 0xA500 &&
               detail::shifted_left<uint8_t>(number, 0) == 0xA5 &&
               detail::shifted_left<uint16_t>(number, 8) == 0xA500;
    });
    CHECK_TWICE([](auto value) {
        auto const number = value(uint64_t{0x8000'0000'0000'00A5});
        return detail::shifted_left<wide_bits>(number, 0) == wide_bits{number, 0} &&
               detail::shifted_left<wide_bits>(number, 1) == wide_bits{0x14A, 1} &&
               detail::shifted_left<wide_bits>(number, 60) ==
                   wide_bits{0x5000'0000'0000'0000, 0x0800'0000'0000'000A} &&
               detail::shifted_left<wide_bits>(number, 63) ==
                   wide_bits{0x8000'0000'0000'0000, 0x4000'0000'0000'0052} &&
               detail::shifted_left<wide_bits>(number, 64) == wide_bits{0, number} &&
               detail::shifted_left<wide_bits>(number, 72) == wide_bits{0, 0xA500};
    });
}

TEST_CASE("bit_mask includes its lowest and its highest bit") {
    CHECK_TWICE([](auto value) {
        return detail::bit_mask<uint64_t>(value(17U), value(14U)) == 0x3'C000 &&
               detail::bit_mask<uint64_t>(value(0U), value(0U)) == 1 &&
               detail::bit_mask<uint64_t>(value(63U), value(0U)) == all &&
               detail::bit_mask<uint64_t>(value(63U), value(63U)) == 0x8000'0000'0000'0000 &&
               detail::bit_mask<uint8_t>(value(7U), value(4U)) == 0xF0;
    });
    CHECK_TWICE([](auto value) {
        return detail::bit_mask<wide_bits>(value(17U), value(14U)) == wide_bits{0x3'C000, 0} &&
               detail::bit_mask<wide_bits>(value(63U), value(0U)) == wide_bits{all, 0} &&
               detail::bit_mask<wide_bits>(value(63U), value(63U)) ==
                   wide_bits{0x8000'0000'0000'0000, 0} &&
               detail::bit_mask<wide_bits>(value(64U), value(63U)) ==
                   wide_bits{0x8000'0000'0000'0000, 1} &&
               detail::bit_mask<wide_bits>(value(64U), value(64U)) == wide_bits{0, 1} &&
               detail::bit_mask<wide_bits>(value(65U), value(65U)) == wide_bits{0, 2} &&
               detail::bit_mask<wide_bits>(value(71U), value(68U)) == wide_bits{0, 0xF0} &&
               detail::bit_mask<wide_bits>(value(127U), value(0U)) == wide_bits{all, all} &&
               detail::bit_mask<wide_bits>(value(127U), value(127U)) ==
                   wide_bits{0, 0x8000'0000'0000'0000};
    });
}

TEST_CASE("to_wide() and from_wide() keep the raw bits of a word") {
    CHECK_TWICE([](auto value) {
        auto const wide = value(wide_bits{0x0123'4567'89AB'CDEF, 0x1122});
        auto const narrow = value(uint64_t{0x8877'6655'4433'2211});
        return to_wide(wide) == wide && to_wide(narrow) == wide_bits{0x8877'6655'4433'2211, 0} &&
               to_wide(value(0x8877'6655U)) == wide_bits{0x8877'6655, 0} &&
               from_wide<wide_bits>(wide) == wide &&
               from_wide<uint64_t>(wide) == 0x0123'4567'89AB'CDEF &&
               from_wide<uint32_t>(wide) == 0x89AB'CDEF;
    });
}

TEST_CASE("first_bytes() keeps as many bytes of a wide number") {
    CHECK_TWICE([](auto value) {
        wide_bits const bits = value(wide_bits{0x8877'6655'4433'2211, 0x00FF'EEDD'CCBB'AA99});
        return first_bytes(bits, 0) == wide_bits{} && first_bytes(bits, 1) == wide_bits{0x11, 0} &&
               first_bytes(bits, 7) == wide_bits{0x0077'6655'4433'2211, 0} &&
               first_bytes(bits, 8) == wide_bits{0x8877'6655'4433'2211, 0} &&
               first_bytes(bits, 9) == wide_bits{0x8877'6655'4433'2211, 0x99} &&
               first_bytes(bits, 15) == wide_bits{0x8877'6655'4433'2211, 0x00FF'EEDD'CCBB'AA99} &&
               first_bytes(wide_bits{0, ~uint64_t{0}}, 15).high >> 56 == 0 &&
               first_bytes(bits, 16) == bits;
    });
}
