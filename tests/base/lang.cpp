// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/lang.hpp>

#include <support/check_twice.hpp>

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

using namespace ptspec;

namespace {

enum class shade : unsigned char { light = 1, dark = 200 };
enum plain_enum : short { below = -2 };
struct base {};
struct derived : base {};
struct not_derived {};
struct only_explicit {
    explicit only_explicit(int);
};
struct from_an_int {
    from_an_int(int);
};

constexpr auto view(text it) -> std::string_view { return {it.data(), it.size()}; }

}  // namespace

// ------------------------------------------------------------------------------------ concepts

TEST_CASE("same_as and one_of compare types exactly") {
    static_assert(same_as<int, int> && !same_as<int, unsigned>);
    static_assert(!same_as<int, int const> && !same_as<int, int&> && !same_as<base, derived>);
    static_assert(one_of<int, int> && one_of<int, char, int> && one_of<int, int, char>);
    static_assert(!one_of<int, char, unsigned> && !one_of<int>);
}

TEST_CASE("integral holds for exactly the integer types of the language") {
    static_assert(integral<bool> && integral<char> && integral<signed char> &&
                  integral<unsigned char> && integral<wchar_t> && integral<char8_t> &&
                  integral<char16_t> && integral<char32_t> && integral<short> &&
                  integral<unsigned short> && integral<int> && integral<unsigned> &&
                  integral<long> && integral<unsigned long> && integral<long long> &&
                  integral<unsigned long long>);
    static_assert(integral<uint8_t> && integral<uint16_t> && integral<uint32_t> &&
                  integral<uint64_t> && integral<size_t> && integral<ptrdiff_t>);
    static_assert(!integral<float> && !integral<double> && !integral<int*> && !integral<shade> &&
                  !integral<base> && !integral<int&> && !integral<int const>);
}

TEST_CASE("enumeration holds for scoped and unscoped enumerations only") {
    static_assert(enumeration<shade> && enumeration<plain_enum>);
    static_assert(!enumeration<int> && !enumeration<base>);
}

TEST_CASE("derived_from tests for a base class") {
    static_assert(derived_from<derived, base> && derived_from<base, base>);
    static_assert(!derived_from<base, derived> && !derived_from<not_derived, base>);
}

TEST_CASE("convertible_to tests for implicit conversion") {
    static_assert(convertible_to<int, long> && convertible_to<int*, void const*>);
    static_assert(convertible_to<derived, base> && convertible_to<int, from_an_int>);
    static_assert(!convertible_to<base, derived> && !convertible_to<int, only_explicit>);
    static_assert(!convertible_to<int const*, int*> && !convertible_to<int, int*>);
    static_assert(!convertible_to<int const&, int&>);
}

TEST_CASE("callable tests a call with the given argument types") {
    auto const add = [](int one, int two) { return one + two; };
    using adder = decltype(add);
    static_assert(callable<adder, int, int> && callable<adder, char, short>);
    static_assert(!callable<adder> && !callable<adder, int> && !callable<adder, base, int>);
    static_assert(!callable<int, int>);
    CHECK(add(2, 3) == 5);
    auto const move_only = [](base&&) {};
    static_assert(callable<decltype(move_only), base> && !callable<decltype(move_only), base&>);
    move_only(base{});
}

TEST_CASE("choose_t, bare_t and result_t give the right types") {
    static_assert(same_as<choose_t<true, int, base>, int>);
    static_assert(same_as<choose_t<false, int, base>, base>);
    static_assert(same_as<bare_t<int>, int> && same_as<bare_t<int const>, int>);
    static_assert(same_as<bare_t<int volatile>, int> && same_as<bare_t<int const volatile>, int>);
    static_assert(same_as<bare_t<int&>, int> && same_as<bare_t<int&&>, int>);
    static_assert(same_as<bare_t<int const&>, int> && same_as<bare_t<int const volatile&&>, int>);
    static_assert(same_as<bare_t<int const*>, int const*>);
    static_assert(same_as<result_t<long (*)(char), char>, long>);
    static_assert(same_as<result_t<base& (*)()>, base&>);
}

TEST_CASE("underlying returns an enumerator's number in its underlying type") {
    static_assert(same_as<decltype(underlying(shade::dark)), unsigned char>);
    static_assert(same_as<decltype(underlying(below)), short>);
    CHECK_TWICE([](auto value) {
        return underlying(value(shade::light)) == 1 && underlying(value(shade::dark)) == 200 &&
               underlying(value(below)) == -2;
    });
}

TEST_CASE("a type_list has the number of its types") {
    static_assert(type_list<>::size == 0 && type_list<int>::size == 1);
    static_assert(type_list<int, int, base>::size == 3 && std::is_empty_v<type_list<int>>);
}

// ------------------------------------------------------------------------------------ bits

TEST_CASE("popcount, highest_bit and lowest_bit of a single bit at each position") {
    CHECK_TWICE([](auto value) {
        for (unsigned bit = 0; bit < 64; ++bit) {
            auto const one = value(uint64_t{1}) << bit;
            if (popcount(one) != 1 || highest_bit(one) != bit || lowest_bit(one) != bit) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("popcount counts, highest_bit searches from the top, lowest_bit from the bottom") {
    CHECK_TWICE([](auto value) { return popcount(value(uint64_t{0})) == 0; });
    CHECK_TWICE([](auto value) {
        auto const all = value(~uint64_t{0});
        return popcount(all) == 64 && highest_bit(all) == 63 && lowest_bit(all) == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const some = value(uint64_t{0x0000'8001'0000'1180});
        return popcount(some) == 5 && highest_bit(some) == 47 && lowest_bit(some) == 7;
    });
    CHECK_TWICE([](auto value) {
        auto const ends = value(uint64_t{0x8000'0000'0000'0001});
        return popcount(ends) == 2 && highest_bit(ends) == 63 && lowest_bit(ends) == 0;
    });
}

TEST_CASE("hide_from_optimizer returns the same value") {
    CHECK_TWICE([](auto value) {
        return hide_from_optimizer(value(size_t{0})) == 0 &&
               hide_from_optimizer(value(~size_t{0})) == ~size_t{0};
    });
}

// ------------------------------------------------------------------------------------ text

TEST_CASE("a text is the literal without its terminating zero") {
    CHECK_TWICE([](auto) {
        constexpr text word = "abc";
        return word.size() == 3 && view(word) == "abc" && word.end() - word.begin() == 3 &&
               word.data() == word.begin();
    });
    CHECK_TWICE([](auto) { return text{}.size() == 0 && view(text{""}).empty(); });
    CHECK_TWICE([](auto value) { return view(text{"abcdef", value(size_t{2})}) == "ab"; });
}

TEST_CASE("a text converts to a string view") {
    CHECK_TWICE([](auto value) {
        std::string_view const view = text{"abcdef", value(size_t{3})};
        return view == "abc" && view == text{"abc"} && text{"abc"} == view &&
               std::string_view{text{"ab"}} == "ab" && std::string_view{text{}}.empty();
    });
    CHECK(std::string{text{"abc"}} == "abc");
    std::string line = "<";
    line += text{"abc"};
    CHECK(line.append(text{">"}) == "<abc>");
    static_assert(convertible_to<text, std::string_view>);
    static_assert(!convertible_to<text, std::wstring_view>);
    static_assert(!convertible_to<text, char const*> && !convertible_to<text, bool>);
}

TEST_CASE("texts are equal if all their characters are equal") {
    CHECK_TWICE([](auto value) {
        text const word = "abc";
        return word == text{"abcdef", value(size_t{3})} && !(word == text{"abcd"}) &&
               !(word == text{"ab"}) && !(word == text{"xbc"}) && !(word == text{"abx"}) &&
               text{} == text{""} && !(word == text{});
    });
}

TEST_CASE("a text can be iterated") {
    CHECK_TWICE([](auto) {
        unsigned letters = 0;
        for (char const letter : text{"aaaa"}) { letters += letter == 'a' ? 1 : 100; }
        return letters == 4;
    });
}

// ------------------------------------------------------------------------------------ names

struct at_top {};
namespace outer::inner {
struct deep {
    struct member {};
    template <int>
    struct numbered {
        struct PascalCase_9 {};
    };
};
struct x {};
enum class colour : unsigned char { red = 0, blue = 3 };
union either {};
class hidden_class {};
}  // namespace outer::inner

TEST_CASE("name_of is a type's unqualified name, for types of any scope") {
    static_assert(name_of<at_top>() == text{"at_top"});
    static_assert(name_of<outer::inner::deep>() == text{"deep"});
    static_assert(name_of<outer::inner::deep::member>() == text{"member"});
    static_assert(name_of<outer::inner::deep::numbered<7>::PascalCase_9>() == text{"PascalCase_9"});
    static_assert(name_of<outer::inner::x>() == text{"x"});
    static_assert(name_of<outer::inner::colour>() == text{"colour"});
    static_assert(name_of<outer::inner::either>() == text{"either"});
    static_assert(name_of<outer::inner::hidden_class>() == text{"hidden_class"});
    static_assert(name_of<derived>() == text{"derived"});
    static_assert(name_of<int>() == text{"int"});
    CHECK(view(name_of<outer::inner::deep::member>()) == "member");
}

TEST_CASE("a name begins after the last colon, space or bracket, or at the start of the text") {
    using detail::last_component;
    CHECK_TWICE([](auto value) {
        return last_component("Name", value(size_t{0})) == text{"Name"} &&
               last_component("X", value(size_t{0})) == text{"X"} &&
               last_component("a::b::Name]", value(size_t{1})) == text{"Name"} &&
               last_component("Type = Name]", value(size_t{1})) == text{"Name"} &&
               last_component("f<Name>(void) noexcept", value(size_t{16})) == text{"Name"} &&
               last_component("f<struct a::Name>(void) noexcept", value(size_t{16})) ==
                   text{"Name"} &&
               last_component("f<X>(void) noexcept", value(size_t{16})) == text{"X"};
    });
}

TEST_CASE("name_of_enumerator is the name of a value, or empty if it has no name") {
    static_assert(name_of_enumerator<outer::inner::colour::red>() == text{"red"});
    static_assert(name_of_enumerator<outer::inner::colour{0}>() == text{"red"});
    static_assert(name_of_enumerator<outer::inner::colour{200}>() == text{});
    static_assert(name_of_enumerator<detail::probe_enum::named>() == text{"named"});
    static_assert(name_of_enumerator<detail::probe_enum{0}>() == text{});
    static_assert(name_of_enumerator<7>() == text{} && name_of_enumerator<-7>() == text{});
    CHECK(view(name_of_enumerator<outer::inner::colour::red>()) == "red");
}

TEST_CASE("names and sentences end in NUL") {
    auto const ends = [](text it) {
        return it.data()[it.size()] == 0 && std::strlen(it.data()) == it.size();
    };
    CHECK(ends(text{}));
    CHECK(ends(name_of<outer::inner::deep::member>()));
    CHECK(ends(name_of<outer::inner::deep::numbered<7>::PascalCase_9>()));
    CHECK(ends(name_of_enumerator<outer::inner::colour::red>()));
    CHECK(ends(name_of_enumerator<outer::inner::colour{200}>()));
}

TEST_CASE("name_of works for a type with the same name as its own probe") {
    struct probe_of_a_name {};
    struct Type {};
    static_assert(name_of<probe_of_a_name>() == text{"probe_of_a_name"});
    static_assert(name_of<detail::probe_of_a_name>() == text{"probe_of_a_name"});
    static_assert(name_of<Type>() == text{"Type"});
    CHECK(view(name_of<Type>()) == "Type");
}
