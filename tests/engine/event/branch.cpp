// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/event/branch.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace event = engine::event;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [to, taken] = event::conditional{};
            good = good && are_zero(to, taken);
        }
        {
            auto const [next, to] = event::direct_call{};
            good = good && are_zero(next, to, event::direct_jump{}.to, event::indirect_jump{}.to,
                                    event::near_return{}.to, event::sequential{}.next);
        }
        {
            auto const [next, to] = event::indirect_call{};
            good = good && are_zero(next, to);
        }
        return good;
    });
}
