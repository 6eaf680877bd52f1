// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/msr_state.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::msr_state;

TEST_CASE("a default state is that after a cold reset: 0, and OUTPUT_MASK_PTRS is 7FH (REG-090)") {
    CHECK_TWICE([](auto value) {
        msr_state const cold{};
        for (uint32_t index = value(0x55EU); index < 0x58A; ++index) {
            if (access::value_of(cold, index) != (index == 0x561 ? 0x7FU : 0U)) { return false; }
        }
        return access::value_of(cold, 0xDA0) == 0 && access::value_of(cold, 0x38E) == 0 &&
               access::value_of(cold, 0x1D9) == 0 && !cold.in_vmx_operation && !cold.in_smm &&
               !cold.smram_trace_en;
    });
}

TEST_CASE("every MSR has the index of the address map (REG-018)") {
    CHECK_TWICE([](auto value) {
        msr_state now;
        now.output.base = {value(uint64_t{0x1000})};
        now.output.mask_ptrs = {value(uint64_t{0x2FF})};
        now.ctl = {value(uint64_t{0x2109})};
        now.status = {value(uint64_t{0x30})};
        now.cr3_match = {value(uint64_t{0x5000})};
        for (unsigned n = 0; n < 4; ++n) { now.addr[n] = {{n + 0x10}, {n + 0x20}}; }
        return access::value_of(now, value(0x560U)) == 0x1000 &&
               access::value_of(now, value(0x561U)) == 0x2FF &&
               access::value_of(now, value(0x570U)) == 0x2109 &&
               access::value_of(now, value(0x571U)) == 0x30 &&
               access::value_of(now, value(0x572U)) == 0x5000 &&
               access::value_of(now, value(0x580U)) == 0x10 &&
               access::value_of(now, value(0x581U)) == 0x20 &&
               access::value_of(now, value(0x582U)) == 0x11 &&
               access::value_of(now, value(0x583U)) == 0x21 &&
               access::value_of(now, value(0x584U)) == 0x12 &&
               access::value_of(now, value(0x585U)) == 0x22 &&
               access::value_of(now, value(0x586U)) == 0x13 &&
               access::value_of(now, value(0x587U)) == 0x23;
    });
}

TEST_CASE("the covered MSRs outside Intel PT are 38EH, DA0H and 1D9H (REG-140, REG-203)") {
    CHECK_TWICE([](auto value) {
        msr_state now;
        now.perf_global_status = {value(uint64_t{1} << 55)};
        now.xss = {value(uint64_t{0x100})};
        now.debugctl = {value(uint64_t{1})};
        return access::value_of(now, value(0x38EU)) == uint64_t{1} << 55 &&
               access::value_of(now, value(0xDA0U)) == 0x100 &&
               access::value_of(now, value(0x1D9U)) == 1 &&
               access::value_of(now, value(0x390U)) == 0 &&
               access::value_of(now, value(0x391U)) == 0;
    });
}

TEST_CASE("set_raw() changes the named register and no other") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = value(0x550U); index < 0x590; ++index) {
            msr_state now;
            access::set_raw(now, index, value(uint64_t{0xABCD'007F}));
            for (uint32_t other = 0x558; other < 0x588; ++other) {
                bool const holds = other <= 0x561   ? other >= 0x560
                                   : other <= 0x572 ? other >= 0x570
                                                    : other >= 0x580;
                uint64_t const expected = other == index && holds ? 0xABCD'007F
                                          : other == 0x561        ? 0x7F
                                                                  : 0;
                if (access::value_of(now, other) != expected) { return false; }
            }
        }
        return true;
    });
    CHECK_TWICE([](auto value) {
        msr_state now;
        access::set_raw(now, value(0x38EU), 0x11);
        access::set_raw(now, value(0xDA0U), 0x22);
        access::set_raw(now, value(0x1D9U), 0x33);
        access::set_raw(now, value(0x390U), 0x44);
        access::set_raw(now, value(0x391U), 0x44);
        msr_state expected;
        expected.perf_global_status = {0x11};
        expected.xss = {0x22};
        expected.debugctl = {0x33};
        return now == expected;
    });
}

TEST_CASE("LowerMask reads as ones whatever is stored there (REG-072)") {
    CHECK_TWICE([](auto value) {
        msr_state now;
        access::set_raw(now, 0x561, value(uint64_t{0x12'0000'0100}));
        return access::value_of(now, 0x561) == 0x12'0000'017F;
    });
}

TEST_CASE("560H to 587H and five MSRs outside Intel PT are covered, but not 588H (REG-017)") {
    CHECK_TWICE([](auto value) {
        unsigned page_regions = 0;
        for (uint32_t index = value(0U); index < 0x1000; ++index) {
            bool const expected = (0x560 <= index && index <= 0x587) || index == 0x38E ||
                                  index == 0x390 || index == 0x391 || index == 0xDA0 ||
                                  index == 0x1D9;
            if (access::covers(index) != expected) { return false; }
            page_regions += expected;
        }
        return page_regions == 45;
    });
}

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

TEST_CASE("two logical processors share nothing (REG-003)") {
    CHECK_TWICE([](auto value) {
        msr_state threads[2];
        access::set_raw(threads[0], value(0x570U), 0x2109);
        access::set_raw(threads[0], value(0x580U), 0x1000);
        return threads[1] == msr_state{} && !(threads[0] == threads[1]);
    });
}

TEST_CASE("the default policy is the newer text on VMX and shutdown at RSM (REG-121)") {
    CHECK(!access::policy{}.only_enabling_faults_in_vmx);
    CHECK(access::policy{}.lbr_after_rsm_shuts_down);
}

TEST_CASE("a default context is CPL 0 with everything else 0") {
    access::context const code{};
    CHECK(code.cpl == 0);
    CHECK(code.cr3 == 0);
    CHECK(!code.pae);
    CHECK(!code.production_enclave);
    CHECK(code.ip == 0);
}
