// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/trig.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("ICNT is the two bytes after TRBV, and 0 without ICNTV (PKT-242)") {
    CHECK_TWICE([](auto value) {
        auto const with = decode_as<trig>(value(hex("D9 40 01 17 80 99")));
        auto const without = decode_as<trig>(value(hex("D9 00 01 17 80")));
        return with.length == 5 && with.packet.ICNT() == 0x8017 && without.length == 3 &&
               without.packet.ICNT() == 0;
    });
}
