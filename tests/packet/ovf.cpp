// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/ovf.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("OVF is 02 F3 and has no fields (PKT-150)") {
    CHECK_TWICE([](auto value) { return test::stands_for(value(hex("02 F3")), ovf{}); });
}
