// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/pebs.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using enable = ptspec::reg::ia32_pebs_enable;
using general = ptspec::reg::msr_reload_pmcx;
using fixed = ptspec::reg::msr_reload_fixed_ctrx;
using ptspec::reg::pebs_output;
using ptspec::test::has_field_at;

TEST_CASE("IA32_PEBS_ENABLE is MSR 3F1H") { CHECK(enable::address == 0x3F1); }

TEST_CASE("bits 62:61 select the output of PEBS records, bit 60 enables interrupts (REG-200)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<enable, enable::EnPMC>(value, 31, 0) &&
               has_field_at<enable, enable::EnFixed>(value, 59, 32) &&
               has_field_at<enable, enable::PMI_AFTER_EACH_RECORD>(value, 60, 60) &&
               has_field_at<enable, enable::PEBS_OUTPUT>(value, 62, 61);
    });
    CHECK_TWICE([](auto value) {
        auto const to_trace = enable{value(uint64_t{5})}.with(
            enable::PEBS_OUTPUT{pebs_output::intel_pt}, enable::PMI_AFTER_EACH_RECORD{value(true)});
        return to_trace.raw == 0x3000'0000'0000'0005 &&
               to_trace.get<enable::PEBS_OUTPUT>() == pebs_output::intel_pt &&
               enable{value(uint64_t{5})}.get<enable::PEBS_OUTPUT>() == pebs_output::ds_area;
    });
}

TEST_CASE("the output of PEBS records is one field for all counters (REG-201)") {
    CHECK_TWICE([](auto value) {
        auto const mixed = enable{value(uint64_t{0x2000'0003'0000'000F})};
        return mixed.get<enable::PEBS_OUTPUT>() == ptspec::reg::pebs_output::intel_pt &&
               mixed.get<enable::EnPMC>() == 0xF && mixed.get<enable::EnFixed>() == 3;
    });
}

TEST_CASE("bit 63 of IA32_PEBS_ENABLE is not part of PT, so no bit is reserved") {
    CHECK_TWICE([](auto value) { return enable::reserved_mask(value(36U)) == 0; });
}

TEST_CASE("reload values are in MSRs from 14C1H and from 1309H on (REG-200)") {
    CHECK_TWICE([](auto value) {
        return general::address(value(0U)) == 0x14C1 && general::address(value(7U)) == 0x14C8 &&
               fixed::address(value(0U)) == 0x1309 && fixed::address(value(3U)) == 0x130C;
    });
    CHECK_TWICE([](auto value) { return has_field_at<general, general::Reload>(value, 63, 0); });
    CHECK_TWICE([](auto value) { return has_field_at<fixed, fixed::Reload>(value, 63, 0); });
}
