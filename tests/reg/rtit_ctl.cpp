// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/rtit_ctl.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using ctl = ptspec::reg::ia32_rtit_ctl;
using ptspec::wrapped;
using ptspec::reg::addr_cfg;

namespace {

template <class Field>
constexpr auto has_field_at(auto value, unsigned msb, unsigned lsb) -> bool {
    return ptspec::test::has_field_at<ctl, Field>(value, msb, lsb);
}

}  // namespace

TEST_CASE("IA32_RTIT_CTL is MSR 570H") { CHECK(ctl::address == 0x570); }

TEST_CASE("every field of IA32_RTIT_CTL is at the position in the manual's table") {
    CHECK_TWICE([](auto value) { return has_field_at<ctl::TraceEn>(value, 0, 0); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::CYCEn>(value, 1, 1); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::OS>(value, 2, 2); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::User>(value, 3, 3); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::PwrEvtEn>(value, 4, 4); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::FUPonPTW>(value, 5, 5); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::FabricEn>(value, 6, 6); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::CR3Filter>(value, 7, 7); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::ToPA>(value, 8, 8); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::MTCEn>(value, 9, 9); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::TSCEn>(value, 10, 10); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::DisRETC>(value, 11, 11); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::PTWEn>(value, 12, 12); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::BranchEn>(value, 13, 13); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::MTCFreq>(value, 17, 14); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::CycThresh>(value, 22, 19); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::PSBFreq>(value, 27, 24); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::EventEn>(value, 31, 31); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::ADDR0_CFG>(value, 35, 32); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::ADDR1_CFG>(value, 39, 36); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::ADDR2_CFG>(value, 43, 40); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::ADDR3_CFG>(value, 47, 44); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::DisTNT>(value, 55, 55); });
    CHECK_TWICE([](auto value) { return has_field_at<ctl::InjectPsbPmiOnEnable>(value, 56, 56); });
}

TEST_CASE("bits 18, 23, 30:28, 54:48 and 63:57 are reserved, and no others (REG-044)") {
    CHECK_TWICE([](auto value) {
        return ctl::reserved_mask(value(64U)) == 0xFE7F'0000'7084'0000 &&
               ctl::reserved_mask(value(36U)) == 0xFE7F'0000'7084'0000 &&
               ctl::write_ignored_mask() == 0 && ctl::forced_1_mask() == 0;
    });
}

TEST_CASE("the use of an address range has three encodings") {
    CHECK_TWICE([](auto value) {
        auto const word = ctl{value(uint64_t{0x0210'0000'0000 | 0x0003'0000'0000})};
        return word.get<ctl::ADDR0_CFG>() == addr_cfg{3} &&
               word.get<ctl::ADDR1_CFG>() == addr_cfg::filter &&
               word.get<ctl::ADDR2_CFG>() == addr_cfg::trace_stop &&
               word.get<ctl::ADDR3_CFG>() == addr_cfg::off;
    });
}

TEST_CASE("a typical configuration has the value that a driver would write") {
    CHECK_TWICE([](auto value) {
        auto const start = ctl{}.with(ctl::TraceEn{true}, ctl::OS{value(true)}, ctl::User{true},
                                      ctl::BranchEn{true}, ctl::ToPA{value(true)});
        return start.raw == 0x210D;
    });
    CHECK_TWICE([](auto value) {
        auto const start = ctl{value(uint64_t{0x210D})}.with(
            ctl::MTCEn{true}, ctl::MTCFreq{3}, ctl::TSCEn{true}, ctl::CYCEn{true},
            ctl::CycThresh{1}, ctl::PSBFreq{5}, ctl::ADDR1_CFG{addr_cfg::trace_stop});
        return start.raw == 0x0020'0508'E70F && start.get<ctl::MTCFreq>() == 3;
    });
}

TEST_CASE("disabling a trace changes only TraceEn") {
    CHECK_TWICE([](auto value) {
        return ctl{value(uint64_t{0x0180'2102'0508'E70F})}.with(ctl::TraceEn{false}).raw ==
               0x0180'2102'0508'E70E;
    });
}

TEST_CASE("the amounts of the encodings (REG-048)") {
    CHECK_TWICE([](auto value) {
        auto const mtc = ctl::MTCFreq::amount(value(uint64_t{3}));
        return mtc.count == 8 && mtc.unit == ptspec::text{"crystal cycles"} &&
               ctl::MTCFreq::amount(value(uint64_t{0})).count == 1;
    });
    CHECK_TWICE([](auto value) {
        return ctl::CycThresh::amount(value(uint64_t{0})).unit.size() == 0 &&
               ctl::CycThresh::amount(value(uint64_t{1})).count == 1 &&
               ctl::CycThresh::amount(value(uint64_t{15})).count == 16384 &&
               ctl::CycThresh::amount(value(uint64_t{15})).unit == ptspec::text{"cycles"};
    });
    CHECK_TWICE([](auto value) {
        return ctl::PSBFreq::amount(value(uint64_t{0})).count == 2048 &&
               ctl::PSBFreq::amount(value(uint64_t{15})).count == 0x400'0000 &&
               ctl::PSBFreq::amount(value(uint64_t{5})).unit == ptspec::text{"bytes"};
    });
}
