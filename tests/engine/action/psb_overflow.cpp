// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/psb_overflow.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) { return value(action::overflow_end{}).next == 0; });
}
