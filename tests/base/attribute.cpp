// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ptspec.hpp>

#include <support/check_twice.hpp>

#ifdef PTSPEC_ATTRIBUTE
#error "a header leaves the macro defined"
#endif

#define noinline "as in Linux"

#include <ptspec/base/attribute.hpp>

template <class Value>
PTSPEC_ATTRIBUTE(noinline) [[nodiscard]]
constexpr auto twice(Value value) -> Value {
    return value + value;
}
PTSPEC_ATTRIBUTE(always_inline) PTSPEC_ATTRIBUTE(pure)
constexpr auto thrice(int value) -> int {
    return 3 * value;
}

#undef PTSPEC_ATTRIBUTE

#define text_of(name) #name
#define text_of_macro(macro) text_of(macro)
#include <ptspec/base/attribute.hpp>

TEST_CASE("an attribute is spelled so that a macro with its name does not change it") {
#if defined(__GNUC__) || defined(__clang__)
    CHECK(doctest::String{text_of_macro(PTSPEC_ATTRIBUTE(noinline))} == "[[gnu::__noinline__]]");
#else
    CHECK(doctest::String{text_of_macro(PTSPEC_ATTRIBUTE(noinline))} == "");
#endif
}

TEST_CASE("a function with attributes is constexpr, and executes") {
    CHECK_TWICE([](auto value) { return twice(value(2)) == 4 && thrice(value(2)) == 6; });
}
