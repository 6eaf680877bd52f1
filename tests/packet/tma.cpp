// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/tma.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("TMA is 02 73, CTC, a reserved byte, nine bits of FC and seven reserved ones (PKT-103)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 73 34 12 00 56 00")),
                                tma{}.with(tma::CTC{0x1234}, tma::FC{0x56})) &&
               test::stands_for(value(hex("02 73 FF FF 00 FF 01")),
                                tma{}.with(tma::CTC{0xFFFF}, tma::FC{0x1FF})) &&
               test::stands_for(value(hex("02 73 00 00 00 00 01")), tma{}.with(tma::FC{0x100}));
    });
}
