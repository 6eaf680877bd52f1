// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/open_result.hpp>

#include <doctest/doctest.h>

#include <cerrno>

using ptspec::ports::open_result;

TEST_CASE("an open_result is true unless it has an error") {
    CHECK(open_result{});
    CHECK_FALSE(open_result{EACCES});
    CHECK(open_result{EACCES}.error == EACCES);
}
