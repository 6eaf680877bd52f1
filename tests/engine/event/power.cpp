// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/event/power.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace event = engine::event;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, next, hints, ext, thread, is_io, is_pending] = event::mwait{};
            good = good &&
                   are_zero(at, next, hints, ext, thread.state, thread.substate, is_io, is_pending);
        }
        {
            auto const [from, next, is_shutdown] = event::halt{};
            good = good && are_zero(from, next, is_shutdown);
        }
        {
            auto const [last, deepest, reason, mtc] = event::wake{};
            good = good && are_zero(last, deepest) && reason == event::wake_reason::other &&
                   mtc == event::mtc_place::none &&
                   event::clock_resume{}.mtc == event::mtc_place::none;
        }
        {
            auto const [next, state] = event::duty_cycle{};
            good = good && are_zero(next, event::clock_stop{}.next) && state == 6;  // GEN-315
        }
        return good;
    });
}

TEST_CASE("wake reasons have the encoding of PWRX") {  // GEN-313
    CHECK_TWICE([](auto value) {
        using event::wake_reason;
        return underlying(value(wake_reason::interrupt)) == 1 &&
               underlying(value(wake_reason::store)) == 4 &&
               underlying(value(wake_reason::hardware)) == 8 &&
               underlying(value(wake_reason::other)) == 0;
    });
}
