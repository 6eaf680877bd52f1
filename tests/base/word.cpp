// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/word.hpp>

#include <support/check_twice.hpp>

#include <type_traits>

// The laws of all words of the library are in laws_words.cpp. This file tests words that exist only
// here, with manually written bits.

using namespace ptspec;

namespace {

enum class shade : uint8_t { light = 1, dark = 2 };

struct small : bit_word<small, uint8_t> {
    struct Low : field<2, 0> {};
    struct Flag : flag<3> {};
    struct Shade : enumerated<6, 5, shade> {};

    struct layout : bit_layout<8, Low, Flag, reserved<4>, Shade, reserved<7>> {};
};

struct mixed : bit_word<mixed, uint64_t> {
    struct Ignored : write_ignored<flag<0>> {};
    struct Forced : forced_1<field<6, 1>> {};
    struct Address : address_field<40, 7> {};
    struct Shifted : address_field<60, 44, 32> {};  // address bits 48:32 are in bits 60:44
    struct Top : flag<63> {};

    struct layout
        : bit_layout<64, Ignored, Forced, Address, other<43, 41>, Shifted, reserved<62, 61>, Top> {
    };
};

struct wide : bit_word<wide, wide_bits> {
    struct Opcode : fixed<15, 0, 0x8202> {};
    struct Across : field<79, 16> {};
    struct Upper : field<123, 80> {};
    struct Last : flag<127> {};

    struct layout : bit_layout<128, Opcode, Across, Upper, reserved<126, 124>, Last> {};
};

struct only_one : bit_word<only_one, uint32_t> {
    struct All : field<31, 0> {};
    struct layout : bit_layout<32, All> {};
};

struct to_the_top : bit_word<to_the_top, uint64_t> {
    struct Address : address_field<63, 12> {};
    struct layout : bit_layout<64, reserved<11, 0>, Address> {};
};

/// Not a row of any word above, although one of them has a row at the same position.
struct Unrelated : flag<3> {};

constexpr auto all = ~uint64_t{0};

template <class One, class Two>
concept can_be_compared = requires(One one, Two two) { one == two; };
template <class Word, class Field>
concept gives = requires(Word word) { word.template get<Field>(); };

}  // namespace

// ------------------------------------------------------------------------------------ layouts

TEST_CASE("rows tile if each begins where the previous one ends, from bit 0 to the top") {
    CHECK_TWICE([](auto value) {
        using detail::tile;
        // The arguments are the lowest and the highest bits of the rows
        unsigned const zero = value(0U);
        return tile({zero, 4}, {3, 7}, 8) && tile({zero}, {7}, 8) &&
               !tile({1, 4}, {3, 7}, 8 + zero) &&    // begins too high
               !tile({zero, 4}, {3, 6}, 8) &&        // ends too low
               !tile({zero, 4}, {3, 8}, 8) &&        // ends too high
               !tile({zero, 5}, {3, 7}, 8) &&        // a gap
               !tile({zero, 3}, {3, 7}, 8) &&        // an overlap
               !tile({4, zero}, {7, 3}, 8) &&        // wrong order
               !tile({zero, 5, 8}, {3, 7, 11}, 12);  // a gap only in the middle
    });
    static_assert(directly_below<field<3, 0>, field<7, 4>>);
    static_assert(!directly_below<field<3, 0>, field<7, 5>> &&
                  !directly_below<field<7, 4>, field<3, 0>>);
    static_assert(bit_layout<8, field<3, 0>, field<7, 4>>::tiles);
}

TEST_CASE("a layout has its size and its rows") {
    static_assert(small::layout::bits == 8 && wide::layout::bits == 128);
    static_assert(only_one::layout::rows::size == 1 && small::layout::rows::size == 5);
    static_assert(row_of<small::Low, small> && row_of<reserved<4>, small>);
    static_assert(!row_of<reserved<3>, small> && !row_of<Unrelated, small>);
    static_assert(field_of<small::Flag, small> && field_of<small::Shade, small>);
    static_assert(!field_of<reserved<4>, small> && !field_of<small::Flag, mixed> &&
                  !field_of<wide::Opcode, wide> && !field_of<other<43, 41>, mixed>);
    static_assert(!std::is_default_constructible_v<small::layout>);
}

// ------------------------------------------------------------------------------------ get and with

TEST_CASE("get() extracts a field's value from the word") {
    CHECK_TWICE([](auto value) {
        auto const word = small{value(uint8_t{0b1100'1101})};
        return word.get<small::Low>() == 5 && word.get<small::Flag>() &&
               word.get<small::Shade>() == shade::dark;
    });
    CHECK_TWICE([](auto value) {
        auto const word = small{value(uint8_t{0b0011'0010})};
        return word.get<small::Low>() == 2 && !word.get<small::Flag>() &&
               word.get<small::Shade>() == shade::light;
    });
}

TEST_CASE("get() of an address field is the address") {
    CHECK_TWICE([](auto value) {
        auto const word = mixed{value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})};
        return word.get<mixed::Address>() == 0x1FF'FFFF'FF80 &&
               word.get<mixed::Shifted>() == 0x1'FFFF'0000'0000;
    });
    CHECK_TWICE([](auto value) {
        auto const word = mixed{value(uint64_t{0x0000'5080'1234'5680})};
        return word.get<mixed::Address>() == 0x80'1234'5680 &&
               word.get<mixed::Shifted>() == 0x5'0000'0000;
    });
}

TEST_CASE("with() changes the named field and nothing else") {
    CHECK_TWICE([](auto value) {
        auto const zeros = small{value(uint8_t{0})};
        auto const ones = small{value(uint8_t{0xFF})};
        return zeros.with(small::Low{5}).raw == 0b0000'0101 &&
               ones.with(small::Low{0}).raw == 0b1111'1000 &&
               zeros.with(small::Flag{true}).raw == 0b0000'1000 &&
               ones.with(small::Flag{false}).raw == 0b1111'0111 &&
               zeros.with(small::Shade{shade::dark}).raw == 0b0100'0000 &&
               ones.with(small::Shade{shade::light}).raw == 0b1011'1111;
    });
}

TEST_CASE("with() changes several fields in any order") {
    CHECK_TWICE([](auto value) {
        auto const word = small{value(uint8_t{0b1001'0000})};
        return word.with(small::Low{6}, small::Flag{true}, small::Shade{shade::dark}).raw ==
                   0b1101'1110 &&
               word.with(small::Shade{shade::dark}, small::Low{6}, small::Flag{true}).raw ==
                   0b1101'1110 &&
               word.with().raw == 0b1001'0000;
    });
}

TEST_CASE("with() of an address field stores the address bits at the field's position") {
    CHECK_TWICE([](auto value) {
        auto const word = mixed{value(uint64_t{0})};
        return word.with(mixed::Address{0x1FF'FFFF'FF80}).raw == 0x1FF'FFFF'FF80 &&
               word.with(mixed::Shifted{0x1'0003'0000'0000}).raw == 0x1000'3000'0000'0000;
    });
}

TEST_CASE("fields of a word of sixteen bytes may cross its middle") {
    CHECK_TWICE([](auto value) {
        auto const word = wide{value(wide_bits{0x1234'5678'9ABC'8202, 0x8000'0000'1234'DEF0})};
        return word.get<wide::Across>() == 0xDEF0'1234'5678'9ABC &&
               word.get<wide::Upper>() == 0x1234 && word.get<wide::Last>();
    });
    CHECK_TWICE([](auto value) {
        auto const word = wide{value(wide_bits{all, all})};
        return word.with(wide::Across{0}).raw == wide_bits{0xFFFF, 0xFFFF'FFFF'FFFF'0000} &&
               word.with(wide::Across{0xDEF0'1234'5678'9ABC}).raw ==
                   wide_bits{0x1234'5678'9ABC'FFFF, 0xFFFF'FFFF'FFFF'DEF0} &&
               word.with(wide::Upper{1}, wide::Last{false}).raw ==
                   wide_bits{all, 0x7000'0000'0001'FFFF};
    });
}

TEST_CASE("a field may be as wide as its word") {
    CHECK_TWICE([](auto value) {
        auto const word = only_one{}.with(only_one::All{wrapped{value(uint64_t{0xF'1234'5678})}});
        return word.raw == 0x1234'5678 && word.get<only_one::All>() == 0x1234'5678;
    });
}

TEST_CASE("a word has only its own fields") {
    static_assert(field_of<small::Low, small> && field_of<small::Flag, small>);
    static_assert(!field_of<Unrelated, small> && !field_of<Unrelated, mixed>);
    static_assert(!field_of<mixed::Top, small> && !field_of<small::Flag, mixed>);
    static_assert(!gives<small, reserved<4>> && !gives<wide, wide::Opcode>);
    CHECK(!field_of<Unrelated, small>);
}

TEST_CASE("naming a field or a bit twice is detected") {
    CHECK_TWICE([](auto value) {
        using detail::are_disjoint;
        unsigned const two = value(2U);
        return are_disjoint({two}, {0}) && are_disjoint({two, 3, 6}, {0, 3, 5}) &&
               are_disjoint({6, 3, two}, {5, 3, 0}) &&
               are_disjoint({79, 123, 127}, {16, 80, 127}) && !are_disjoint({two, 2}, {0, 0}) &&
               !are_disjoint({two, 3, 2}, {0, 3, 0}) && !are_disjoint({two, 2, 3}, {0, 0, 3}) &&
               !are_disjoint({123, 127, 127}, {80, 127, 127}) && !are_disjoint({two, 5}, {0, 2}) &&
               !are_disjoint({5, two}, {2, 0}) && !are_disjoint({7, two}, {0, 1}) &&
               !are_disjoint({two, 7}, {1, 0});
    });
}

// ------------------------------------------------------------------------------------ masks

TEST_CASE("masks are computed from the rows") {
    CHECK_TWICE([](auto value) {
        return small::reserved_mask(value(64U)) == 0b1001'0000 &&
               small::write_ignored_mask() == 0 && small::forced_1_mask() == 0 &&
               only_one::reserved_mask() == 0;
    });
    CHECK_TWICE([](auto value) {
        return mixed::reserved_mask(value(64U)) == 0x6000'0000'0000'0000 &&
               mixed::reserved_mask() == 0x6000'0000'0000'0000 &&
               mixed::write_ignored_mask() == 1 && mixed::forced_1_mask() == 0x7E;
    });
    CHECK_TWICE([](auto value) {
        return wide::reserved_mask(value(64U)) == wide_bits{0, 0x7000'0000'0000'0000} &&
               wide::write_ignored_mask() == wide_bits{} && wide::forced_1_mask() == wide_bits{};
    });
}

TEST_CASE("address bits at and above MAXPHYADDR are reserved, and none below") {
    CHECK_TWICE([](auto value) {
        return mixed::reserved_mask(value(40U)) == 0x7FF0'0100'0000'0000 &&  // address bits 48:40
               mixed::reserved_mask(value(41U)) == 0x7FE0'0000'0000'0000 &&
               mixed::reserved_mask(value(48U)) == 0x7000'0000'0000'0000 &&
               mixed::reserved_mask(value(49U)) == 0x6000'0000'0000'0000 &&
               mixed::reserved_mask(value(33U)) == 0x7FFF'E1FE'0000'0000 &&
               mixed::reserved_mask(value(32U)) == 0x7FFF'F1FF'0000'0000;
    });
    CHECK_TWICE([](auto value) {  // MAXPHYADDR below the field's lowest bit: the whole field
        return mixed::reserved_mask(value(31U)) == 0x7FFF'F1FF'8000'0000 &&
               mixed::reserved_mask(value(7U)) == 0x7FFF'F1FF'FFFF'FF80 &&
               mixed::reserved_mask(value(6U)) == 0x7FFF'F1FF'FFFF'FF80 &&
               mixed::reserved_mask(value(0U)) == 0x7FFF'F1FF'FFFF'FF80;
    });
}

TEST_CASE("bits_of_kind is the mask of the rows of that kind") {
    CHECK_TWICE([](auto value) {
        using rows = mixed::layout::rows;
        return detail::bits_of_kind<uint64_t>(rows{}, value(row_kind::other)) ==
                   0x0000'0E00'0000'0000 &&
               detail::bits_of_kind<uint64_t>(rows{}, value(row_kind::reserved)) ==
                   0x6000'0000'0000'0000 &&
               detail::bits_of_kind<uint64_t>(rows{}, value(row_kind::fixed)) == 0;
    });
}

TEST_CASE("no address bit is reserved if no width is given") {
    CHECK_TWICE([](auto value) {
        auto const word = to_the_top{value(uint64_t{0xFFFF'FFFF'FFFF'F001})};
        return word.reserved_bits_set() == 1 && to_the_top::reserved_mask() == 0xFFF &&
               word.reserved_bits_set(63) == 0x8000'0000'0000'0001 &&
               to_the_top::reserved_mask(value(63U)) == 0x8000'0000'0000'0FFF;
    });
}

TEST_CASE("reserved_bits_set() returns the bits that are both reserved and set") {
    CHECK_TWICE([](auto value) {
        return small{value(uint8_t{0b0110'1111})}.reserved_bits_set() == 0 &&
               small{value(uint8_t{0b1111'1111})}.reserved_bits_set() == 0b1001'0000 &&
               small{value(uint8_t{0b0001'0001})}.reserved_bits_set() == 0b0001'0000;
    });
    CHECK_TWICE([](auto value) {
        auto const word = mixed{value(uint64_t{0x2000'0180'0000'0000})};
        return word.reserved_bits_set() == 0x2000'0000'0000'0000 &&
               word.reserved_bits_set(40) == 0x2000'0100'0000'0000 &&
               word.reserved_bits_set(39) == 0x2000'0180'0000'0000;
    });
}

// ------------------------------------------------------------------------------------ the word
// itself

TEST_CASE("a word is its raw bits") {
    static_assert(sizeof(small) == 1 && sizeof(only_one) == 4 && sizeof(mixed) == 8 &&
                  sizeof(wide) == 16);
    static_assert(std::is_trivially_copyable_v<wide> && std::is_standard_layout_v<small>);
    static_assert(!std::is_constructible_v<small, mixed> && !std::is_constructible_v<mixed, small>);
    static_assert(!std::is_convertible_v<small, uint8_t>);
    static_assert(can_be_compared<small, small> && !can_be_compared<small, mixed>);
    CHECK_TWICE([](auto value) {
        return small{}.raw == 0 && wide{}.raw == wide_bits{} && small{value(uint8_t{9})}.raw == 9 &&
               small{value(uint8_t{9})} == small{9} && small{value(uint8_t{9})} != small{8};
    });
}

// ------------------------------------------------------------------------------------ reflection

TEST_CASE("the fields of a read-only word are read-only unless they set another access") {
    struct shown : read_only_word<shown, uint8_t> {
        struct Flag : flag<0> {};
        struct One : forced_1<flag<1>> {};
        struct layout : bit_layout<8, Flag, One, reserved<3, 2>, other<7, 4>> {};
    };
    static_assert(shown::access == row_access::read_only && small::access == row_access::plain);
    CHECK_TWICE([](auto value) {
        auto const rows = value(rows_of<shown>());
        return rows[0].access == row_access::read_only && rows[1].access == row_access::forced_1 &&
               rows[2].access == row_access::plain && rows[3].access == row_access::plain &&
               shown{value(uint8_t{3})}.template get<typename shown::One>();
    });
}

TEST_CASE("an unbounded address has no reserved bits at any width") {
    struct free : bit_word<free, uint64_t> {
        struct Top : unbounded<address_field<63, 5>> {};
        struct layout : bit_layout<64, reserved<4, 0>, Top> {};
    };
    CHECK_TWICE([](auto value) {
        return free::reserved_mask(value(36U)) == 0x1F && free::reserved_mask(value(4U)) == 0x1F;
    });
}

TEST_CASE("rows_of() lists every row from bit 0 up, with its name, position and kind") {
    CHECK_TWICE([](auto value) {
        auto const rows = value(rows_of<small>());
        return rows.size() == 5 && rows.end() - rows.begin() == 5 && rows.begin() == &rows[0] &&
               rows[0].name == text{"Low"} && rows[0].msb == 2 && rows[0].lsb == 0 &&
               rows[0].kind == row_kind::field && rows[1].name == text{"Flag"} &&
               rows[1].msb == 3 && rows[1].lsb == 3 && rows[2].name == text{"reserved"} &&
               rows[2].kind == row_kind::reserved && rows[3].name == text{"Shade"} &&
               rows[4].name == text{"reserved"} && rows[4].msb == 7;
    });
    CHECK_TWICE([](auto value) {
        auto const rows = value(rows_of<mixed>());
        return rows[0].access == row_access::write_ignored &&
               rows[1].access == row_access::forced_1 && rows[2].access == row_access::plain &&
               !rows[1].is_address && rows[2].is_address && rows[3].name == text{"other"} &&
               rows[3].kind == row_kind::other && rows[3].msb == 43 && rows[3].lsb == 41 &&
               rows[4].is_address && !rows[5].is_address && rows[4].lowest_address_bit == 32 &&
               rows[5].lowest_address_bit == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const rows = value(rows_of<wide>());
        return rows[0].kind == row_kind::fixed && rows[0].name == text{"Opcode"} &&
               rows[4].lsb == 127;
    });
}
