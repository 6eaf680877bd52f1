// SPDX-License-Identifier: BSL-1.0

// How a hypervisor emulates the Intel PT MSRs of a guest: for each WRMSR it injects #GP(0) and logs
// the rule that was broken, or it applies the effects of the write.

#include "standard_output.hpp"

#include <ptspec/access/effect.hpp>
#include <ptspec/registers.hpp>

#include <cstdio>

namespace {

using namespace ptspec;

// Whether a value is legal for a processor, in any state. Skylake does not support PTWRITE.
using ctl = reg::ia32_rtit_ctl;
constexpr auto start = ctl{}.with(ctl::TraceEn{true}, ctl::User{true}, ctl::ToPA{true},
                                  ctl::BranchEn{true});
static_assert(access::is_legal(cpu::preset::skylake_x, start));
static_assert(!access::is_legal(cpu::preset::skylake_x, start.with(ctl::PTWEn{true})));

/// The part of a virtual processor that this handler uses.
struct virtual_cpu {
    cpu::capabilities cpuid;  ///< the CPUID leaves that the guest sees
    access::msr_state pt{};
    uint64_t rip = 0;
    uint32_t eax = 0;
    uint32_t ecx = 0;
    uint32_t edx = 0;
    bool inject_gp = false;
    bool inject_pmi = false;
};

/// Handles a VM exit caused by WRMSR. Returns false when the MSR belongs to another handler.
template <class Log>
constexpr auto on_wrmsr_exit(virtual_cpu& guest, Log&& log) noexcept -> bool {
    if (!access::is_pt_msr(guest.ecx)) { return false; }
    uint64_t const value = uint64_t{guest.edx} << 32 | guest.eax;
    auto const done = access::effect_of_write(guest.cpuid, guest.pt, guest.ecx, value);
    if (!done) {
        guest.inject_gp = true;  // no state changes, and RIP still points to WRMSR
        log(guest.ecx, value, done.verdict.broken);
        return true;
    }
    guest.pt = done.state;
    guest.inject_pmi = guest.inject_pmi || done.pmi;
    guest.rip += 2;  // the length of WRMSR
    return true;
}

// The same handler in a constant expression: a guest may not change CTL while TraceEn is 1.
static_assert([] {
    virtual_cpu guest{.cpuid = cpu::preset::skylake_x, .eax = 0x2109, .ecx = 0x570};
    rule broken = rule::none;
    auto const log = [&](uint32_t, uint64_t, rule why) { broken = why; };
    bool const enabled = on_wrmsr_exit(guest, log) && !guest.inject_gp && guest.rip == 2;
    guest.eax = 0x210D;
    return enabled && on_wrmsr_exit(guest, log) && guest.inject_gp && guest.rip == 2 &&
           guest.pt.ctl.raw == 0x2109 && broken == rule::REG_021;
}());

/// Executes one WRMSR of the guest and prints the verdict.
void wrmsr(virtual_cpu& guest, uint32_t index, uint64_t value) {
    guest.ecx = index;
    guest.edx = static_cast<uint32_t>(value >> 32);
    guest.eax = static_cast<uint32_t>(value);
    guest.inject_gp = false;
    std::printf("WRMSR %3X = %-12llX ", unsigned{index}, static_cast<unsigned long long>(value));
    bool const ours = on_wrmsr_exit(guest, [](uint32_t, uint64_t, rule why) {
        std::printf("#GP(0), %s: %s\n", rule_id{why}.letters, describe(why).data());
    });
    if (!ours) {
        std::printf("for another handler\n");
    } else if (!guest.inject_gp) {
        std::printf("done, TraceEn=%d\n", guest.pt.ctl.get<ctl::TraceEn>());
    }
}

}  // namespace

auto main() -> int {
    virtual_cpu guest{.cpuid = cpu::preset::skylake_x};
    wrmsr(guest, 0x10, 0);                  // IA32_TIME_STAMP_COUNTER
    wrmsr(guest, 0x560, 0x1'0000'0000);     // the ToPA table
    wrmsr(guest, 0x560, 0x1'0000'0040);     // not a multiple of 128
    wrmsr(guest, 0x580, 0x8000'0000'0000);  // the start of the range is not canonical
    wrmsr(guest, 0x570, 0x1000);            // PTWEn, which Skylake does not support
    wrmsr(guest, 0x570, 0x2109);            // BranchEn, ToPA, User, TraceEn
    wrmsr(guest, 0x571, 0);                 // STATUS, while tracing
    wrmsr(guest, 0x570, 0x210D);            // also OS, while tracing
    wrmsr(guest, 0x570, 0x210C);            // also OS, and TraceEn cleared
    return guest.rip == 6 && guest.pt.ctl.raw == 0x210C ? 0 : 1;
}
