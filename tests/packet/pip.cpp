// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/pip.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("PIP is 02 43, NR and bits 51:5 of CR3 (PKT-080)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 43 00 12 34 56 78 0A")),
                                pip{}.with(pip::CR3{0xA785'6341'2000})) &&
               test::stands_for(value(hex("02 43 01 12 34 56 78 0A")),
                                pip{}.with(pip::CR3{0xA785'6341'2000}, pip::NR{true})) &&
               test::stands_for(value(hex("02 43 FE 00 00 00 00 00")),
                                pip{}.with(pip::CR3{0xFE0})) &&
               test::stands_for(value(hex("02 43 02 00 00 00 00 80")),
                                pip{}.with(pip::CR3{0x8'0000'0000'0020}));
    });
}

TEST_CASE("NR is not part of CR3, whose lowest five bits are 0 (PKT-080)") {
    CHECK_TWICE([](auto value) {
        auto const low = decode_as<pip>(value(hex("02 43 01 00 00 00 00 00")));
        auto const full = decode_as<pip>(value(hex("02 43 FF FF FF FF FF FF")));
        return low.packet.template get<pip::NR>() && low.packet.template get<pip::CR3>() == 0 &&
               full.packet.template get<pip::CR3>() == 0xF'FFFF'FFFF'FFE0;
    });
}

TEST_CASE("a CR3 with bits 4:0 or 63:52 does not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bit = 0; bit < 64; ++bit) {
            bool const fits = checked<pip::CR3>(value(uint64_t{1}) << bit).has_value;
            good = good && fits == (bit >= 5 && bit <= 51);
        }
        return good;
    });
}
