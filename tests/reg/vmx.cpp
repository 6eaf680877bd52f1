// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/vmx.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using misc = ptspec::reg::ia32_vmx_misc;
using can_execute = ptspec::reg::ia32_vmx_procbased_ctls2;
using can_exit = ptspec::reg::ia32_vmx_exit_ctls;
using can_enter = ptspec::reg::ia32_vmx_entry_ctls;
using secondary = ptspec::reg::vmcs_secondary_proc_ctls;
using exit_ctls = ptspec::reg::vmcs_vmexit_ctls;
using entry_ctls = ptspec::reg::vmcs_vmentry_ctls;
using guest_ctl = ptspec::reg::vmcs_guest_ia32_rtit_ctl;
using exiting = ptspec::reg::vmcs_xss_exiting_bitmap;
using violation = ptspec::reg::vmcs_exit_qual_ept_violation;
using ptspec::row_access;
using ptspec::test::has_field_at;

TEST_CASE("the VMX capability MSRs are 483H, 484H, 485H and 48BH, and read-only") {
    CHECK(can_exit::address == 0x483);
    CHECK(can_enter::address == 0x484);
    CHECK(misc::address == 0x485);
    CHECK(can_execute::address == 0x48B);
    CHECK(can_exit::access == row_access::read_only);
    CHECK(can_enter::access == row_access::read_only);
    CHECK(misc::access == row_access::read_only);
    CHECK(can_execute::access == row_access::read_only);
}

TEST_CASE("the fields of the VMCS have the manual's encodings") {
    CHECK(secondary::encoding == 0x401E);
    CHECK(exit_ctls::encoding == 0x400C);
    CHECK(entry_ctls::encoding == 0x4012);
    CHECK(exiting::encoding == 0x202C);
    CHECK(violation::encoding == 0x6400);
}

TEST_CASE("the guest's IA32_RTIT_CTL is field 2814H, and 2815H its upper half") {
    CHECK(guest_ctl::encoding == 0x2814);
    CHECK(guest_ctl::encoding_high == 0x2815);
    CHECK_TWICE(
        [](auto value) { return has_field_at<guest_ctl, guest_ctl::GuestRtitCtl>(value, 63, 0); });
}

TEST_CASE("bit 14 of IA32_VMX_MISC enumerates PT in VMX operation") {
    CHECK_TWICE([](auto value) {
        return has_field_at<misc, misc::PreemptTscShift>(value, 4, 0) &&
               has_field_at<misc, misc::StoreEferLma>(value, 5, 5) &&
               has_field_at<misc, misc::ActivityStates>(value, 8, 6) &&
               has_field_at<misc, misc::INTEL_PT>(value, 14, 14) &&
               has_field_at<misc, misc::RdmsrSmbase>(value, 15, 15) &&
               has_field_at<misc, misc::CR3TargetCount>(value, 24, 16) &&
               has_field_at<misc, misc::MaxMsrList>(value, 27, 25) &&
               has_field_at<misc, misc::MsegRevision>(value, 63, 32);
    });
    CHECK_TWICE([](auto value) {
        return misc{value(uint64_t{0x4000})}.get<misc::INTEL_PT>() &&
               misc::reserved_mask(value(36U)) == 0x3E00;
    });
}

TEST_CASE("an MSR list has 512 entries for each step of its encoding") {
    CHECK_TWICE([](auto value) {
        return misc::MaxMsrList::amount(value(uint64_t{0})).count == 512 &&
               misc::MaxMsrList::amount(value(uint64_t{7})).count == 4096 &&
               misc::MaxMsrList::amount(value(uint64_t{7})).unit == ptspec::text{"MSRs"};
    });
}

TEST_CASE("the allowed settings of the controls are at the positions in the manual's tables") {
    CHECK_TWICE([](auto value) {
        return has_field_at<can_execute, can_execute::Allowed0_18_0>(value, 18, 0) &&
               has_field_at<can_execute, can_execute::Must1_CONCEAL_VMX_NONROOT_FROM_PT>(value, 19,
                                                                                         19) &&
               has_field_at<can_execute, can_execute::Allowed0_23_20>(value, 23, 20) &&
               has_field_at<can_execute, can_execute::Must1_PT_USES_GPA>(value, 24, 24) &&
               has_field_at<can_execute, can_execute::Allowed0_31_25>(value, 31, 25) &&
               has_field_at<can_execute, can_execute::Allowed1_18_0>(value, 50, 32) &&
               has_field_at<can_execute, can_execute::Can1_CONCEAL_VMX_NONROOT_FROM_PT>(value, 51,
                                                                                        51) &&
               has_field_at<can_execute, can_execute::Allowed1_23_20>(value, 55, 52) &&
               has_field_at<can_execute, can_execute::Can1_PT_USES_GPA>(value, 56, 56) &&
               has_field_at<can_execute, can_execute::Allowed1_31_25>(value, 63, 57);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<can_exit, can_exit::Allowed0_23_0>(value, 23, 0) &&
               has_field_at<can_exit, can_exit::Must1_CONCEAL_VMEXITS_FROM_PT>(value, 24, 24) &&
               has_field_at<can_exit, can_exit::Must1_CLEAR_IA32_RTIT_CTL>(value, 25, 25) &&
               has_field_at<can_exit, can_exit::Allowed0_31_26>(value, 31, 26) &&
               has_field_at<can_exit, can_exit::Allowed1_23_0>(value, 55, 32) &&
               has_field_at<can_exit, can_exit::Can1_CONCEAL_VMEXITS_FROM_PT>(value, 56, 56) &&
               has_field_at<can_exit, can_exit::Can1_CLEAR_IA32_RTIT_CTL>(value, 57, 57) &&
               has_field_at<can_exit, can_exit::Allowed1_31_26>(value, 63, 58);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<can_enter, can_enter::Allowed0_16_0>(value, 16, 0) &&
               has_field_at<can_enter, can_enter::Must1_CONCEAL_VMENTRIES_FROM_PT>(value, 17, 17) &&
               has_field_at<can_enter, can_enter::Must1_LOAD_IA32_RTIT_CTL>(value, 18, 18) &&
               has_field_at<can_enter, can_enter::Allowed0_31_19>(value, 31, 19) &&
               has_field_at<can_enter, can_enter::Allowed1_16_0>(value, 48, 32) &&
               has_field_at<can_enter, can_enter::Can1_CONCEAL_VMENTRIES_FROM_PT>(value, 49, 49) &&
               has_field_at<can_enter, can_enter::Can1_LOAD_IA32_RTIT_CTL>(value, 50, 50) &&
               has_field_at<can_enter, can_enter::Allowed1_31_19>(value, 63, 51);
    });
}

TEST_CASE("the secondary controls conceal at bit 19 and translate output at bit 24") {
    CHECK_TWICE([](auto value) {
        return has_field_at<secondary, secondary::ConcealVmxNonRootFromPT>(value, 19, 19) &&
               has_field_at<secondary, secondary::PTUsesGuestPhysAddr>(value, 24, 24);
    });
}

TEST_CASE("the exit controls conceal at bit 24 and clear IA32_RTIT_CTL at bit 25") {
    CHECK_TWICE([](auto value) {
        return has_field_at<exit_ctls, exit_ctls::ConcealVmExitsFromPT>(value, 24, 24) &&
               has_field_at<exit_ctls, exit_ctls::ClearIA32_RTIT_CTL>(value, 25, 25);
    });
}

TEST_CASE("the entry controls conceal at bit 17 and load IA32_RTIT_CTL at bit 18") {
    CHECK_TWICE([](auto value) {
        return has_field_at<entry_ctls, entry_ctls::ConcealVmEntriesFromPT>(value, 17, 17) &&
               has_field_at<entry_ctls, entry_ctls::LoadIA32_RTIT_CTL>(value, 18, 18);
    });
}

TEST_CASE("bit 8 of the XSS-exiting bitmap is PT state") {
    CHECK_TWICE([](auto value) { return has_field_at<exiting, exiting::PT_STATE>(value, 8, 8); });
}

TEST_CASE("bit 16 of an EPT violation's qualification is asynchronous, and read-only") {
    CHECK_TWICE(
        [](auto value) { return has_field_at<violation, violation::Asynchronous>(value, 16, 16); });
    CHECK(violation::access == row_access::read_only);
}

TEST_CASE("the bits of other controls are preserved and never reserved") {
    CHECK_TWICE([](auto value) {
        return secondary{value(uint32_t{0xFFFF'FFFF})}.reserved_bits_set() == 0 &&
               exit_ctls{value(uint32_t{0xFFFF'FFFF})}.reserved_bits_set() == 0 &&
               entry_ctls{value(uint32_t{0xFFFF'FFFF})}.reserved_bits_set() == 0 &&
               exiting{value(~uint64_t{0})}.reserved_bits_set() == 0 &&
               violation{value(~uint64_t{0})}.reserved_bits_set() == 0 &&
               guest_ctl{value(~uint64_t{0})}.reserved_bits_set() == 0;
    });
    CHECK_TWICE([](auto value) {
        return exit_ctls{value(uint32_t{0x0123'4567})}
                   .with(exit_ctls::ClearIA32_RTIT_CTL{true})
                   .raw == 0x0323'4567;
    });
}
