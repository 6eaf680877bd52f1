// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/event.hpp>
#include <ptspec/packet/decode.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::event;
using trace::event_type;

TEST_CASE("an event is true, unless a trace or a chunk ends") {
    CHECK_TWICE([](auto value) {
        return event{.what = value(event_type::branches)} &&
               event{.what = value(event_type::damage)} && event{.what = value(event_type::lost)} &&
               !event{.what = value(event_type::need_input)} &&
               !event{.what = value(event_type::end)} && !event{};
    });
}

TEST_CASE("branches() has the outcomes of both TNTs, the oldest first (PKT-030,032,034)") {
    CHECK_TWICE([](auto value) {
        // Bits below the stop bit: taken, not taken, not taken.
        uint8_t const brief[] = {value(uint8_t{0b0001'1000})};
        uint8_t const full[] = {0x02, 0xA3, value(uint8_t{0b0000'1100}), 0, 0, 0, 0, 0};
        auto const one = packet::decode_as<packet::tnt_short>(brief);
        auto const two = packet::decode_as<packet::tnt_long>(full);
        event const first{.what = event_type::branches, .packet = {one.packet}};
        event const second{.what = event_type::branches, .packet = {two.packet}};
        return one && two && first.branches().count == 3 && first.branches().taken(0) &&
               !first.branches().taken(1) && !first.branches().taken(2) &&
               first.branches() == second.branches();
    });
}
