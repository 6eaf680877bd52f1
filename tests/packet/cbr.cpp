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

TEST_CASE("CBR with ratio 0 decodes (PKT-106)") {
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<cbr>(value(hex("02 03 00 00")));
        return one && one.length == 4 && one.packet.template get<cbr::CoreBusRatio>() == 0;
    });
}

TEST_CASE("the ratio of CBR is only byte 2 (PKT-003, PKT-105)") {
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<cbr>(value(hex("02 03 01 FF")));
        return one && one.packet.template get<cbr::CoreBusRatio>() == 1 &&
               one.packet.reserved_bits_set() == 0xFF00'0000 &&
               encode(one.packet) == hex("02 03 01 00");
    });
}
