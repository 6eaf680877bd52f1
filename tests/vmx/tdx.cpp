// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/tdx.hpp>

#include <ptspec/cpu/presets.hpp>

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
        return tdx::td_capabilities(everything) == expected;
    });
    CHECK_TWICE([](auto value) {  // no public processor has any of these bits
        return tdx::td_capabilities(value(preset::arrow_lake_e)) == preset::arrow_lake_e;
    });
}

TEST_CASE("without XFAM[8] a TD sees no Intel PT, and no TD has VMX operation (REG-136, REG-137)") {
    CHECK_TWICE([](auto value) {
        auto const of = preset::ice_lake_u;
        auto const none = tdx::td_capabilities(of, {value(uint64_t{0xFFFF'FFFF'FFFF'FEFF})});
        auto const with = tdx::td_capabilities(of, {value(uint64_t{0x100})});
        auto expected = of;
        expected.vmx_misc = {of.vmx_misc.raw & ~uint64_t{0x4000}};
        expected.vmx_procbased_ctls2 = {of.vmx_procbased_ctls2.raw & 0xFEF7'FFFF'FEF7'FFFF};
        expected.vmx_exit_ctls = {of.vmx_exit_ctls.raw & 0xFCFF'FFFF'FCFF'FFFF};
        expected.vmx_entry_ctls = {of.vmx_entry_ctls.raw & 0xFFF9'FFFF'FFF9'FFFF};
        auto const future = tdx::td_capabilities(preset::P_FUT, {0x100});
        return with == expected && with.has_xsaves_state() && !none.has_pt() &&
               !none.has_xsaves_state() && none.leaf_14_0_ebx.raw == 0 &&
               none.leaf_14_1_eax.raw == 0 && future.leaf_14_0_ebx.raw == 0x1FF &&
               future.leaf_14_1_eax.raw == 0xFFFF'0004 && tdx::has_pt({value(uint64_t{0x1FF})}) &&
               !tdx::has_pt({0x80});
    });
}

TEST_CASE("all logical processors of a TDX platform report the same leaf 14H (REG-137)") {
    CHECK_TWICE([](auto value) {
        auto const of = value(preset::ice_lake_u);
        auto const with = [&](auto change) {
            cpu::capabilities all[] = {of, of, of};
            change(all[2]);
            auto const last = tdx::broken_rule(all, 3);
            cpu::capabilities const moved[] = {all[2], of, of};
            return last == tdx::broken_rule(moved, 3) && tdx::broken_rule(all, 2) == rule::none
                       ? last
                       : rule::REG_001;
        };
        using caps = cpu::capabilities;
        return with([](caps&) {}) == rule::none && tdx::broken_rule(&of, 0) == rule::none &&
               with([](caps& it) { it.leaf_14_0_eax.raw ^= 2; }) == rule::REG_137 &&
               with([](caps& it) { it.leaf_14_0_ebx.raw ^= 0x40; }) == rule::REG_137 &&
               with([](caps& it) { it.leaf_14_0_ecx.raw ^= 0x8000'0000; }) == rule::REG_137 &&
               with([](caps& it) { it.leaf_14_1_eax.raw ^= 1; }) == rule::REG_137 &&
               with([](caps& it) { it.leaf_14_1_ebx.raw ^= 1; }) == rule::REG_137 &&
               with([](caps& it) { it.leaf_14_1_ecx.raw ^= 1; }) == rule::REG_137 &&
               with([](caps& it) { it.leaf_01_eax.raw ^= 1; }) == rule::none;
    });
    CHECK_TWICE([](auto value) {  // the module knows sub-leaf 1, and no other
        auto of = preset::ice_lake_u;
        auto const with = [&](uint32_t max_subleaf) {
            of.leaf_14_0_eax = {value(max_subleaf)};
            cpu::capabilities const all[] = {of, of};
            return tdx::broken_rule(all, 2) == tdx::broken_rule(all, 1) ? tdx::broken_rule(all, 1)
                                                                        : rule::REG_001;
        };
        return with(1) == rule::none && with(0) == rule::REG_137 && with(2) == rule::REG_137;
    });
    CHECK_TWICE([](auto value) {  // so no hybrid part is a platform
        cpu::capabilities const cores[] = {value(preset::alder_lake_p), preset::alder_lake_e};
        return tdx::broken_rule(cores, 2) == rule::REG_137;
    });
}

TEST_CASE("a return from a TD with Intel PT leaves the host's MSRs initial (REG-138)") {
    CHECK_TWICE([](auto value) {
        access::msr_state host;
        host.ctl = {value(uint64_t{0x2109})};
        host.status = {7};
        host.output.base = {0x1000};
        host.output.mask_ptrs = {0xFFFF};
        host.cr3_match = {0x5000};
        host.addr[0] = {{1}, {2}};
        host.addr[1] = {{3}, {4}};
        host.addr[2] = {{5}, {6}};
        host.xss = {0x100};
        host.in_vmx_operation = true;
        access::msr_state expected;
        expected.addr[2] = {{5}, {6}};
        expected.xss = {0x100};
        expected.in_vmx_operation = true;
        return tdx::after_td_exit({0x100}, host) == expected &&
               tdx::after_td_exit({~uint64_t{0x100}}, host) == host;
    });
}

TEST_CASE("a debugger may not write the XSAVE header and CTL of a TD's image (REG-139)") {
    CHECK_TWICE([](auto value) {
        for (size_t offset = 0; offset < 1024; offset += 8) {
            bool const header = offset >= 512 && offset < 576;
            for (size_t pt = 576; pt <= 832; pt += 256) {
                bool const ctl = offset == pt;
                auto const with = tdx::broken_rule_of_debug_write({value(uint64_t{0x100})}, offset,
                                                                  pt);
                auto const none = tdx::broken_rule_of_debug_write({value(uint64_t{0x2EFF})}, offset,
                                                                  pt);
                if ((with == rule::REG_139) != (header || ctl) ||
                    (none == rule::REG_139) != header ||
                    (with != rule::none && with != rule::REG_139)) {
                    return false;
                }
            }
        }
        return tdx::broken_rule_of_debug_write({0x100}, 583, 576) == rule::REG_139;
    });
}
