// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/mnt.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("MNT is 02 C3 88 and eight bytes (PKT-164)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 C3 88 01 02 03 04 05 06 07 08")),
                                mnt{}.with(mnt::payload{0x0807'0605'0403'0201})) &&
               test::stands_for(value(hex("02 C3 88 00 00 00 00 00 00 00 80")),
                                mnt{}.with(mnt::payload{0x8000'0000'0000'0000}));
    });
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<mnt>(value(hex("02 C3 88 01 02 03 04 05 06 07 08")));
        return one.packet.template get<mnt::payload>() == 0x0807'0605'0403'0201;
    });
}

TEST_CASE("after 02 C3, 88 is MNT and 00 is no packet (PKT-013)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < 256; ++i) {
            auto bytes = value(hex("02 C3 00 01 02 03 04 05 06 07 08"));
            bytes.bytes[2] = static_cast<uint8_t>(i);
            auto const one = decode(bytes);
            good = good && (one && one.packet.template is<mnt>()) == (i == 0x88);
        }
        return good && test::is_error(decode(value(hex("02 C3 00 01 02 03 04 05 06 07 08"))),
                                      error::bad_opcode, rule::PKT_013);
    });
}
