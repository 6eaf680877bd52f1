// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/pebs.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("BBP is 02 63, the type of the group and SZ (PKT-200)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 63 04")), bbp{}.with(bbp::type{4})) &&
               test::stands_for(value(hex("02 63 81")), bbp{}.with(bbp::type{1}, bbp::SZ{true})) &&
               test::stands_for(value(hex("02 63 1F")), bbp{}.with(bbp::type{31}));
    });
}

TEST_CASE("SZ 1 means items of 4 bytes, SZ 0 items of 8 bytes (PKT-200)") {
    CHECK_TWICE([](auto value) {
        return bbp{}.with(bbp::SZ{value(true)}).opens() == block::items_of_4 &&
               bbp{}.with(bbp::SZ{value(false)}).opens() == block::items_of_8;
    });
}

TEST_CASE("every type of BBP decodes, and its reserved bits are ignored (PKT-003, PKT-200,201)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < 256; ++i) {
            uint8_t const bytes[] = {0x02, value(uint8_t{0x63}), static_cast<uint8_t>(i)};
            auto const one = decode_as<bbp>(bytes);
            good = good && one && one.length == 3 &&
                   one.packet.template get<bbp::type>() == i % 32 &&
                   one.packet.template get<bbp::SZ>() == (i >= 128);
        }
        return good;
    });
}

TEST_CASE("BIP is 4 in three bits, the id, and an item of the block's size (PKT-202)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("0C EF BE AD DE")),
                                bip{}.with(bip::id{1}).with_payload(0xDEAD'BEEF),
                                block::items_of_4) &&
               test::stands_for(value(hex("FC 88 77 66 55 44 33 22 11")),
                                bip{}.with(bip::id{31}).with_payload(0x1122'3344'5566'7788),
                                block::items_of_8) &&
               test::stands_for(value(hex("04 00 00 00 00")), bip{}, block::items_of_4);
    });
}

TEST_CASE("the size of an item depends on the block, not on the bytes present (PKT-202,203)") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(hex("14 01 02 03 04 05 06 07 88 99"));
        auto const in_4 = decode_as<bip>(bytes, {.block = block::items_of_4});
        auto const in_8 = decode_as<bip>(bytes, {.block = block::items_of_8});
        return in_4.length == 5 && in_4.packet.payload() == 0x0403'0201 && in_8.length == 9 &&
               in_8.packet.payload() == 0x8807'0605'0403'0201 &&
               in_8.packet.template get<bip::id>() == 2;
    });
}

TEST_CASE("outside a block a BIP is neither decoded nor encoded (PKT-203, PKT-344)") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(hex("14 01 02 03 04"));
        auto const one = decode(bytes);
        return one.packet.kind() == kind::tnt_short && one.length() == 1 &&
               test::is_error(decode_as<bip>(bytes), error::bad_opcode, rule::PKT_010) &&
               encode(bip{}.with(bip::id{2})).broken == rule::PKT_344;
    });
}

TEST_CASE("an item of more than 4 bytes is not encoded in a block of 4-byte items (PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const item = bip{}.with_payload(value(uint64_t{0x1'0000'0000}));
        return encode(item, block::items_of_4).broken == rule::PKT_340 &&
               encode(item, block::items_of_8) == hex("04 00 00 00 00 01 00 00 00");
    });
}

TEST_CASE("an id over 31 does not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        return checked<bip::id>(value(uint64_t{31})).has_value &&
               !checked<bip::id>(value(uint64_t{32})).has_value;
    });
}

TEST_CASE("BEP is 02 33, and 02 B3 with IP, inside and outside a block (PKT-204)") {
    CHECK_TWICE([](auto value) {
        auto const with_ip = bep{}.with(bep::IP{true});
        return test::stands_for(value(hex("02 33")), bep{}) &&
               test::stands_for(value(hex("02 B3")), with_ip) &&
               test::stands_for(value(hex("02 33")), bep{}, block::items_of_8) &&
               test::stands_for(value(hex("02 B3")), with_ip, block::items_of_4);
    });
}
