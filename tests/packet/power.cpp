// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/power.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("EXSTOP is 02 62, and 02 E2 with IP (PKT-180)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 62")), exstop{}) &&
               test::stands_for(value(hex("02 E2")), exstop{}.with(exstop::IP{true}));
    });
}
