// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/trig.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("TRIG is D9, MULT, ICNTV, IP, TRBV and, with ICNTV, ICNT (PKT-240, PKT-242)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("D9 00 01")), trig{}.with(trig::TRBV{1})) &&
               test::stands_for(value(hex("D9 80 01")),
                                trig{}.with(trig::TRBV{1}, trig::IP{true})) &&
               test::stands_for(value(hex("D9 20 FF")),
                                trig{}.with(trig::TRBV{0xFF}, trig::MULT{true})) &&
               test::stands_for(value(hex("D9 40 01 17 00")),
                                trig{}.with(trig::TRBV{1}, trig::ICNTV{true}).with_payload(23)) &&
               test::stands_for(
                   value(hex("D9 E0 A1 FF FF")),
                   trig{}
                       .with(trig::TRBV{0xA1}, trig::IP{true}, trig::ICNTV{true}, trig::MULT{true})
                       .with_payload(0xFFFF));
    });
}

TEST_CASE("ICNT is the two bytes after TRBV, and 0 without ICNTV (PKT-242)") {
    CHECK_TWICE([](auto value) {
        auto const with = decode_as<trig>(value(hex("D9 40 01 17 80 99")));
        auto const without = decode_as<trig>(value(hex("D9 00 01 17 80")));
        return with.length == 5 && with.packet.ICNT() == 0x8017 && without.length == 3 &&
               without.packet.ICNT() == 0;
    });
}

TEST_CASE("the reserved bits of TRIG are ignored and written as 0 (PKT-003, PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<trig>(value(hex("D9 1F 00")));
        return one && one.length == 3 && encode(one.packet) == hex("D9 00 00");
    });
}

TEST_CASE("an ICNT without ICNTV is not encoded (PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const one = trig{}.with_payload(value(uint64_t{1}));
        return encode(one).broken == rule::PKT_340 &&
               encode(one.with(trig::ICNTV{true})) == hex("D9 40 00 01 00");
    });
}
