// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/bits.hpp>

#include <support/check_twice.hpp>

#include <concepts>
#include <type_traits>

using namespace ptspec;

namespace {

enum class gear : uint8_t { neutral = 0, second = 2, top = 9 };
enum class wide_gear : uint16_t { beyond = 0x1FF };

struct Number : field<17, 14> {};
struct Whole : field<63, 0> {};
struct Low : field<6, 0> {};
struct Switch : flag<9> {};
struct Gear : enumerated<7, 4, gear> {};
struct WideGear : enumerated<3, 0, wide_gear> {};
struct Page : address_field<63, 12> {};
struct Packed : address_field<50, 3, 5> {};  // address bits 52:5 are in bits 50:3

constexpr uint64_t all = ~uint64_t{0};

template <class Field, class Value>
concept made_from = requires(Value value) { Field{value}; };

}  // namespace

TEST_CASE("only signed values below zero are negative") {
    CHECK_TWICE([](auto value) {
        return detail::is_negative(value(-1)) && !detail::is_negative(value(0)) &&
               !detail::is_negative(value(1)) && detail::is_negative(value(-1LL)) &&
               !detail::is_negative(value(all)) && !detail::is_negative(value(~0U)) &&
               !detail::is_negative(value(true)) && !detail::is_negative(value(false));
    });
}

// ------------------------------------------------------------------------------------ rows

TEST_CASE("a bit range has its ends, and is a plain field by default") {
    using range = bit_range<17, 14>;
    static_assert(range::msb == 17 && range::lsb == 14 && range::width == 4);
    static_assert(range::kind == row_kind::field && range::access == row_access::plain);
    static_assert(!range::is_address && !range::selects_the_payload);
    static_assert(!range::ends_at_max_phys_addr);
    static_assert(bit_range<5>::msb == 5 && bit_range<5>::lsb == 5 && bit_range<5>::width == 1);
}

TEST_CASE("each kind of row has its own row_kind") {
    static_assert(reserved<3, 1>::kind == row_kind::reserved && reserved<3, 1>::lsb == 1);
    static_assert(reserved<3>::msb == 3 && reserved<3>::lsb == 3);
    static_assert(other<3, 1>::kind == row_kind::other && other<3>::width == 1);
    using opcode = fixed<15, 8, 0x82>;
    static_assert(opcode::kind == row_kind::fixed && opcode::fixed_value == 0x82 &&
                  opcode::on_mismatch == mismatch::bad_opcode && opcode::msb == 15 &&
                  opcode::lsb == 8);
    static_assert(leaf<7, 5, 1>::on_mismatch == mismatch::reserved &&
                  leaf<7, 5, 1>::fixed_value == 1 && leaf<7, 5, 1>::kind == row_kind::fixed);
    static_assert(pattern<7, 0, 2>::on_mismatch == mismatch::bad_packet &&
                  pattern<7, 0, 2>::fixed_value == 2 && pattern<7, 0, 2>::kind == row_kind::fixed);
    static_assert(fixed<63, 0, all>::fixed_value == all);
}

TEST_CASE("write_ignored, forced_1, read_only and selects_payload change one property of a field") {
    struct Ignored : write_ignored<flag<2>> {};
    struct Forced : forced_1<field<6, 0>> {};
    struct Selector : selects_payload<field<14, 13>> {};
    struct Shown : read_only<flag<12>> {};
    static_assert(Shown::access == row_access::read_only && Shown::kind == row_kind::field);
    static_assert(Ignored::access == row_access::write_ignored && Ignored::kind == row_kind::field);
    static_assert(Forced::access == row_access::forced_1 && Forced::kind == row_kind::field);
    static_assert(Ignored::lsb == 2 && Forced::msb == 6 && !Ignored::selects_the_payload);
    static_assert(Selector::selects_the_payload && Selector::access == row_access::plain);
    CHECK_TWICE([](auto value) {
        return Ignored{value(true)}.number() == 1 && Forced{0x7F}.number() == 0x7F &&
               Selector{wrapped{value(uint64_t{6})}}.number() == 2;
    });
}

// ------------------------------------------------------------------------------------ fields

TEST_CASE("a literal that fits becomes the field's value") {
    CHECK_TWICE([](auto) {
        return Number{15}.value == 15 && Number{0U}.value == 0 && Number{7LL}.number() == 7 &&
               Number{'\x0F'}.value == 15 && Number{true}.value == 1 && Whole{all}.value == all &&
               Whole{0}.number() == 0;
    });
}

TEST_CASE("wrapped keeps the low bits of a number") {
    CHECK_TWICE([](auto value) {
        return Number{wrapped{value(uint64_t{0x123})}}.value == 3 &&
               Number{wrapped{value(uint64_t{15})}}.value == 15 &&
               Number{wrapped{value(uint64_t{16})}}.value == 0 &&
               Whole{wrapped{value(all)}}.value == all;
    });
    CHECK_TWICE([](auto value) {
        return !Switch{wrapped{value(uint64_t{2})}}.value && Switch{wrapped{value(all)}}.value &&
               Gear{wrapped{value(uint64_t{0x92})}}.value == gear::second;
    });
}

TEST_CASE("constant is a literal that may depend on a template parameter") {
    auto const number = []<uint64_t N>(constant_number<N>) { return Number{constant<N>}.value; };
    CHECK(number(constant<15>) == 15);
    static_assert(Number{constant<0>}.value == 0 && Whole{constant<all>}.value == all);
    static_assert(!made_from<Number, constant_number<16>>);
    static_assert(made_from<Number, constant_number<15>>);
    static_assert(Page{constant<0xFFFF'F000>}.value == 0xFFFF'F000);
    static_assert(made_from<Page, constant_number<0x1000>>);
    static_assert(!made_from<Page, constant_number<0x1800>>);
}

TEST_CASE("a number fits if no bit of it is lost") {
    CHECK_TWICE([](auto value) {
        return Number::fits(value(uint64_t{0})) && Number::fits(value(uint64_t{15})) &&
               !Number::fits(value(uint64_t{16})) && !Number::fits(value(all)) &&
               Whole::fits(value(all));
    });
    CHECK_TWICE([](auto value) {
        return Switch::fits(value(uint64_t{0})) && Switch::fits(value(uint64_t{1})) &&
               !Switch::fits(value(uint64_t{2})) && Gear::fits(value(uint64_t{15})) &&
               !Gear::fits(value(uint64_t{16}));
    });
    CHECK_TWICE([](auto value) {
        return Page::fits(value(uint64_t{0xFFFF'FFFF'FFFF'F000})) &&
               Page::fits(value(uint64_t{0})) && !Page::fits(value(uint64_t{0x800})) &&
               !Page::fits(value(uint64_t{0x1001})) &&
               Packed::fits(value(uint64_t{0x1F'FFFF'FFFF'FFE0})) &&
               !Packed::fits(value(uint64_t{0x20'0000'0000'0000})) &&
               !Packed::fits(value(uint64_t{0x10}));
    });
}

TEST_CASE("a field's number converts to its value and back") {
    CHECK_TWICE([](auto value) {
        return Number::from_number(value(uint64_t{9})) == 9 && Number{9}.number() == 9 &&
               Switch::from_number(value(uint64_t{1})) &&
               !Switch::from_number(value(uint64_t{0})) && Switch{value(true)}.number() == 1 &&
               Switch{value(false)}.number() == 0 &&
               Gear::from_number(value(uint64_t{2})) == gear::second &&
               Gear{value(gear::top)}.number() == 9;
    });
    CHECK_TWICE([](auto value) {
        return Page::from_number(value(uint64_t{5})) == 0x5000 && Page{0x5000}.number() == 5 &&
               Packed::from_number(value(uint64_t{3})) == 0x60 && Packed{0x60}.number() == 3;
    });
}

TEST_CASE("a flag is constructed from bool, and from no type that converts to bool") {
    static_assert(made_from<Switch, bool> && std::convertible_to<bool, flag<9>>);
    static_assert(!made_from<Switch, int> && !made_from<Switch, unsigned> &&
                  !made_from<Switch, void*> && !made_from<Switch, double>);
    CHECK_TWICE(
        [](auto value) { return Switch{value(true)}.value && !Switch{value(false)}.value; });
}

TEST_CASE("an enumerated field is constructed only from its own enumeration") {
    static_assert(made_from<Gear, gear>);
    static_assert(!made_from<Gear, wide_gear> && !made_from<Gear, int>);
    CHECK_TWICE([](auto value) { return Gear{value(gear::top)}.value == gear::top; });
}

TEST_CASE("an enumerator too large for the field does not change neighbouring bits") {
    CHECK_TWICE([](auto value) {
        return WideGear{value(wide_gear::beyond)}.number() == 0xF &&
               Gear{value(gear{0x19})}.number() == 9 &&
               WideGear{wrapped{value(uint64_t{0x1FF})}}.value == wide_gear{0xF};
    });
}

TEST_CASE("the value of an address field is the whole address, including its low bits") {
    static_assert(Page::is_address && Page::lowest_address_bit == 12);
    static_assert(Page::address_mask == 0xFFFF'FFFF'FFFF'F000);
    static_assert(Packed::is_address && Packed::lowest_address_bit == 5);
    static_assert(Packed::address_mask == 0x1F'FFFF'FFFF'FFE0);
    static_assert(!Number::is_address);
    static_assert(Page::ends_at_max_phys_addr && !Number::ends_at_max_phys_addr);
    CHECK_TWICE([](auto value) {
        return Page{0x1234'5000}.value == 0x1234'5000 && Page{0x1234'5000}.number() == 0x1'2345 &&
               Page{wrapped{value(uint64_t{0x1234'5678})}}.value == 0x1234'5000 &&
               Packed{wrapped{value(all)}}.value == 0x1F'FFFF'FFFF'FFE0;
    });
}

TEST_CASE("an unbounded field is an address without reserved bits above MAXPHYADDR") {
    struct Free : unbounded<address_field<63, 5>> {};
    static_assert(Free::is_address && !Free::ends_at_max_phys_addr);
    static_assert(Free::lowest_address_bit == 5);
    CHECK_TWICE(
        [](auto value) { return Free{wrapped{value(all)}}.value == 0xFFFF'FFFF'FFFF'FFE0; });
}

TEST_CASE("a quantity without a unit is empty") {
    CHECK_TWICE([](auto value) {
        return quantity{}.unit.size() == 0 && quantity{value(uint64_t{8}), "cycles"}.count == 8;
    });
}

TEST_CASE("checked returns the field if the number fits, and nothing otherwise") {
    CHECK_TWICE([](auto value) {
        auto const fits = checked<Number>(value(uint64_t{15}));
        auto const too_wide = checked<Number>(value(uint64_t{16}));
        return fits && fits.field.value == 15 && !too_wide && !too_wide.has_value;
    });
    CHECK_TWICE([](auto value) {
        return checked<Switch>(value(uint64_t{1})) && !checked<Switch>(value(uint64_t{2})) &&
               checked<Page>(value(uint64_t{0x1000})).field.value == 0x1000 &&
               !checked<Page>(value(uint64_t{0x1001})) &&
               checked<Gear>(value(uint64_t{2})).field.value == gear::second;
    });
}

TEST_CASE("a field has the size of its value") {
    static_assert(sizeof(Number) == sizeof(uint64_t) && sizeof(Switch) == 1 && sizeof(Gear) == 1);
    static_assert(std::is_trivially_copyable_v<Number> && std::is_trivially_copyable_v<Page>);
    CHECK(std::is_trivially_copyable_v<Gear>);
}
