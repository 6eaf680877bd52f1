// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>

TEST_CASE("CHECK_TWICE runs its body as a constant expression and at run time") {
    static int runs = 0;
    CHECK_TWICE([](auto value) {
        if (!__builtin_is_constant_evaluated()) { ++runs; }
        return value(1) == 1;
    });
    CHECK(runs == 1);
}

// tests/fail/support.cpp tests the other half: a body that is false as a constant.
TEST_CASE("CHECK_TWICE fails when its body is false at run time only" * doctest::should_fail()) {
    CHECK_TWICE([](auto) { return __builtin_is_constant_evaluated(); });
}

TEST_CASE("values that the compiler cannot see are unchanged") {
    struct pair {
        int one;
        long two;
    };
    auto const back = ptspec::test::unknown{}(pair{3, -4});
    CHECK(back.one == 3);
    CHECK(back.two == -4);
}
