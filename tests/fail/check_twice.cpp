// SPDX-License-Identifier: BSL-1.0
// expect: failed
#include <support/check_twice.hpp>

void body() {
#ifndef SHOULD_FAIL
    CHECK_TWICE([](auto value) { return value(1) == 1; });
#else
    CHECK_TWICE([](auto value) { return value(1) == 2; });
#endif
}
