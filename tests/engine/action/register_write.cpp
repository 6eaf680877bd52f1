// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/register_write.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, next, cr3] = action::mov_cr3{};
            good = good && are_zero(at, next, cr3);
        }
        {
            auto const [next, IF] = action::interrupt_flag{};
            good = good && are_zero(next, IF);
        }
        return good;
    });
}
