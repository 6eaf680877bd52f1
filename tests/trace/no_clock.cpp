// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/no_clock.hpp>

#include <support/check_twice.hpp>

#include <ptspec/trace/clock.hpp>

using namespace ptspec;

TEST_CASE("a clock of an event reader has the time of an event") {
    static_assert(trace::event_clock<trace::no_clock> && trace::event_clock<trace::clock>);
    static_assert(!trace::event_clock<trace::time> && !trace::event_clock<int>);
    static_assert(__is_empty(trace::no_clock));
    CHECK(trace::event_clock<trace::no_clock>);
}

TEST_CASE("without a clock no packet is wrong, and no time is known") {
    CHECK_TWICE([](auto value) {
        trace::no_clock const clock;
        return clock.add(value(packet::tsc{})) == rule::none && clock.now().is_absent() &&
               clock.now_without_cyc().is_absent() && clock.now_of_psb_plus().is_absent();
    });
}
