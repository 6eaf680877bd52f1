// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/events.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace event = engine::event;

TEST_CASE("the reasons of a wake are what PWRX tells") {  // GEN-313
    CHECK_TWICE([](auto value) {
        using event::wake_reason;
        return underlying(value(wake_reason::interrupt)) == 1 &&
               underlying(value(wake_reason::store)) == 4 &&
               underlying(value(wake_reason::hardware)) == 8 &&
               underlying(value(wake_reason::other)) == 0;
    });
}
TEST_CASE("an event of which nothing is said is the plainest of its kind") {
    CHECK_TWICE([](auto value) {
        event::vm_exit const leaves{.from = value(1U)};
        event::vm_entry const enters{};
        event::mwait const waits{};
        return !leaves.loads.is_there && !leaves.is_vectored && !leaves.to_stm &&
               !enters.loads.is_there && !enters.from_stm && waits.thread.state == 0 &&
               !waits.is_io && !waits.is_pending && event::duty_cycle{}.state == 6 &&
               !event::ptwrite{}.is_64_bit && event::wake{}.reason == event::wake_reason::other;
    });
}
