// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/power.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, next, hints, ext, thread, is_io, is_pending] = action::mwait{};
            good = good &&
                   are_zero(at, next, hints, ext, thread.state, thread.substate, is_io, is_pending);
        }
        {
            auto const [from, next, is_shutdown] = action::halt{};
            good = good && are_zero(from, next, is_shutdown);
        }
        {
            auto const [last, deepest, reason] = action::wake{};
            good = good && are_zero(last, deepest) && reason == action::wake_reason::other;
        }
        {
            auto const [next, state] = action::duty_cycle{};
            good = good && are_zero(next, action::clock_stop{}.next) && state == 6;  // GEN-315
        }
        return good;
    });
}

TEST_CASE("wake reasons have the encoding of PWRX") {  // GEN-313
    CHECK_TWICE([](auto value) {
        using action::wake_reason;
        return underlying(value(wake_reason::interrupt)) == 1 &&
               underlying(value(wake_reason::store)) == 4 &&
               underlying(value(wake_reason::hardware)) == 8 &&
               underlying(value(wake_reason::other)) == 0;
    });
}
