// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/rtit_trigger.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using cfg = ptspec::reg::ia32_rtit_triggerx_cfg;
using ptspec::reg::dr7;
using ptspec::test::has_field_at;

namespace {

template <class Word>
concept has_an_address = requires { Word::address; };

}  // namespace

TEST_CASE("the type has no address, since the indices of the trigger MSRs are unknown") {
    CHECK(!has_an_address<cfg>);
}

TEST_CASE("a register has four slots of 16 bits, all with the same fields (REG-215, REG-216)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cfg, cfg::Input0>(value, 6, 0) &&
               has_field_at<cfg, cfg::Action12_0>(value, 12, 12) &&
               has_field_at<cfg, cfg::Action13_0>(value, 13, 13) &&
               has_field_at<cfg, cfg::EnIcnt0>(value, 14, 14) &&
               has_field_at<cfg, cfg::En0>(value, 15, 15) &&
               has_field_at<cfg, cfg::Input1>(value, 22, 16) &&
               has_field_at<cfg, cfg::Action12_1>(value, 28, 28) &&
               has_field_at<cfg, cfg::Action13_1>(value, 29, 29) &&
               has_field_at<cfg, cfg::EnIcnt1>(value, 30, 30) &&
               has_field_at<cfg, cfg::En1>(value, 31, 31) &&
               has_field_at<cfg, cfg::Input2>(value, 38, 32) &&
               has_field_at<cfg, cfg::Action12_2>(value, 44, 44) &&
               has_field_at<cfg, cfg::Action13_2>(value, 45, 45) &&
               has_field_at<cfg, cfg::EnIcnt2>(value, 46, 46) &&
               has_field_at<cfg, cfg::En2>(value, 47, 47) &&
               has_field_at<cfg, cfg::Input3>(value, 54, 48) &&
               has_field_at<cfg, cfg::Action12_3>(value, 60, 60) &&
               has_field_at<cfg, cfg::Action13_3>(value, 61, 61) &&
               has_field_at<cfg, cfg::EnIcnt3>(value, 62, 62) &&
               has_field_at<cfg, cfg::En3>(value, 63, 63);
    });
    CHECK_TWICE([](auto value) {
        auto const of_one = cfg{}.with(cfg::Input0{0x43}, cfg::Action13_0{value(true)},
                                       cfg::EnIcnt0{true}, cfg::En0{true});
        auto const of_all = of_one.with(
            cfg::Input1{0x43}, cfg::Action13_1{true}, cfg::EnIcnt1{value(true)}, cfg::En1{true},
            cfg::Input2{0x43}, cfg::Action13_2{true}, cfg::EnIcnt2{true}, cfg::En2{value(true)},
            cfg::Input3{0x43}, cfg::Action13_3{value(true)}, cfg::EnIcnt3{true}, cfg::En3{true});
        return of_one.raw == 0xE043 && of_all.raw == 0xE043'E043'E043'E043;
    });
}

TEST_CASE("bits 11:7 of each slot are reserved (REG-216)") {
    CHECK_TWICE([](auto value) {
        return cfg::reserved_mask(value(36U)) == 0x0F80'0F80'0F80'0F80 &&
               cfg::write_ignored_mask() == 0 && cfg::forced_1_mask() == 0;
    });
}

TEST_CASE("DR7 has a bit for each debug register whose match fires triggers (REG-219)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<dr7, dr7::DR0_PT_LOG>(value, 32, 32) &&
               has_field_at<dr7, dr7::DR1_PT_LOG>(value, 33, 33) &&
               has_field_at<dr7, dr7::DR2_PT_LOG>(value, 34, 34) &&
               has_field_at<dr7, dr7::DR3_PT_LOG>(value, 35, 35) &&
               dr7::reserved_mask(value(36U)) == 0;
    });
    CHECK(!has_an_address<dr7>);
}
