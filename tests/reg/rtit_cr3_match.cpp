// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/rtit_cr3_match.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using match = ptspec::reg::ia32_rtit_cr3_match;
using ptspec::wrapped;
using ptspec::test::has_field_at;

TEST_CASE("IA32_RTIT_CR3_MATCH is MSR 572H (REG-018)") { CHECK(match::address == 0x572); }

TEST_CASE("CR3 is the register's value without its low five bits") {
    CHECK_TWICE([](auto value) { return has_field_at<match, match::CR3>(value, 63, 5); });
    CHECK_TWICE([](auto value) {
        return match{}.with(match::CR3{0x1234'5FE0}).raw == 0x1234'5FE0 &&
               match{}.with(match::CR3{wrapped{value(~uint64_t{0})}}).raw ==
                   0xFFFF'FFFF'FFFF'FFE0 &&
               match{value(uint64_t{0x1234'5FFF})}.get<match::CR3>() == 0x1234'5FE0;
    });
}

TEST_CASE("bits 4:0 are reserved, and no other bit at any MAXPHYADDR (REG-074)") {
    CHECK_TWICE([](auto value) {
        return match::reserved_mask(value(36U)) == 0x1F &&
               match::reserved_mask(value(46U)) == 0x1F && match::reserved_mask() == 0x1F &&
               match::write_ignored_mask() == 0 && match::forced_1_mask() == 0;
    });
    CHECK_TWICE([](auto value) {
        return match{value(uint64_t{0x1010})}.reserved_bits_set(39) == 0x10 &&
               match{value(uint64_t{0xFFFF'FFFF'FFFF'FFE0})}.reserved_bits_set(39) == 0;
    });
}
