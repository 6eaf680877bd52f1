// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/guest_events.hpp>

#include <ptspec/vmx/guest_image.hpp>
#include <ptspec/vmx/msr_exits.hpp>

#include <support/a_guest.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using test::a_guest;
using test::gp;
using vmx::guest_pt;

TEST_CASE("without Intel PT in VMX operation VMXON clears TraceEn, and CTL cannot be written until "
          "VMXOFF (REG-110, REG-121, PRG-160, PRG-173)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::ice_lake_u;
        caps.vmx_misc = {};
        guest_pt guest = a_guest(caps);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        vmxon(guest);
        bool const cleared = guest.msrs.ctl.raw == 0x2108 && !guest.starts &&
                             on_wrmsr(guest, 0x570, 0x2109) == gp(rule::REG_121);
        guest_pt moved = a_guest(caps);
        bool const loads = static_cast<bool>(load(moved, store(guest)));
        vmxoff(guest);
        return cleared && loads && on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
    });
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();  // may trace in VMX operation
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        vmxon(guest);
        return guest.msrs.ctl.raw == 0x2109 && guest.starts;
    });
}

TEST_CASE("an SMI clears the guest's TraceEn, and RSM restores it (REG-100..102)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        smi(guest);
        bool const in_smm = !guest.trace_en() && guest.msrs.in_smm && !guest.starts;
        guest_pt enabled = guest;
        (void)on_wrmsr(enabled, 0x570, value(uint64_t{0x2109}));
        auto const shutdown = rsm(enabled);
        auto const back = rsm(guest);
        bool const told = back.trace_en_changed && !shutdown.trace_en_changed;
        return told && in_smm && shutdown.outcome == access::rsm_outcome::shutdown &&
               shutdown.broken == rule::REG_102 && enabled.msrs.in_smm && back &&
               guest.trace_en() && guest.starts && !guest.msrs.in_smm &&
               rsm(guest).outcome == access::rsm_outcome::undefined_opcode;
    });
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x571, value(uint64_t{0x10}));
        smi(guest);
        return rsm(guest) && !guest.trace_en() && !guest.starts && guest.msrs.status.raw == 0x10;
    });
}

TEST_CASE("RSM does not give a guest a CTL that it could not write (REG-025, REG-108)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::ice_lake_u;
        caps.leaf_14_0_ecx.raw &= ~4U;  // no single-range output
        guest_pt guest = a_guest(caps);
        bool right = static_cast<bool>(on_wrmsr(guest, 0x570, 0x2105));
        smi(guest);
        right = right && on_wrmsr(guest, 0x570, value(uint64_t{0}));
        auto const shutdown = rsm(guest);
        guest_pt moved = a_guest(caps);
        return right && shutdown.outcome == access::rsm_outcome::shutdown &&
               shutdown.broken == rule::REG_025 && !shutdown.trace_en_changed &&
               guest.msrs.in_smm && !guest.trace_en() && load(moved, store(guest));
    });
}

TEST_CASE("an SMI in SMM stays pending, and an enable that waits for VM entry stays (REG-100)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        smi(guest);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        smi(guest);
        return guest.trace_en() && guest.starts && guest.msrs.in_smm;
    });
}

TEST_CASE("a reset of the guest clears what waits for it (REG-090..093)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x580, 0x5000);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        guest.pmi_pending = true;
        warm_reset(guest);
        bool const warm = guest.msrs.ctl.raw == 0x2108 && !guest.starts && !take_pmi(guest) &&
                          guest.msrs.addr[0].a.raw == 0x5000;
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        guest.pmi_pending = true;
        cold_reset(guest);
        return warm && guest.msrs == access::msr_state{} && !guest.starts && !guest.pmi_pending;
    });
}

TEST_CASE("an interrupt is injected once (PRG-177)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        guest.pmi_pending = value(true);
        return take_pmi(guest) && !take_pmi(guest);
    });
}
