// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/ovf.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("OVF is 02 F3 and has no fields (PKT-150)") {
    static_assert(test::has_no_fields<ovf>());
    CHECK_TWICE([](auto value) { return test::stands_for(value(hex("02 F3")), ovf{}); });
}

TEST_CASE("OVF may bind to an IP, may appear in PSB+, may have a CYC, ends a block (PKT-112, "
          "PKT-205)") {
    static_assert(test::facts_are<ovf>(kind::ovf, "OVF", ip_binding::conditional, true,
                                       cyc_rule::yes, false));
}
