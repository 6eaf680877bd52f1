// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/tdx.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/access/trigger.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
namespace tdx = ptspec::vmx::tdx;

TEST_CASE("without XFAM[8] every IA32_RTIT MSR faults in a TD (REG-136)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = 0x550; index < 0x590; ++index) {
            bool const of_pt = index == 0x560 || index == 0x561 ||
                               (index >= 0x570 && index <= 0x572) ||
                               (index >= 0x580 && index <= 0x587);
            auto const expected = of_pt ? rule::REG_136 : rule::none;
            if (tdx::broken_rule({value(uint64_t{0xFFFF'FFFF'FFFF'FEFF})}, index) != expected ||
                tdx::broken_rule({value(uint64_t{0x100})}, index) != rule::none) {
                return false;
            }
        }
        return tdx::broken_rule({value(uint64_t{0})}, 0xDA0) == rule::none;
    });
}

TEST_CASE("a TD sees leaf 14H without trigger tracing and without undefined bits (REG-137)") {
    CHECK_TWICE([](auto value) {
        cpu::capabilities everything;
        everything.leaf_14_0_eax = {value(1U)};
        everything.leaf_14_0_ebx = {value(0xFFFF'FFFFU)};
        everything.leaf_14_0_ecx = {value(0xFFFF'FFFFU)};
        everything.leaf_14_1_eax = {value(0xFFFF'FFFFU)};
        everything.leaf_14_1_ebx = {value(0xFFFF'FFFFU)};
        everything.leaf_14_1_ecx = {value(0xFFFF'FFFFU)};
        auto expected = everything;
        expected.leaf_14_0_ebx = {0x0000'01FF};
        expected.leaf_14_0_ecx = {0x8000'000F};
        expected.leaf_14_1_eax = {0xFFFF'0007};
        expected.leaf_14_1_ecx = {0};
        return tdx::td_capabilities(everything) == expected &&
               access::triggers(tdx::td_capabilities(preset::P_FUT)) == 0 &&
               access::triggers(preset::P_FUT) != 0;
    });
    CHECK_TWICE([](auto value) {  // no public processor has any of these bits
        return tdx::td_capabilities(value(preset::arrow_lake_e)) == preset::arrow_lake_e;
    });
}
