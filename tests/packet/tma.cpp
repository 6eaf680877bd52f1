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

TEST_CASE("reserved bits of TMA are ignored, but are bad_packet in strict mode (PKT-003, "
          "PKT-104)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        // Each of the fifteen reserved bits separately.
        for (unsigned bit = 0; bit < 15; ++bit) {
            auto bytes = value(hex("02 73 34 12 00 56 01"));
            bytes.bytes[bit < 8 ? 4 : 6] |= static_cast<uint8_t>(bit < 8 ? 1U << bit
                                                                         : 1U << (bit - 7));
            auto const one = decode_as<tma>(bytes);
            good = good && one && one.length == 7 &&
                   one.packet.template get<tma::CTC>() == 0x1234 &&
                   one.packet.template get<tma::FC>() == 0x156 &&
                   encode(one.packet) == hex("02 73 34 12 00 56 01") &&
                   test::is_error(decode(bytes, {.strict = true}), error::bad_packet,
                                  rule::PKT_104) &&
                   test::is_error(decode_as<tma>(bytes, {.strict = true}), error::bad_packet,
                                  rule::PKT_104);
        }
        return good;
    });
}

TEST_CASE("a TMA without reserved bits set decodes in strict mode (PKT-104)") {
    CHECK_TWICE([](auto value) {
        auto const one = decode(value(hex("02 73 FF FF 00 FF 01")), {.strict = true});
        return one && one.length() == 7;
    });
}

TEST_CASE("an FC over 511 does not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        return checked<tma::FC>(value(uint64_t{511})).has_value &&
               !checked<tma::FC>(value(uint64_t{512})).has_value;
    });
}
