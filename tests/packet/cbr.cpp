// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/cbr.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("CBR is 02 03, the ratio and a reserved byte (PKT-105)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 03 18 00")), cbr{}.with(cbr::CoreBusRatio{24})) &&
               test::stands_for(value(hex("02 03 FF 00")), cbr{}.with(cbr::CoreBusRatio{255}));
    });
}
