// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/perf.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using status = ptspec::reg::ia32_perf_global_status;
using status_reset = ptspec::reg::ia32_perf_global_status_reset;
using status_set = ptspec::reg::ia32_perf_global_status_set;
using ctrl = ptspec::reg::ia32_perf_global_ctrl;
using caps = ptspec::reg::ia32_perf_capabilities;
using platform = ptspec::reg::msr_platform_info;
using ptspec::row_access;
using ptspec::test::has_field_at;

TEST_CASE("the performance-monitoring MSRs have the manual's indices (REG-203)") {
    CHECK(status::address == 0x38E);
    CHECK(status_reset::address == 0x390);
    CHECK(status_set::address == 0x391);
    CHECK(ctrl::address == 0x38F);
    CHECK(caps::address == 0x345);
    CHECK(platform::address == 0xCE);
}

TEST_CASE("status, reset and set have the same bits; the ToPA PMI is bit 55 (REG-203, OUT-143)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<status, status::OvfPMC>(value, 31, 0) &&
               has_field_at<status, status::OvfFixed>(value, 47, 32) &&
               has_field_at<status, status::OvfPerfMetrics>(value, 48, 48) &&
               has_field_at<status, status::ArchPebsThresh>(value, 54, 54) &&
               has_field_at<status, status::Trace_ToPA_PMI>(value, 55, 55) &&
               has_field_at<status, status::LBR_Frz>(value, 58, 58) &&
               has_field_at<status, status::CTR_Frz>(value, 59, 59) &&
               has_field_at<status, status::ASCI>(value, 60, 60) &&
               has_field_at<status, status::OvfUncore>(value, 61, 61) &&
               has_field_at<status, status::OvfBuf>(value, 62, 62) &&
               has_field_at<status, status::CondChgd>(value, 63, 63);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<status_reset, status_reset::OvfPMC>(value, 31, 0) &&
               has_field_at<status_reset, status_reset::OvfFixed>(value, 47, 32) &&
               has_field_at<status_reset, status_reset::OvfPerfMetrics>(value, 48, 48) &&
               has_field_at<status_reset, status_reset::ArchPebsThresh>(value, 54, 54) &&
               has_field_at<status_reset, status_reset::Trace_ToPA_PMI>(value, 55, 55) &&
               has_field_at<status_reset, status_reset::LBR_Frz>(value, 58, 58) &&
               has_field_at<status_reset, status_reset::CTR_Frz>(value, 59, 59) &&
               has_field_at<status_reset, status_reset::ASCI>(value, 60, 60) &&
               has_field_at<status_reset, status_reset::OvfUncore>(value, 61, 61) &&
               has_field_at<status_reset, status_reset::OvfBuf>(value, 62, 62) &&
               has_field_at<status_reset, status_reset::CondChgd>(value, 63, 63);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<status_set, status_set::OvfPMC>(value, 31, 0) &&
               has_field_at<status_set, status_set::OvfFixed>(value, 47, 32) &&
               has_field_at<status_set, status_set::OvfPerfMetrics>(value, 48, 48) &&
               has_field_at<status_set, status_set::ArchPebsThresh>(value, 54, 54) &&
               has_field_at<status_set, status_set::Trace_ToPA_PMI>(value, 55, 55) &&
               has_field_at<status_set, status_set::LBR_Frz>(value, 58, 58) &&
               has_field_at<status_set, status_set::CTR_Frz>(value, 59, 59) &&
               has_field_at<status_set, status_set::ASCI>(value, 60, 60) &&
               has_field_at<status_set, status_set::OvfUncore>(value, 61, 61) &&
               has_field_at<status_set, status_set::OvfBuf>(value, 62, 62) &&
               has_field_at<status_set, status_set::CondChgd>(value, 63, 63);
    });
}

TEST_CASE("a field of one of the three registers is not a field of the others") {
    static_assert(ptspec::field_of<status::OvfPMC, status>);
    static_assert(!ptspec::field_of<status::OvfPMC, status_reset>);
    static_assert(!ptspec::field_of<status_reset::OvfPMC, status_set>);
    CHECK(!ptspec::field_of<status_set::OvfPMC, status>);
}

TEST_CASE("bits 53:49 and 57:56 of the three registers are reserved, and the status is read-only") {
    CHECK_TWICE([](auto value) {
        return status::reserved_mask(value(64U)) == 0x033E'0000'0000'0000 &&
               status_reset::reserved_mask(value(64U)) == 0x033E'0000'0000'0000 &&
               status_set::reserved_mask(value(64U)) == 0x033E'0000'0000'0000;
    });
    CHECK(status::access == row_access::read_only);
    CHECK(status_reset::access == row_access::plain);
    CHECK(status_set::access == row_access::plain);
}

TEST_CASE("the value that a PMI handler writes to clear the ToPA PMI bit (REG-203)") {
    CHECK_TWICE([](auto value) {
        return status_reset{}.with(status_reset::Trace_ToPA_PMI{value(true)}).raw ==
               0x0080'0000'0000'0000;
    });
}

TEST_CASE("IA32_PERF_GLOBAL_CTRL has the counter enables and other bits") {
    CHECK_TWICE([](auto value) {
        return has_field_at<ctrl, ctrl::EnPMC>(value, 31, 0) &&
               has_field_at<ctrl, ctrl::EnFixed>(value, 47, 32);
    });
    CHECK_TWICE([](auto value) { return ctrl::reserved_mask(value(36U)) == 0; });
    CHECK(ctrl::access == row_access::plain);
}

TEST_CASE("bit 16 of the capabilities enumerates PEBS output to the trace (REG-200)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<caps, caps::LBR_FMT>(value, 5, 0) &&
               has_field_at<caps, caps::PEBSTrap>(value, 6, 6) &&
               has_field_at<caps, caps::PEBSArchRegs>(value, 7, 7) &&
               has_field_at<caps, caps::PEBS_FMT>(value, 11, 8) &&
               has_field_at<caps, caps::SMM_FREEZE>(value, 12, 12) &&
               has_field_at<caps, caps::FW_WRITE>(value, 13, 13) &&
               has_field_at<caps, caps::PEBS_BASELINE>(value, 14, 14) &&
               has_field_at<caps, caps::PERF_METRICS>(value, 15, 15) &&
               has_field_at<caps, caps::PEBS_OUTPUT_PT_AVAIL>(value, 16, 16) &&
               has_field_at<caps, caps::PEBS_TIMING_INFO>(value, 17, 17);
    });
    CHECK_TWICE([](auto value) {
        return caps{value(uint64_t{0x1'0000})}.get<caps::PEBS_OUTPUT_PT_AVAIL>() &&
               caps::reserved_mask(value(36U)) == 0;
    });
    CHECK(caps::access == row_access::read_only);
}

TEST_CASE("bits 15:8 are the ratio that CBR is compared with (REG-168)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<platform, platform::MaxNonTurboRatio>(value, 15, 8);
    });
    CHECK_TWICE([](auto value) {
        return platform{value(uint64_t{0x0804'0838'F301'1800})}.get<platform::MaxNonTurboRatio>() ==
                   0x18 &&
               platform::reserved_mask(value(36U)) == 0;
    });
    CHECK(platform::access == row_access::read_only);
}
