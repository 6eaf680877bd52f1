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

TEST_CASE("TSC is zero-extended, not sign-extended (PKT-100)") {
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<tsc>(value(hex("19 00 00 00 00 00 00 80")));
        auto const all_ones = decode_as<tsc>(value(hex("19 FF FF FF FF FF FF FF")));
        return one.packet.template get<tsc::TSC>() == 0x0080'0000'0000'0000 &&
               all_ones.packet.template get<tsc::TSC>() == 0x00FF'FFFF'FFFF'FFFF;
    });
}

TEST_CASE("a TSC of more than 56 bits does not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        return checked<tsc::TSC>(value(uint64_t{0x00FF'FFFF'FFFF'FFFF})).has_value &&
               !checked<tsc::TSC>(value(uint64_t{0x0100'0000'0000'0000})).has_value;
    });
}
