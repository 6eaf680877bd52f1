// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/mode.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("MODE.Exec is 99 and leaf 0 with CS.L, CS.D and IF (PKT-085..087)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("99 00")), mode_exec{}) &&
               test::stands_for(value(hex("99 01")), mode_exec{}.with(mode_exec::CS_L{true})) &&
               test::stands_for(value(hex("99 02")), mode_exec{}.with(mode_exec::CS_D{true})) &&
               test::stands_for(value(hex("99 04")), mode_exec{}.with(mode_exec::IF{true}));
    });
}

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

TEST_CASE("MODE.TSX is 99 and leaf 1 with InTX and TXAbort (PKT-085, PKT-088)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("99 20")), mode_tsx{}) &&
               test::stands_for(value(hex("99 21")), mode_tsx{}.with(mode_tsx::InTX{true})) &&
               test::stands_for(value(hex("99 22")), mode_tsx{}.with(mode_tsx::TXAbort{true}));
    });
}

TEST_CASE("decoding of each of the 256 bytes after 99 (PKT-085, PKT-089..091)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < 256; ++i) {
            uint8_t const bytes[] = {value(uint8_t{0x99}), static_cast<uint8_t>(i)};
            unsigned const leaf = i >> 5;
            bool const both = (i & 3) == 3;
            auto const one = decode(bytes);
            if (leaf > 1) {
                good = good && test::is_error(one, error::reserved, rule::PKT_089);
            } else if (both) {
                good = good && test::is_error(one, error::reserved, rule::PKT_090);
            } else if (leaf == 0) {
                auto const exec = one.packet.template as<mode_exec>();
                good = good && one && one.length() == 2 && one.packet.template is<mode_exec>() &&
                       exec.template get<mode_exec::CS_L>() == ((i & 1) != 0) &&
                       exec.template get<mode_exec::CS_D>() == ((i & 2) != 0) &&
                       exec.template get<mode_exec::IF>() == ((i & 4) != 0);
            } else {
                auto const tsx = one.packet.template as<mode_tsx>();
                good = good && one && one.length() == 2 && one.packet.template is<mode_tsx>() &&
                       tsx.template get<mode_tsx::InTX>() == ((i & 1) != 0) &&
                       tsx.template get<mode_tsx::TXAbort>() == ((i & 2) != 0);
            }
        }
        return good;
    });
}

TEST_CASE("the reserved bits of MODE are written as 0 (PKT-091, PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const exec = decode_as<mode_exec>(value(hex("99 1D")));
        auto const tsx = decode_as<mode_tsx>(value(hex("99 3E")));
        return encode(exec.packet) == hex("99 05") && encode(tsx.packet) == hex("99 22");
    });
}

TEST_CASE("CS.L with CS.D, and InTX with TXAbort, are not encoded (PKT-090)") {
    CHECK_TWICE([](auto value) {
        auto const on = value(true);
        auto const exec = mode_exec{}.with(mode_exec::CS_L{on}, mode_exec::CS_D{on});
        auto const tsx = mode_tsx{}.with(mode_tsx::InTX{on}, mode_tsx::TXAbort{on});
        return encode(exec).broken == rule::PKT_090 && encode(tsx).broken == rule::PKT_090;
    });
}
