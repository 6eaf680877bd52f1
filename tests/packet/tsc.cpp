// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/tsc.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("TSC is 19 and seven bytes, little-endian (PKT-100)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("19 01 02 03 04 05 06 07")),
                                tsc{}.with(tsc::TSC{0x07'0605'0403'0201})) &&
               test::stands_for(value(hex("19 00 00 00 00 00 00 00")), tsc{});
    });
}
