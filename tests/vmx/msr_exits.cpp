// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/msr_exits.hpp>

#include <support/a_guest.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using access::ia32_rtit_status;
using test::a_guest;
using test::gp;
using vmx::exit_action;
using vmx::guest_pt;

TEST_CASE("an intercepted write obeys the capabilities that the guest sees (PRG-173)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::ice_lake_u;
        caps.leaf_14_1_eax = caps.leaf_14_1_eax.with(reg::cpuid_14h_1_eax::RANGECNT{1});
        caps.leaf_14_0_ebx = caps.leaf_14_0_ebx.with(reg::cpuid_14h_0_ebx::MTC{false});
        guest_pt guest = a_guest(caps);
        auto const write = [&](uint32_t index, uint64_t to) {
            return on_wrmsr(guest, index, value(to));
        };
        return write(0x570, 0x2205) == gp(rule::REG_030) && guest.msrs.ctl.raw == 0 &&
               write(0x582, 0) == gp(rule::REG_014) && write(0x580, 0x1234) &&
               guest.msrs.addr[0].a.raw == 0x1234 && write(0x560, 0x1040) == gp(rule::REG_070) &&
               write(0x561, 0) && guest.msrs.output.mask_ptrs.raw == 0x7F;
    });
}

TEST_CASE("writes of other MSRs fault while the guest's TraceEn is 1, and CTL keeps its other bits "
          "(PRG-173, REG-004, REG-021)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        bool const on = on_wrmsr(guest, 0x570, value(uint64_t{0x2109})) ==
                        vmx::exit_answer{.trace_en_changed = true};
        bool const refused = on_wrmsr(guest, 0x571, 0) == gp(rule::REG_004) &&
                             on_wrmsr(guest, 0x570, 0x2509) == gp(rule::REG_021) &&
                             guest.msrs.ctl.raw == 0x2109 && guest.starts;
        bool const off = on_wrmsr(guest, 0x570, value(uint64_t{0x2108})) ==
                             vmx::exit_answer{.trace_en_changed = true} &&
                         !guest.starts;
        return on && refused && off && on_wrmsr(guest, 0x571, value(uint64_t{0x10})) &&
               guest.msrs.status.get<ia32_rtit_status::Error>();
    });
}

TEST_CASE("what enabling does is left to the processor (PRG-173, OUT-086)") {
    CHECK_TWICE([](auto value) {
        // PendPSB and PendToPAPMI, and a TraceStop range around the next instruction.
        guest_pt guest = a_guest(preset::P_ATM);
        (void)on_wrmsr(guest, 0x571, value(uint64_t{0xC0}));
        (void)on_wrmsr(guest, 0x581, 0xFFFF);
        bool const done = static_cast<bool>(
            on_wrmsr(guest, 0x570, value(uint64_t{0x0100'0002'0000'2109}), {.ip = 0x1000}));
        // Only TriggerEn, which software cannot write, is as after the write.
        return done && guest.msrs.status.raw == 0xC4 && guest.starts && !guest.pmi_pending &&
               guest.msrs.perf_global_status.raw == 0;
    });
}

TEST_CASE(
    "an intercepted read returns the guest's value, and faults for an MSR that the guest does "
    "not have (PRG-172)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x572, value(uint64_t{0x5000}));
        return on_rdmsr(guest, 0x572).value == 0x5000 && on_rdmsr(guest, 0x561).value == 0x7F &&
               on_rdmsr(guest, 0x584) == gp(rule::REG_014) &&
               on_rdmsr(guest, 0x570, 3) == gp(rule::REG_002) &&
               on_rdmsr(a_guest(preset::P_NONE), 0x570) == gp(rule::REG_001) &&
               !on_rdmsr(guest, 0x572).trace_en_changed &&
               on_rdmsr(guest, 0x38E).what == exit_action::not_pt &&
               on_wrmsr(guest, 0x38E, 0).what == exit_action::not_pt;
    });
}

TEST_CASE("the guest resets and sets Trace_ToPA_PMI by 390H and 391H (PRG-177, REG-203, REG-204)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        auto const write = [&](uint32_t index, uint64_t to) {
            return on_global_status_write(guest, value(index), value(to));
        };
        constexpr uint64_t bit = uint64_t{1} << 55;
        bool right = write(0x391, ~bit) && guest.msrs.perf_global_status.raw == 0;
        right = right && write(0x391, ~uint64_t{0}) && guest.msrs.perf_global_status.raw == bit &&
                !guest.pmi_pending;
        right = right && write(0x390, ~bit) && guest.msrs.perf_global_status.raw == bit;
        right = right && write(0x390, bit) && guest.msrs.perf_global_status.raw == 0;
        right = right && write(0x38E, bit).what == exit_action::not_pt;
        // Without ToPA output the bit does not exist.
        guest.caps.leaf_14_0_ecx = guest.caps.leaf_14_0_ecx.with(
            reg::cpuid_14h_0_ecx::TOPAOUT{false});
        return right && write(0x391, bit) == gp(rule::REG_204) &&
               write(0x390, bit) == gp(rule::REG_204) && write(0x391, ~bit) &&
               guest.msrs.perf_global_status.raw == 0;
    });
}

TEST_CASE("XSAVES and XRSTORS of a guest save, clear and load its MSRs (REG-142..145)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x560, 0x3000);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        auto const image = on_xsaves(guest);
        bool const saved = image.get<access::xsave_pt_state::IA32_RTIT_CTL>().raw == 0x2109 &&
                           !guest.trace_en() && !guest.starts;
        (void)on_wrmsr(guest, 0x560, 0x4000);
        bool const loaded = on_xrstors(guest, value(image)) ==
                                vmx::exit_answer{.trace_en_changed = true} &&
                            guest.msrs.ctl.raw == 0x2109 && guest.starts &&
                            guest.msrs.output.base.raw == 0x3000;
        auto illegal = image;
        illegal.quadwords[0] = value(uint64_t{0x8000'0000'0000'0000});
        bool const refused = on_xrstors(guest, image) == gp(rule::REG_143) &&
                             on_wrmsr(guest, 0x570, 0) &&
                             on_xrstors(guest, illegal) == gp(rule::REG_144) &&
                             guest.msrs.ctl.raw == 0;
        illegal.quadwords[0] = 0x2108;
        return saved && loaded && refused && on_xrstors(guest, illegal) && !guest.starts;
    });
}
