// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/checks/single_range.hpp>

#include <support/suite_sweep.hpp>

TEST_CASE("suite/checks/single_range: each check holds on all models, and has teeth") {
    ptspec::test::sweep(ptspec::suite::checks::single_range_checks{});
}
