// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/tracestop.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("TraceStop is 02 83 and has no fields (PKT-160)") {
    static_assert(test::has_no_fields<tracestop>());
    CHECK_TWICE([](auto value) { return test::stands_for(value(hex("02 83")), tracestop{}); });
}

TEST_CASE("TraceStop may bind to an IP, ends a block, has no CYC (PKT-112, PKT-205)") {
    static_assert(test::facts_are<tracestop>(kind::tracestop, "TraceStop", ip_binding::conditional,
                                             false, cyc_rule::no, false));
}
