// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/pad.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("PAD is the byte 00 and has no fields (PKT-166)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("00")), pad{}) &&
               test::stands_for(value(hex("00")), pad{}, block::items_of_4) &&
               test::stands_for(value(hex("00")), pad{}, block::items_of_8);
    });
}
