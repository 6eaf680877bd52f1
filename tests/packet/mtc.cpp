// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/mtc.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("MTC is 59 and the eight bits of CTC (PKT-101)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("59 80")), mtc{}.with(mtc::CTC{0x80})) &&
               test::stands_for(value(hex("59 FF")), mtc{}.with(mtc::CTC{0xFF})) &&
               test::stands_for(value(hex("59 00")), mtc{});
    });
}
