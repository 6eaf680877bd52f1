// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/lbr.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using debugctl = ptspec::reg::ia32_debugctl;
using ptspec::reg::msr_lastbranch_tos;
using ptspec::reg::msr_lastbranch_x_from_ip;
using ptspec::reg::msr_lastbranch_x_to_ip;
using ptspec::reg::msr_lbr_info_x;
using ptspec::reg::msr_lbr_select;
using ptspec::reg::msr_ler_from_lip;
using ptspec::reg::msr_ler_to_lip;
using ptspec::test::has_field_at;

TEST_CASE("IA32_DEBUGCTL is MSR 1D9H") { CHECK(debugctl::address == 0x1D9); }

TEST_CASE("every field of IA32_DEBUGCTL is at the position in the manual's table") {
    CHECK_TWICE([](auto value) {
        return has_field_at<debugctl, debugctl::LBR>(value, 0, 0) &&
               has_field_at<debugctl, debugctl::BTF>(value, 1, 1) &&
               has_field_at<debugctl, debugctl::BLD>(value, 2, 2) &&
               has_field_at<debugctl, debugctl::TR>(value, 6, 6) &&
               has_field_at<debugctl, debugctl::BTS>(value, 7, 7) &&
               has_field_at<debugctl, debugctl::BTINT>(value, 8, 8) &&
               has_field_at<debugctl, debugctl::BTS_OFF_OS>(value, 9, 9) &&
               has_field_at<debugctl, debugctl::BTS_OFF_USR>(value, 10, 10) &&
               has_field_at<debugctl, debugctl::FREEZE_LBRS_ON_PMI>(value, 11, 11) &&
               has_field_at<debugctl, debugctl::FREEZE_PERFMON_ON_PMI>(value, 12, 12) &&
               has_field_at<debugctl, debugctl::ENABLE_UNCORE_PMI>(value, 13, 13) &&
               has_field_at<debugctl, debugctl::FREEZE_WHILE_SMM>(value, 14, 14) &&
               has_field_at<debugctl, debugctl::RTM_DEBUG>(value, 15, 15);
    });
}

TEST_CASE("bit 11 freezes LBRs on a PMI, bit 12 the counters") {
    CHECK_TWICE([](auto value) {
        return debugctl{}
                   .with(debugctl::FREEZE_LBRS_ON_PMI{value(true)},
                         debugctl::FREEZE_PERFMON_ON_PMI{true})
                   .raw == 0x1800;
    });
}

TEST_CASE("bits 5:3 and 63:16 of IA32_DEBUGCTL are reserved, and no others") {
    CHECK_TWICE([](auto value) {
        return debugctl::reserved_mask(value(36U)) == 0xFFFF'FFFF'FFFF'0038 &&
               debugctl::write_ignored_mask() == 0 && debugctl::forced_1_mask() == 0;
    });
}

TEST_CASE("the suspended registers have the manual's indices; two of them are LIP (REG-238)") {
    CHECK(msr_lastbranch_tos::address == 0x1C9);
    CHECK(msr_lbr_select::address == 0x1C8);
    CHECK(msr_ler_from_lip::address == 0x1DD);
    CHECK(msr_ler_to_lip::address == 0x1DE);
    CHECK_TWICE([](auto value) {
        return msr_lastbranch_x_from_ip::address(value(0U)) == 0x680 &&
               msr_lastbranch_x_from_ip::address(value(31U)) == 0x69F &&
               msr_lastbranch_x_to_ip::address(value(0U)) == 0x6C0 &&
               msr_lastbranch_x_to_ip::address(value(31U)) == 0x6DF &&
               msr_lbr_info_x::address(value(0U)) == 0xDC0 &&
               msr_lbr_info_x::address(value(31U)) == 0xDDF;
    });
}

TEST_CASE("each is one value of 64 bits without reserved bits") {
    CHECK_TWICE([](auto value) {
        return has_field_at<msr_lastbranch_tos, msr_lastbranch_tos::Value>(value, 63, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<msr_lbr_select, msr_lbr_select::Value>(value, 63, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<msr_ler_from_lip, msr_ler_from_lip::Value>(value, 63, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<msr_ler_to_lip, msr_ler_to_lip::Value>(value, 63, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<msr_lastbranch_x_from_ip, msr_lastbranch_x_from_ip::Value>(value, 63,
                                                                                       0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<msr_lastbranch_x_to_ip, msr_lastbranch_x_to_ip::Value>(value, 63, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<msr_lbr_info_x, msr_lbr_info_x::Value>(value, 63, 0);
    });
    CHECK_TWICE([](auto value) { return msr_lbr_info_x::reserved_mask(value(36U)) == 0; });
}
