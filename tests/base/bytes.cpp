// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/bytes.hpp>

#include <support/check_twice.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using namespace ptspec;

namespace {

constexpr uint8_t counting[20] = {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19,
                                  0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0xF0, 0xF1, 0xF2, 0xF3};

/// A separate copy of the bytes, hidden from the compiler.
constexpr auto copy_of_counting(auto value) {
    return value(byte_array<20>{{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19,
                                 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0xF0, 0xF1, 0xF2, 0xF3}});
}

/// An owner with a signed size, as in some libraries.
struct signed_size {
    uint8_t bytes[3];
    constexpr auto data() const -> uint8_t const* { return bytes; }
    constexpr auto size() const -> int { return 3; }
};
struct sizes_only {
    auto size() const -> size_t;
};
struct data_only {
    auto data() const -> uint8_t const*;
};
struct of_wchar {
    auto data() const -> wchar_t const*;
    auto size() const -> size_t;
};
struct writable {
    auto data() -> uint8_t*;
    auto size() -> size_t;
};

}  // namespace

// ------------------------------------------------------------------------------------ copies

/// Checks copies of 0 to 40 bytes, including the bytes around the target.
constexpr auto copies_right(auto value, auto copy) -> bool {
    uint8_t from[40] = {};
    for (unsigned i = 0; i < 40; ++i) { from[i] = static_cast<uint8_t>(value(i) * 7 + 1); }
    for (size_t count = value(size_t{0}); count <= 40; ++count) {
        uint8_t to[42] = {};
        copy(to + 1, from, count);
        for (unsigned i = 0; i < 42; ++i) {
            bool const copied = i >= 1 && i <= count;
            if (to[i] != (copied ? from[i - 1] : 0)) { return false; }
        }
    }
    copy(nullptr, nullptr, value(size_t{0}));  // null pointers are allowed for an empty copy
    return true;
}

TEST_CASE("copies write exactly the requested number of bytes") {
    CHECK_TWICE([](auto value) {
        return copies_right(value, [](auto... given) { copy_bytes(given...); });
    });
    CHECK_TWICE([](auto value) {
        return copies_right(value, [](auto... given) { copy_few_bytes(given...); });
    });
}

// ------------------------------------------------------------------------------------ byte_view

TEST_CASE("a byte_view is constructed from every contiguous container of bytes") {
    CHECK_TWICE([](auto) { return byte_view{}.size() == 0 && byte_view{}.data() == nullptr; });
    CHECK_TWICE([](auto value) {
        byte_view const view{counting, value(size_t{3})};
        return view.size() == 3 && view.data() == counting && view[2] == 0x12;
    });
    CHECK_TWICE([](auto) {
        byte_view const view = counting;
        return view.size() == 20 && view.data() == counting;
    });
    CHECK_TWICE([](auto value) {
        auto const owner = value(byte_array<3>{{7, 8, 9}});
        byte_view const view = owner;
        return view.size() == 3 && view.data() == owner.data() && view[0] == 7;
    });
    CHECK_TWICE([](auto value) {
        auto const owner = value(std::array<uint8_t, 2>{5, 6});
        byte_view const view = owner;
        return view.size() == 2 && view[1] == 6;
    });
    CHECK_TWICE([](auto value) {
        auto const owner = value(signed_size{{4, 5, 6}});
        byte_view const view = owner;
        return view.size() == 3 && view[2] == 6;
    });
    std::vector<uint8_t> const owner{1, 2, 3, 4};
    byte_view const view = owner;
    CHECK(view.size() == 4);
    CHECK(view.data() == owner.data());
    std::basic_string_view<uint8_t> const text{counting, 5};
    CHECK(byte_view{text}.size() == 5);
}

TEST_CASE("a byte_view reads char and std::byte as bytes, at run time") {
    std::string const letters{"\x02\x82\xFF"};
    std::vector<char> const file{letters.begin(), letters.end()};
    std::byte const raw[] = {std::byte{0x02}, std::byte{0x82}, std::byte{0xFF}};
    uint8_t const expected[] = {0x02, 0x82, 0xFF};
    CHECK(byte_view{letters} == byte_view{expected});
    CHECK(byte_view{std::string_view{letters}.substr(1)} == byte_view{expected}.from(1));
    CHECK(byte_view{file} == byte_view{expected});
    CHECK(byte_view{std::span<std::byte const>{raw}} == byte_view{expected});
    CHECK(static_cast<void const*>(byte_view{file}.data()) == file.data());
}

TEST_CASE("borrows_bytes is true for views and false for owners") {
    static_assert(borrows_bytes<byte_view> && borrows_bytes<text>);
    static_assert(borrows_bytes<std::string_view>);
    static_assert(borrows_bytes<std::span<uint8_t>> &&
                  borrows_bytes<std::span<std::byte const, 4>>);
    static_assert(!borrows_bytes<std::vector<uint8_t>> && !borrows_bytes<std::string>);
    static_assert(!borrows_bytes<std::array<uint8_t, 4>>);
    static_assert(!borrows_bytes<std::array<uint8_t const, 4>>);
    static_assert(!borrows_bytes<byte_array<4>> && !borrows_bytes<signed_size>);
    static_assert(!borrows_bytes<uint8_t[4]> && !borrows_bytes<int>);
    CHECK(std::is_trivially_copyable_v<std::array<uint8_t, 4>>);
}

TEST_CASE("kept_bytes is constructed from named owners, views, and a pointer with a length") {
    CHECK_TWICE([](auto value) {
        auto const owner = value(byte_array<3>{{7, 8, 9}});
        borrowed_bytes const of_owner = owner;
        borrowed_bytes const of_view = byte_view{owner}.from(1);
        borrowed_bytes const of_array = counting;
        borrowed_bytes const copy = of_owner;
        return of_owner.view().data() == owner.data() && of_owner.view().size() == 3 &&
               of_view.view().data() == owner.data() + 1 && of_view.view().size() == 2 &&
               of_array.view().data() == counting && of_array.view().size() == 20 &&
               copy.view() == of_owner.view() &&
               borrowed_bytes{counting, value(size_t{2})}.view().size() == 2;
    });
    std::vector<char> file{'a', 'b'};
    CHECK(borrowed_bytes{file}.view().size() == 2);
    CHECK(borrowed_bytes{std::span{file}}.view()[1] == 'b');
}

TEST_CASE("a byte_view is not constructed from literals, wider elements or incomplete owners") {
    static_assert(std::is_convertible_v<std::vector<uint8_t>, byte_view>);
    static_assert(!std::is_constructible_v<byte_view, char const(&)[4]>);
    static_assert(!std::is_constructible_v<byte_view, std::vector<uint16_t>>);
    static_assert(!std::is_constructible_v<byte_view, std::vector<double>>);
    static_assert(!std::is_constructible_v<byte_view, sizes_only>);
    static_assert(!std::is_constructible_v<byte_view, data_only>);
    static_assert(!std::is_constructible_v<byte_view, of_wchar>);
    static_assert(!std::is_constructible_v<byte_view, writable>);
    static_assert(!std::is_constructible_v<byte_view, uint8_t const*>);
    static_assert(!std::is_constructible_v<byte_view, int>);
    CHECK(std::is_trivially_copyable_v<byte_view>);
}

TEST_CASE("a byte_view can be iterated") {
    CHECK_TWICE([](auto value) {
        auto const owner = copy_of_counting(value);
        byte_view const view{owner.data(), 4};
        unsigned sum = 0;
        for (auto const byte : view) { sum += byte; }
        return sum == 0x46 && view.end() - view.begin() == 4 && !view.empty() &&
               byte_view{owner.data(), 0}.empty();
    });
}

TEST_CASE("from() drops bytes at the front, down to an empty view") {
    CHECK_TWICE([](auto value) {
        auto const owner = copy_of_counting(value);
        byte_view const view = owner;
        return view.from(0) == view && view.from(value(size_t{3})).size() == 17 &&
               view.from(3)[0] == 0x13 && view.from(19).size() == 1 && view.from(19)[0] == 0xF3 &&
               view.from(value(size_t{20})).empty() && view.from(value(size_t{21})).empty() &&
               view.from(~size_t{0}).empty() && byte_view{}.from(0).empty() &&
               byte_view{}.from(1).empty();
    });
}

TEST_CASE("first() drops bytes at the end and never exceeds the size") {
    CHECK_TWICE([](auto value) {
        auto const owner = copy_of_counting(value);
        byte_view const view = owner;
        return view.first(value(size_t{0})).empty() && view.first(1).size() == 1 &&
               view.first(1).data() == owner.data() && view.first(value(size_t{19})).size() == 19 &&
               view.first(value(size_t{20})).size() == 20 &&
               view.first(value(size_t{21})).size() == 20 && view.first(~size_t{0}).size() == 20 &&
               byte_view{}.first(1).empty();
    });
}

TEST_CASE("views are equal if their bytes are equal") {
    CHECK_TWICE([](auto value) {
        auto const one = copy_of_counting(value);
        auto const two = copy_of_counting(value);
        return byte_view{one} == byte_view{two} && !(byte_view{one} == byte_view{two}.first(19)) &&
               !(byte_view{one}.first(19) == byte_view{two}.from(1)) &&
               byte_view{one}.first(0) == byte_view{} && !(byte_view{} == byte_view{one});
    });
    CHECK_TWICE([](auto value) {
        auto const one = value(byte_array<3>{{1, 2, 3}});
        auto const two = value(byte_array<3>{{1, 2, 4}});
        auto const three = value(byte_array<3>{{0, 2, 3}});
        return !(byte_view{one} == byte_view{two}) && !(byte_view{one} == byte_view{three});
    });
}

// ------------------------------------------------------------------------------------ byte_buffer

TEST_CASE("a byte_buffer is filled from the front; a write that does not fit is refused") {
    CHECK_TWICE([](auto value) {
        uint8_t room[5] = {0xEE, 0xEE, 0xEE, 0xEE, 0xEE};
        byte_buffer buffer = room;
        auto const owner = copy_of_counting(value);
        byte_view const bytes = owner;
        bool const empty = buffer.room() == 5 && buffer.size() == 0 && buffer.written().empty();
        bool const three = buffer.append(bytes.first(3)) && buffer.size() == 3 &&
                           buffer.room() == 2 && buffer.written() == bytes.first(3) &&
                           room[3] == 0xEE;
        bool const too_many = !buffer.append(bytes.first(3)) && buffer.size() == 3 &&
                              buffer.room() == 2 && room[3] == 0xEE && room[4] == 0xEE;
        bool const none = buffer.append({}) && buffer.size() == 3;
        bool const two = buffer.append(bytes.from(18)) && buffer.size() == 5 &&
                         buffer.room() == 0 && room[3] == 0xF2 && room[4] == 0xF3 &&
                         buffer.written().data() == room;
        bool const full = !buffer.append(bytes.first(1)) && buffer.append({}) && buffer.size() == 5;
        return empty && three && too_many && none && two && full;
    });
}

TEST_CASE("grow() counts bytes written past the end, limited to the room") {
    CHECK_TWICE([](auto value) {
        uint8_t room[4] = {};
        byte_buffer buffer{room, value(size_t{3})};
        bool const begins = buffer.end() == room && buffer.append({counting, 1});
        *buffer.end() = 8;
        buffer.grow(value(size_t{1}));
        bool const grown = buffer.size() == 2 && buffer.written()[1] == 8 && buffer.room() == 1 &&
                           buffer.end() == room + 2;
        buffer.grow(value(~size_t{0}));
        return begins && grown && buffer.size() == 3 && buffer.room() == 0 && room[3] == 0;
    });
}

TEST_CASE("a byte_buffer over part of an array does not change the rest") {
    CHECK_TWICE([](auto value) {
        uint8_t room[4] = {};
        byte_buffer buffer{room, value(size_t{2})};
        bool const two = buffer.append(byte_view{counting, 2}) && !buffer.append({counting, 1});
        return two && room[1] == 0x11 && room[2] == 0;
    });
    CHECK_TWICE([](auto) {
        byte_buffer nothing;
        return nothing.room() == 0 && nothing.size() == 0 && nothing.append({}) &&
               !nothing.append({counting, 1}) && nothing.written().empty();
    });
}

TEST_CASE("append() of sixteen bytes keeps the first `count`, also near the end of the room") {
    CHECK_TWICE([](auto value) {
        wide_bits const number{0x0706'0504'0302'0100, 0x0F0E'0D0C'0B0A'0908};
        bool right = true;
        for (size_t room = 0; room <= 18; ++room) {
            for (size_t count = 0; count <= 16; ++count) {
                uint8_t all[20] = {};
                for (uint8_t& one : all) { one = 0xEE; }
                byte_buffer buffer{all + 1, room};
                bool const fits = room >= 1 + count;
                right = right && buffer.append(byte_view{counting, 1}) == (room >= 1) &&
                        (room == 0 || buffer.append(value(number), count) == fits) &&
                        buffer.size() == (fits       ? 1 + count
                                          : room < 1 ? 0
                                                     : 1);
                for (size_t i = 0; fits && i < count; ++i) {
                    right = right && buffer.written()[1 + i] == i;
                }
                right = right && all[0] == 0xEE && all[1 + room] == 0xEE;
            }
        }
        return right;
    });
}

// ------------------------------------------------------------------------------------ byte_array

TEST_CASE("a byte_array owns its bytes, which are initially zero") {
    static_assert(sizeof(byte_array<3>) == 3 && byte_array<3>::size() == 3);
    static_assert(std::is_trivially_copyable_v<byte_array<3>>);
    CHECK_TWICE([](auto value) {
        auto bytes = value(byte_array<3>{});
        bool const zeros = bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 0;
        bytes.data()[1] = 7;
        auto const same = bytes;
        return zeros && bytes[1] == 7 && bytes[0] == 0 && same == bytes && same.data()[1] == 7 &&
               same != byte_array<3>{};
    });
}

// ------------------------------------------------------------------------------------ numbers

TEST_CASE("load_le64 is little-endian at any alignment") {
    CHECK_TWICE([](auto value) {
        auto const owner = copy_of_counting(value);
        return load_le64(owner.data()) == 0x1716'1514'1312'1110 &&
               load_le64(owner.data() + 1) == 0x1817'1615'1413'1211 &&
               load_le64(owner.data() + 3) == 0x1A19'1817'1615'1413 &&
               load_le64(owner.data() + 7) == 0x1E1D'1C1B'1A19'1817 &&
               load_le64(owner.data() + 12) == 0xF3F2'F1F0'1F1E'1D1C;
    });
    CHECK_TWICE([](auto value) {
        auto const last = value(byte_array<8>{{0, 0, 0, 0, 0, 0, 0, 0x80}});
        return load_le64(last.data()) == 0x8000'0000'0000'0000;
    });
}

TEST_CASE("load_le reads up to eight bytes and zero-extends") {
    CHECK_TWICE([](auto value) {
        uint64_t const expected[] = {
            0,
            0x11,
            0x1211,
            0x13'1211,
            0x1413'1211,
            0x15'1413'1211,
            0x1615'1413'1211,
            0x17'1615'1413'1211,
            0x1817'1615'1413'1211,
        };
        auto const owner = copy_of_counting(value);
        for (size_t length = 0; length <= 17; ++length) {
            auto const number = load_le({owner.data() + 1, length});
            if (number != expected[length < 8 ? length : 8]) { return false; }
        }
        return true;
    });
}

TEST_CASE("load_le_wide reads up to sixteen bytes and zero-extends") {
    CHECK_TWICE([](auto value) {
        uint64_t const expected[] = {
            0,
            0x12,
            0x1312,
            0x14'1312,
            0x1514'1312,
            0x16'1514'1312,
            0x1716'1514'1312,
            0x18'1716'1514'1312,
            0x1918'1716'1514'1312,
        };
        uint64_t const expected_high[] = {
            0,
            0x1A,
            0x1B1A,
            0x1C'1B1A,
            0x1D1C'1B1A,
            0x1E'1D1C'1B1A,
            0x1F1E'1D1C'1B1A,
            0xF0'1F1E'1D1C'1B1A,
            0xF1F0'1F1E'1D1C'1B1A,
        };
        auto const owner = copy_of_counting(value);
        for (size_t length = 0; length <= 18; ++length) {
            auto const number = load_le_wide({owner.data() + 2, length});
            size_t const low = length < 8 ? length : 8;
            size_t const high = length < 8 ? 0 : length < 16 ? length - 8 : 8;
            if (number != wide_bits{expected[low], expected_high[high]}) { return false; }
        }
        return true;
    });
}

TEST_CASE("store_le64 is little-endian and writes only eight bytes") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[10] = {0xEE, 0, 0, 0, 0, 0, 0, 0, 0, 0xEE};
        store_le64(bytes + 1, value(uint64_t{0x0123'4567'89AB'CDEF}));
        uint8_t const expected[10] = {0xEE, 0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01, 0xEE};
        return byte_view{bytes} == byte_view{expected} &&
               load_le64(bytes + 1) == 0x0123'4567'89AB'CDEF;
    });
}

TEST_CASE("to_le of sixteen bytes is little-endian") {
    CHECK_TWICE([](auto value) {
        auto const bytes = to_le({value(uint64_t{0x0706'0504'0302'0100}), 0x0F0E'0D0C'0B0A'0908});
        bool right = bytes.size() == 16;
        for (size_t i = 0; i < 16; ++i) { right = right && bytes[i] == i; }
        return right;
    });
}
