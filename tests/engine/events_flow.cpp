// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/events_flow.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace event = engine::event;

TEST_CASE("an event of which nothing is said is the plainest of its kind") {
    CHECK_TWICE([](auto value) {
        event::far_transfer const far{.at = value(1U)};
        event::exception const fault{};
        event::init const start{};
        bool const at_zero = start.next == 0 && start.to == 0 && far.to == 0 &&
                             event::interrupt{}.next == 0 && event::exception{}.at == 0 &&
                             event::direct_call{}.next == 0 && event::indirect_call{}.next == 0 &&
                             event::user_interrupt{}.next == 0 && event::sequential{}.next == 0 &&
                             event::sipi{}.to == 0 && event::interrupt{}.to == 0;
        return at_zero && far.kind == event::far_kind::plain && far.to == 0 &&
               far.after == engine::running{} && fault.vector != event::exception::page_fault &&
               fault.takes.until_pip == 0 && fault.takes.until_target == 0 &&
               !start.waits_for_sipi && !event::conditional{}.taken;
    });
}
TEST_CASE("a page fault is vector 14") {  // GEN-302
    CHECK_TWICE([](auto value) { return value(event::exception::page_fault) == 0x0E; });
}
