// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/branch.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [to, taken] = action::conditional{};
            good = good && are_zero(to, taken);
        }
        {
            auto const [next, to] = action::direct_call{};
            good = good && are_zero(next, to, action::direct_jump{}.to, action::indirect_jump{}.to,
                                    action::near_return{}.to, action::sequential{}.next);
        }
        {
            auto const [next, to] = action::indirect_call{};
            good = good && are_zero(next, to);
        }
        return good;
    });
}
