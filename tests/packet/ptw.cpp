// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/ptw.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("PTW is 02, 12 in five bits, PayloadBytes, IP, then 4 or 8 bytes (PKT-170,171)") {
    CHECK_TWICE([](auto value) {
        auto const four = ptw{}.with_payload(0x1234'5678);
        auto const eight = ptw{}.with(ptw::PayloadBytes{1}).with_payload(0xF123'4567'89AB'CDEF);
        return test::stands_for(value(hex("02 12 78 56 34 12")), four) &&
               test::stands_for(value(hex("02 92 78 56 34 12")), four.with(ptw::IP{true})) &&
               test::stands_for(value(hex("02 32 EF CD AB 89 67 45 23 F1")), eight) &&
               test::stands_for(value(hex("02 B2 EF CD AB 89 67 45 23 F1")),
                                eight.with(ptw::IP{true}));
    });
}

TEST_CASE("PayloadBytes selects the size of the payload of PTW (PKT-171)") {
    CHECK_TWICE([](auto value) {
        auto const four = decode_as<ptw>(value(hex("02 12 01 02 03 84 FF FF FF FF")));
        auto const eight = decode_as<ptw>(value(hex("02 32 01 02 03 04 05 06 07 88")));
        return four.length == 6 && four.packet.payload() == 0x8403'0201 && eight.length == 10 &&
               eight.packet.payload() == 0x8807'0605'0403'0201;
    });
}

TEST_CASE("PayloadBytes 2 and 3 are reserved, even if only the header is present (PKT-173)") {
    CHECK_TWICE([](auto value) {
        return test::is_error(decode(value(hex("02 52"))), error::reserved, rule::PKT_173) &&
               test::is_error(decode(value(hex("02 72"))), error::reserved, rule::PKT_173) &&
               test::is_error(decode(value(hex("02 D2"))), error::reserved, rule::PKT_173) &&
               test::is_error(decode(value(hex("02 F2 01 02 03 04 05 06 07 08"))), error::reserved,
                              rule::PKT_173) &&
               encode(ptw{}.with(ptw::PayloadBytes{wrapped{value(uint64_t{2})}})).broken ==
                   rule::PKT_173 &&
               encode(ptw{}.with(ptw::PayloadBytes{wrapped{value(uint64_t{3})}})).broken ==
                   rule::PKT_173;
    });
}

TEST_CASE("a PTW payload that exceeds its 4 bytes is not encoded (PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const most = ptw{}.with_payload(value(uint64_t{0xFFFF'FFFF}));
        auto const more = ptw{}.with_payload(value(uint64_t{0x1'0000'0000}));
        return encode(most) == hex("02 12 FF FF FF FF") && encode(more).broken == rule::PKT_340;
    });
}
