// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/tracestop.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("TraceStop is 02 83 and has no fields (PKT-160)") {
    CHECK_TWICE([](auto value) { return test::stands_for(value(hex("02 83")), tracestop{}); });
}
