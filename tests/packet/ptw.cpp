// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/ptw.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("a PTW payload that exceeds its 4 bytes is not encoded (PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const most = ptw{}.with_payload(value(uint64_t{0xFFFF'FFFF}));
        auto const more = ptw{}.with_payload(value(uint64_t{0x1'0000'0000}));
        return encode(most) == hex("02 12 FF FF FF FF") && encode(more).broken == rule::PKT_340;
    });
}
