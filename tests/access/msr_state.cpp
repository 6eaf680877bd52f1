// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/msr_state.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("a range contains both its ends, and a range with A above B is empty (REG-077, 078)") {
    CHECK_TWICE([](auto value) {
        access::address_range const range{{value(uint64_t{0x1000})}, {value(uint64_t{0x1FFF})}};
        access::address_range const one{{value(uint64_t{0x1000})}, {value(uint64_t{0x1000})}};
        access::address_range const empty{{value(uint64_t{0x1001})}, {value(uint64_t{0x1000})}};
        return !range.contains(0xFFF) && range.contains(0x1000) && range.contains(0x1800) &&
               range.contains(0x1FFF) && !range.contains(0x2000) && one.contains(0x1000) &&
               !one.contains(0xFFF) && !one.contains(0x1001) && !empty.contains(0x1000) &&
               !empty.contains(0x1001) && !empty.contains(0) && !empty.contains(~uint64_t{0});
    });
}

TEST_CASE("the default policy is the newer text on VMX and shutdown at RSM (REG-121)") {
    CHECK(!access::policy{}.only_enabling_faults_in_vmx);
    CHECK(access::policy{}.lbr_after_rsm_shuts_down);
}

TEST_CASE("a default context is CPL 0 with everything else 0") {
    access::processor_context const code{};
    CHECK(code.cpl == 0);
    CHECK(code.cr3 == 0);
    CHECK(!code.pae);
    CHECK(!code.production_enclave);
    CHECK(code.ip == 0);
}
