// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/mode.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;

TEST_CASE("CS.L means 64-bit code, CS.D 32-bit, neither 16-bit, for either value of IF (PKT-086, "
          "PKT-087)") {
    CHECK_TWICE([](auto value) {
        auto const width = [&](uint8_t mode) {
            uint8_t const bytes[] = {0x99, value(mode)};
            return decode_as<mode_exec>(bytes).packet.code_bits();
        };
        return width(0x00) == 16 && width(0x01) == 64 && width(0x02) == 32 && width(0x04) == 16 &&
               width(0x05) == 64 && width(0x06) == 32;
    });
}
