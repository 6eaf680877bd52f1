// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/msr_write_sources.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::msr_state;
using access::refusal;
using access::msr_write_source;
namespace preset = cpu::preset;

TEST_CASE("an illegal value raises #GP, fails a VM entry, or causes a VMX abort (REG-010)") {
    CHECK_TWICE([](auto value) {
        struct {
            msr_write_source source;
            refusal expected;
        } const rows[] = {{msr_write_source::wrmsr, refusal::general_protection},
                          {msr_write_source::xrstors, refusal::general_protection},
                          {msr_write_source::vm_entry_msr_load_list, refusal::vm_entry_fails},
                          {msr_write_source::vm_exit_msr_load_list, refusal::vmx_abort}};
        msr_state const cold{};
        for (auto const& [source, expected] : rows) {
            auto const refused = access::check_write_from(value(source), preset::P_SKL, cold, 0x570,
                                                          value(uint64_t{0x4'0000}));
            auto const taken = access::check_write_from(source, preset::P_SKL, cold, 0x570, 0x2109);
            auto const other = access::check_write_from(source, preset::P_SKL, cold, 0x588, 1);
            if (access::refusal_of(value(source)) != expected || refused ||
                refused.refusal != expected || refused.verdict.broken != rule::REG_044 || !taken ||
                taken.refusal != refusal::none || other || other.refusal != refusal::none) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("VM entry fails with exit reason 34 and bit 31 (REG-010)") {
    CHECK(access::exit_reason_of_msr_load_failure == 0x8000'0022);
}

TEST_CASE("every source applies the checks of WRMSR to the current state (REG-010)") {
    CHECK_TWICE([](auto value) {
        msr_state now;
        now.ctl = {0x2109};
        auto const base = access::check_write_from(msr_write_source::vm_entry_msr_load_list,
                                                   preset::P_SKL, now, 0x560,
                                                   value(uint64_t{0x1000}));
        now.ctl = {0};
        now.in_vmx_operation = true;
        auto const ctl = access::check_write_from(msr_write_source::vm_exit_msr_load_list,
                                                  preset::P_BDW, now, 0x570,
                                                  value(uint64_t{0x2108}));
        auto const older = access::check_write_from(
            msr_write_source::vm_exit_msr_load_list, preset::P_BDW, now, 0x570,
            value(uint64_t{0x2108}), {.only_enabling_faults_in_vmx = true});
        return base.verdict.broken == rule::REG_004 && base.refusal == refusal::vm_entry_fails &&
               ctl.verdict.broken == rule::REG_121 && ctl.refusal == refusal::vmx_abort && older;
    });
}
