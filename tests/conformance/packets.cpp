// SPDX-License-Identifier: BSL-1.0
#include <ptspec/conformance/packets.hpp>

#include <ptspec/packet/list.hpp>

#include <support/check_twice.hpp>

#include <cstdint>
#include <vector>

using namespace ptspec;

namespace {

// A difference stops the build in a constant expression (tests/fail/conformance.cpp), so here it
// is tested at run time only.
constexpr test::unknown at_run_time;

}  // namespace

TEST_CASE("an opcode is a number, a number with its mask, or a part of it") {
    CHECK_TWICE([](auto value) {
        return conforms_opcode<packet::pad>(value(0)) &&
               conforms_opcode<packet::cbr>(value(0x0302)) &&
               conforms_opcode<packet::tip>(value(0x0D), value(0x1F)) &&
               conforms_opcode<packet::tnt_short>(value(0), value(1)) &&
               conforms_opcode<packet::mode_tsx>(value(0x2099), value(0xE0FF)) &&
               conforms_opcode<packet::ptw>(value(0x1202), value(0x1FFF)) &&
               conforms_opcode<packet::psb>(value(0x8202), value(0xFFFF)) &&
               conforms_opcode<packet::cbr::Opcode>(value(0x03)) &&
               conforms_opcode<packet::mode_tsx::Leaf>(value(1));
    });
    CHECK(!conforms_opcode<packet::cbr>(at_run_time(0x0203)));
    CHECK(!conforms_opcode<packet::tip>(at_run_time(0x11), at_run_time(0x1F)));
    CHECK(!conforms_opcode<packet::tip>(at_run_time(0x0D), at_run_time(0xFF)));
    CHECK(!conforms_opcode<packet::tip>(at_run_time(0x2D), at_run_time(0x1F)));
    CHECK(!conforms_opcode<packet::mode_tsx>(at_run_time(0x0099), at_run_time(0xE0FF)));
    CHECK(!conforms_opcode<packet::cbr::Opcode>(at_run_time(0x02)));
}

TEST_CASE("an opcode is bytes, up to the whole packet") {
    CHECK_TWICE([](auto value) {
        byte_array<16> psb;
        for (unsigned i = 0; i < 16; i += 2) {
            psb.data()[i] = value(std::uint8_t{0x02});
            psb.data()[i + 1] = value(std::uint8_t{0x82});
        }
        byte_view const whole = psb;
        return conforms_opcode<packet::psb>(whole) &&
               conforms_opcode<packet::psb>(whole.first(2)) &&
               conforms_opcode<packet::psb>({0x02, 0x82}) && conforms_opcode<packet::pad>({0x00}) &&
               conforms_opcode<packet::cbr>({0x02, 0x03, 0x00, 0x00}) &&
               conforms_opcode<packet::tip>({0x0D});
    });
    auto bytes = std::vector<std::uint8_t>{0x02, 0x03, 0x00, 0x00};
    CHECK(conforms_opcode<packet::cbr>(bytes));
    CHECK(!conforms_opcode<packet::cbr>(byte_view{bytes}.first(1)));
    CHECK(!conforms_opcode<packet::cbr>(byte_view{bytes}.first(0)));
    bytes.push_back(0);
    CHECK(!conforms_opcode<packet::cbr>(bytes));
    bytes = {0x03, 0x03, 0x00, 0x00};
    CHECK(!conforms_opcode<packet::cbr>(bytes));
    bytes = {0x02, 0x83, 0x00, 0x00};
    CHECK(!conforms_opcode<packet::cbr>(bytes));
    bytes = {0x02, 0x03, 0x00, 0x01};
    CHECK(!conforms_opcode<packet::cbr>(bytes));
}

TEST_CASE("the length of a packet") {
    CHECK_TWICE([](auto value) {
        return conforms_length<packet::psb>(value(16)) && conforms_length<packet::pad>(value(1)) &&
               conforms_length<packet::tsc>(value(8)) &&
               conforms_length<packet::tip>(value(1), value(9)) &&
               conforms_length<packet::ptw>(value(6), value(10)) &&
               conforms_length<packet::bip>(value(5), value(9)) &&
               conforms_length<packet::cyc>(value(1), value(10)) &&
               conforms_length<packet::mtc>(value(2), value(2));
    });
    CHECK(!conforms_length<packet::psb>(at_run_time(2)));
    CHECK(!conforms_length<packet::tip>(at_run_time(2), 9));
    CHECK(!conforms_length<packet::tip>(1, at_run_time(7)));
    CHECK(!conforms_length<packet::bip>(at_run_time(1), 9));
}
