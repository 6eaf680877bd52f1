// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/vmcs.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("VMCS is 02 C8 and bits 51:12 of the address (PKT-162)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 C8 01 00 00 00 00")),
                                vmcs{}.with(vmcs::base{0x1000})) &&
               test::stands_for(value(hex("02 C8 05 04 03 02 01")),
                                vmcs{}.with(vmcs::base{0x1020'3040'5000})) &&
               test::stands_for(value(hex("02 C8 FF FF FF FF FF")),
                                vmcs{}.with(vmcs::base{0xF'FFFF'FFFF'F000}));
    });
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<vmcs>(value(hex("02 C8 05 04 03 02 01")));
        return one.packet.template get<vmcs::base>() == 0x1020'3040'5000;
    });
}

TEST_CASE("a VMCS address with bits 11:0 or 63:52 does not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bit = 0; bit < 64; ++bit) {
            bool const fits = checked<vmcs::base>(value(uint64_t{1}) << bit).has_value;
            good = good && fits == (bit >= 12 && bit <= 51);
        }
        return good;
    });
}
