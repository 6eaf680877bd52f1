// SPDX-License-Identifier: BSL-1.0
#include <ptspec/conformance/numbers.hpp>

#include <ptspec/reg/list.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

namespace {

// A difference stops the build in a constant expression (tests/fail/conformance.cpp), so here it
// is tested at run time only.
constexpr test::unknown at_run_time;

}  // namespace

TEST_CASE("the address of a register, a VMCS field and a word in memory") {
    CHECK_TWICE([](auto value) {
        return conforms_address<ctl>(value(0x570)) &&
               conforms_address<reg::ia32_rtit_addr>(value(0x583), value(1), reg::range_end::b) &&
               conforms_address<reg::vmcs_guest_ia32_rtit_ctl>(value(0x2814)) &&
               conforms_address<reg::xsave_header_xcomp_bv>(value(0x208));
    });
    CHECK(!conforms_address<ctl>(at_run_time(0x571)));
    CHECK(!conforms_address<reg::ia32_rtit_addr>(at_run_time(0x582), 1, reg::range_end::b));
    CHECK(!conforms_address<reg::vmcs_guest_ia32_rtit_ctl>(at_run_time(0x2815)));
    CHECK(!conforms_address<reg::xsave_header_xcomp_bv>(at_run_time(0x200)));
}

TEST_CASE("the leaf and the sub-leaf of a CPUID word") {
    CHECK_TWICE([](auto value) {
        return conforms_leaf<reg::cpuid_14h_1_eax>(value(0x14)) &&
               conforms_leaf<reg::cpuid_14h_1_eax>(value(0x14), value(1)) &&
               conforms_leaf<reg::cpuid_80000008h_eax>(value(0x8000'0008));
    });
    CHECK(!conforms_leaf<reg::cpuid_14h_1_eax>(at_run_time(0x15)));
    CHECK(!conforms_leaf<reg::cpuid_14h_1_eax>(at_run_time(0x15), 1));
    CHECK(!conforms_leaf<reg::cpuid_14h_1_eax>(0x14, at_run_time(0)));
}
