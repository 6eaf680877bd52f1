// SPDX-License-Identifier: BSL-1.0
/// The helpers of the tests

#include <support/check_twice.hpp>

namespace check_twice {
/// A body that is false as a constant stops the build.
// expect: failed
void body() {
#ifndef SHOULD_FAIL
    CHECK_TWICE([](auto value) { return value(1) == 1; });
#else
    CHECK_TWICE([](auto value) { return value(1) == 2; });
#endif
}
}  // namespace check_twice
