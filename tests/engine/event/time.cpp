// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/event/time.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace event = engine::event;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [passed, art, tsc] = event::time{};
            good = good &&
                   are_zero(passed, art, tsc, event::cycles{}.passed, event::ratio{}.core_to_bus);
        }
        return good;
    });
}
