// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/pt_msrs.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::msr_state;

TEST_CASE("the MSRs of Intel PT in order, with their place in the XSAVE area (REG-018, REG-141)") {
    CHECK_TWICE([](auto value) {
        struct expected_msr {
            uint32_t index;
            int quadword;  // -1: not saved
        };
        expected_msr const expected[] = {
            {0x570, 0}, {0x571, 3}, {0x560, 1},  {0x561, 2},  {0x572, 4},  {0x580, 5}, {0x581, 6},
            {0x582, 7}, {0x583, 8}, {0x584, -1}, {0x585, -1}, {0x586, -1}, {0x587, -1}};
        size_t n = value(size_t{0});
        for (auto const& msr : access::pt_msrs) {
            if (n == 13) { return false; }
            bool const same = msr.index == expected[n].index &&
                              msr.is_saved == (expected[n].quadword >= 0) &&
                              (!msr.is_saved || msr.quadword == expected[n].quadword);
            if (!same) { return false; }
            ++n;
        }
        return n == 13 && access::pt_msrs.size() == 13;
    });
}

TEST_CASE("IA32_RTIT_CTL says which MSRs have an effect (REG-037, REG-057, PRG-080)") {
    CHECK_TWICE([](auto value) {
        auto const used_by = [](uint64_t ctl) {
            unsigned used = 0;
            unsigned bit = 1;
            for (auto const& msr : access::pt_msrs) {
                if (access::is_used({ctl}, msr)) { used |= bit; }
                bit <<= 1;
            }
            return used;
        };
        return used_by(value(uint64_t{0})) == 0xF &&
               used_by(uint64_t{1} << 6) == 0x3 &&      // FabricEn
               used_by(uint64_t{1} << 7) == 0x1F &&     // CR3Filter
               used_by(uint64_t{1} << 32) == 0x06F &&   // ADDR0_CFG
               used_by(uint64_t{2} << 36) == 0x18F &&   // ADDR1_CFG
               used_by(uint64_t{1} << 40) == 0x60F &&   // ADDR2_CFG
               used_by(uint64_t{2} << 44) == 0x180F &&  // ADDR3_CFG
               used_by(0x1111'0000'00C0) == 0x1FF3;
    });
}

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

TEST_CASE("two logical processors share nothing (REG-003)") {
    CHECK_TWICE([](auto value) {
        msr_state threads[2];
        access::set_raw(threads[0], value(0x570U), 0x2109);
        access::set_raw(threads[0], value(0x580U), 0x1000);
        return threads[1] == msr_state{} && !(threads[0] == threads[1]);
    });
}
