// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <support/skip.hpp>

#include <doctest/doctest.h>

auto main(int count, char** arguments) -> int {
    int const status = doctest::Context{count, arguments}.run();
    return status == 0 && ptspec::test::any_skipped ? ptspec::test::skipped_status : status;
}
