// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/checks/topa.hpp>

#include <support/suite_sweep.hpp>

TEST_CASE("suite/checks/topa: each check holds on all models, and has teeth") {
    ptspec::test::sweep(ptspec::suite::checks::topa_checks{});
}
