// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/code_segment.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using cpu::code_segment;
using cpu::ip_payload;

namespace {

/// Real mode at F000:FFF0, and 32-bit code whose base is not 0.
constexpr code_segment real_mode{0xF'0000, false};
constexpr code_segment high_base{0xFFFF'0000, false};

}  // namespace

TEST_CASE("a linear IP is CS.base plus the offset, modulo 2^32 (GEN-091)") {
    CHECK_TWICE([](auto value) {
        return real_mode.linear_of(value(uint64_t{0xFFF0})) == 0xF'FFF0 &&
               real_mode.offset_of(value(uint64_t{0xF'FFF0})) == 0xFFF0 &&
               high_base.linear_of(value(uint64_t{0x2'0010})) == 0x1'0010 &&
               high_base.offset_of(value(uint64_t{0x1'0010})) == 0x2'0010;
    });
}

TEST_CASE("64-bit code has no CS.base (GEN-091)") {
    CHECK_TWICE([](auto value) {
        code_segment const cs{value(uint64_t{0x1000}), true};
        return cs.linear_of(0xFFFF'8000'0000'0123) == 0xFFFF'8000'0000'0123 &&
               cs.offset_of(0xFFFF'8000'0000'0123) == 0xFFFF'8000'0000'0123 &&
               code_segment{}.linear_of(value(uint64_t{0x1234})) == 0x1234;
    });
}

TEST_CASE("packets have linear IPs where LIP is 1, and offsets where it is 0 (GEN-091, PKT-066)") {
    CHECK_TWICE([](auto value) {
        constexpr auto lip = ip_payload::linear;
        constexpr auto rip = ip_payload::effective;
        uint64_t const offset = value(uint64_t{0xFFF0});
        uint64_t const linear = 0xF'FFF0;
        return cpu::linear_of_packet_ip(lip, real_mode, linear) == linear &&
               cpu::linear_of_packet_ip(rip, real_mode, offset) == linear &&
               cpu::offset_of_packet_ip(lip, real_mode, linear) == offset &&
               cpu::offset_of_packet_ip(rip, real_mode, offset) == offset &&
               cpu::packet_ip_of_offset(lip, real_mode, offset) == linear &&
               cpu::packet_ip_of_offset(rip, real_mode, offset) == offset;
    });
}
