// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/psb.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("PSB is 02 82 eight times (PKT-130)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("0282 0282 0282 0282 0282 0282 0282 0282")), psb{});
    });
}

TEST_CASE("a wrong bit in bytes 2 to 15 gives bad_packet (PKT-131)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bit = 16; bit < 128; ++bit) {
            auto bytes = value(hex("0282 0282 0282 0282 0282 0282 0282 0282"));
            bytes.bytes[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
            good = good && test::is_error(decode(bytes), error::bad_packet, rule::PKT_131);
        }
        return good;
    });
}

TEST_CASE("fewer than 16 bytes after 02 82 are truncated, whatever their values are (PKT-132)") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(hex("02 82 FF FF FF FF FF FF FF FF FF FF FF FF FF"));
        bool good = bytes.size() == 15;
        for (size_t n = 2; n <= 15; ++n) {
            good = good &&
                   test::is_error(decode(bytes.prefix(n)), error::truncated, rule::PKT_255, 16);
        }
        return good;
    });
}

TEST_CASE("a PSB is encoded as the 16 fixed bytes, whatever its raw bits are (PKT-345)") {
    CHECK_TWICE([](auto value) {
        auto const wrong = psb{value(wide_bits{0x0123'4567'89AB'CDEF, 0x1122'3344'5566'7788})};
        return encode(wrong) == hex("0282 0282 0282 0282 0282 0282 0282 0282");
    });
}

TEST_CASE("broken_payload reports every wrong bit of a PSB (PKT-131)") {
    CHECK_TWICE([](auto value) {
        auto const good = value(wide_bits{0x8202'8202'8202'8202, 0x8202'8202'8202'8202});
        return psb::broken_payload(good) == rule::none &&
               psb::broken_payload({good.low, good.high ^ 1}) == rule::PKT_131 &&
               psb::broken_payload({good.low ^ 1, good.high}) == rule::PKT_131;
    });
}

TEST_CASE("PSBEND is 02 23 and has no fields (PKT-133)") {
    CHECK_TWICE([](auto value) { return test::stands_for(value(hex("02 23")), psbend{}); });
}
