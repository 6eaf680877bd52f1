// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/checks/branches.hpp>

#include <support/suite_sweep.hpp>

TEST_CASE("suite/checks/branches: each check holds on all models, and has teeth") {
    ptspec::test::sweep(ptspec::suite::checks::branch_checks{});
}
