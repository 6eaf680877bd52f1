// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/checks/kinds.hpp>

#include <support/suite_sweep.hpp>

TEST_CASE("suite/checks/kinds: each check holds on all models, and has teeth") {
    ptspec::test::sweep(ptspec::suite::checks::kind_checks{});
}
