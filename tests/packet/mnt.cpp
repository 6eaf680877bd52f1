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
}
