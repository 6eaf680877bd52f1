// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/time.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [passed, art, tsc] = action::elapsed{};
            good = good &&
                   are_zero(passed, art, tsc, action::cycles{}.passed, action::ratio{}.core_to_bus);
        }
        return good;
    });
}
