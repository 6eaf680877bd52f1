// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/power.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("EXSTOP is 02 62, and 02 E2 with IP (PKT-180)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 62")), exstop{}) &&
               test::stands_for(value(hex("02 E2")), exstop{}.with(exstop::IP{true}));
    });
}

TEST_CASE("MWAIT is 02 C2, eight bits of hints and two of extensions (PKT-182)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 C2 60 00 00 00 01 00 00 00")),
                                mwait{}.with(mwait::hints{0x60}, mwait::ext{1})) &&
               test::stands_for(value(hex("02 C2 FF 00 00 00 03 00 00 00")),
                                mwait{}.with(mwait::hints{0xFF}, mwait::ext{3})) &&
               test::stands_for(value(hex("02 C2 00 00 00 00 00 00 00 00")), mwait{});
    });
}

TEST_CASE("the reserved bytes of MWAIT are ignored and written as 0 (PKT-183, PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<mwait>(value(hex("02 C2 11 22 33 44 55 66 77 88")));
        return one && one.length == 10 && one.packet.template get<mwait::hints>() == 0x11 &&
               one.packet.template get<mwait::ext>() == 1 &&
               one.packet.reserved_bits_set() == wide_bits{0x6654'4433'2200'0000, 0x8877} &&
               encode(one.packet) == hex("02 C2 11 00 00 00 01 00 00 00");
    });
}

TEST_CASE("hints over 255 and extensions over 3 do not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        return checked<mwait::hints>(value(uint64_t{255})).has_value &&
               !checked<mwait::hints>(value(uint64_t{256})).has_value &&
               checked<mwait::ext>(value(uint64_t{3})).has_value &&
               !checked<mwait::ext>(value(uint64_t{4})).has_value;
    });
}

TEST_CASE("PWRE is 02 22, HW and two C-states (PKT-184)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 22 00 21")),
                                pwre{}.with(pwre::state{2}, pwre::substate{1})) &&
               test::stands_for(value(hex("02 22 80 F0")),
                                pwre{}.with(pwre::HW{true}, pwre::state{15})) &&
               test::stands_for(value(hex("02 22 00 00")), pwre{});
    });
}

TEST_CASE("HW of PWRE is bit 7 of byte 2, and the bits below it are reserved (PKT-003, PKT-185)") {
    CHECK_TWICE([](auto value) {
        auto const no = decode_as<pwre>(value(hex("02 22 7F 12")));
        auto const yes = decode_as<pwre>(value(hex("02 22 80 12")));
        return no && !no.packet.template get<pwre::HW>() &&
               no.packet.template get<pwre::state>() == 1 &&
               no.packet.template get<pwre::substate>() == 2 &&
               encode(no.packet) == hex("02 22 00 12") && yes &&
               yes.packet.template get<pwre::HW>();
    });
}

TEST_CASE("PWRX is 02 A2, two C-states and the wake reason (PKT-186)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 A2 46 04 00 00 00")),
                                pwrx{}.with(pwrx::last{4}, pwrx::deepest{6}, pwrx::reason{4})) &&
               test::stands_for(value(hex("02 A2 00 00 00 00 00")), pwrx{});
    });
}

TEST_CASE("all four bits of the wake reason are decoded, including the reserved one (PKT-187)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned reason = 0; reason < 16; ++reason) {
            auto bytes = value(hex("02 A2 12 F0 FF FF FF"));
            bytes.bytes[3] = static_cast<uint8_t>(0xF0 | reason);
            auto const one = decode_as<pwrx>(bytes);
            good = good && one && one.packet.template get<pwrx::reason>() == reason &&
                   one.packet.template get<pwrx::last>() == 1 &&
                   one.packet.template get<pwrx::deepest>() == 2;
        }
        return good;
    });
}
