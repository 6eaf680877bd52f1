// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/scenarios.cpp.
#include <ptspec/engine/detail/power.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;

TEST_CASE("MWAIT writes its hints, the resolved C-state and where the clock stops") {
    // GEN-310, GEN-312, GEN-317
    auto const waits = [](std::string_view setup, action::mwait const& e) {
        return packets(traced{setup}.does(e));
    };
    action::mwait const deep{.at = 0x600, .next = 0x603, .hints = 0x20, .ext = 1, .thread = {3, 1}};
    CHECK(waits("PwrEvtEn=1", deep) == "MWAIT(20,1), PWRE(C3.1), EXSTOP(IP=1), FUP(600)");
    CHECK(waits("PwrEvtEn=1, TraceEn=0", deep) == "none");
    CHECK(waits("PwrEvtEn=1", {.thread = {0, 1}}) ==
          "MWAIT(0,0), PWRE(C0.1), EXSTOP(IP=1), FUP(0)");
    CHECK(waits("PwrEvtEn=1", {.thread = {1, 0}, .is_io = true}) ==
          "PWRE(C1), EXSTOP(IP=1), FUP(0)");
}

TEST_CASE("Event Trace reports a shutdown, and no other HLT") {  // GEN-301
    CHECK(packets(traced{"EventEn=1"}.does(action::halt{0x800, 0x801, true})) ==
          "CFE(SHUTDOWN,IP=1), FUP(800)");
    CHECK(packets(traced{"EventEn=1"}.does(action::halt{0x800, 0x801})) == "none");
    CHECK(traced{}.does(action::halt{0x800, 0x801}).ip() == 0x801);
    // A shutdown has no vector: PKT-220.
    traced shut{"EventEn=1"};
    shut.does(action::halt{0x800, 0x801, true});
    byte_view const all = shut.bytes.written();
    CHECK((all.size() > 4 && all[0] == 0x02 && all[1] == 0x13 && all[3] == 0));
}

TEST_CASE("a wake writes the timing packets, then its reason") {
    // GEN-200, GEN-205, GEN-313, GEN-318
    auto const woken = [](std::string_view setup, action::wake_reason why) {
        traced on{setup};
        on.does(action::mwait{.thread = {6, 0}}).does(action::wake{6, 7, why});
        on.does(action::wake{1, 1, why});  // not asleep
        auto const all = packets(on);
        auto const begin = all.find("CBR");
        return all.substr(begin == std::string::npos ? 0 : begin);
    };
    CHECK(woken("PwrEvtEn=1", action::wake_reason::store) == "CBR, PWRX(C6,C7,4)");
    CHECK(woken("PwrEvtEn=1", action::wake_reason::other) == "CBR, PWRX(C6,C7,0)");
    CHECK(woken("", action::wake_reason::store) == "CBR");
    CHECK(woken("TraceEn=0", action::wake_reason::store) == "none");
}

TEST_CASE("a clock that stops in C0 writes EXSTOP, and its restart a CBR") {  // GEN-316, GEN-312
    auto const stopped = [](std::string_view setup) {
        traced on{setup};
        on.does(action::clock_stop{0x900}).does(action::clock_stop{0x900});
        on.does(action::clock_resume{}).does(action::clock_resume{});
        return packets(on);
    };
    CHECK(stopped("PwrEvtEn=1") == "EXSTOP(IP=1), FUP(900), CBR");
    CHECK(stopped("") == "CBR");
    traced asleep{"PwrEvtEn=1"};
    asleep.does(action::halt{0x800, 0x801}).does(action::clock_stop{0x900});
    CHECK(packets(asleep) == "PWRE(C1), EXSTOP(IP=1), FUP(800)");
}
