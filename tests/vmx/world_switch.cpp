// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/world_switch.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/vmx/insert_pip.hpp>
#include <ptspec/edit/replace_addresses.hpp>
#include <ptspec/vmx/controls.hpp>
#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/guest_image.hpp>

#include <support/check_twice.hpp>
#include <support/virtual_machine.hpp>

#include <string>
#include <vector>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
namespace action = ptspec::engine::action;
using access::ia32_rtit_ctl;
using access::ia32_rtit_status;
using vmx::guest_pt;
using vmx::host_pt;

namespace {

/// The MSRs of a processor as stored words. An access of `faulty`, and a read of `unreadable`,
/// faults.
struct msr_file {
    uint64_t words[0x28] = {};  ///< from 560H on
    uint64_t global_status = 0;
    uint32_t faulty = 0;
    uint32_t unreadable = 0;

    constexpr auto read(uint32_t index) noexcept -> port_value {
        if (index == faulty || index == unreadable) { return {}; }
        if (index == 0x38E) { return {true, global_status}; }
        return {index >= 0x560 && index < 0x588, words[(index - 0x560) % 0x28]};
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        if (index == faulty) { return false; }
        if (index == 0x390) {
            global_status &= ~value;
            return true;
        }
        if (index < 0x560 || index >= 0x588) { return false; }
        // TraceEn is 1: only CTL may be written.
        if ((words[0x10] & 1) != 0 && index != 0x570) { return false; }
        words[index - 0x560] = value;
        return true;
    }
    [[nodiscard]] constexpr auto at(uint32_t index) const noexcept -> uint64_t {
        return words[index - 0x560];
    }
};

/// Two ranges, as CAP-A.
constexpr auto tracing_guest(uint64_t ctl) -> guest_pt {
    guest_pt guest;
    guest.caps = preset::ice_lake_u;
    for (uint32_t const index : {0x560U, 0x561U, 0x571U, 0x572U, 0x580U, 0x581U, 0x582U, 0x583U}) {
        access::set_raw(guest.msrs, index, uint64_t{index} << 12);
    }
    guest.msrs.status = {uint64_t{0x571} << 32};
    guest.msrs.ctl = {ctl};
    guest.starts = true;
    return guest;
}
/// The controls of the VMCS of that guest; with shadow tables.
constexpr auto ept = vmx::with_guest_pt(preset::ice_lake_u, {.enable_ept = true},
                                        vmx::guest_output::guest_physical);
constexpr auto shadowed = vmx::with_guest_pt(preset::ice_lake_u, {.enable_ept = true},
                                             vmx::guest_output::shadow);

constexpr auto host_file(uint64_t ctl) -> msr_file {
    msr_file host;
    for (uint32_t index = 0x560; index < 0x588; ++index) { host.words[index - 0x560] = index; }
    host.words[0x10] = ctl;
    return host;
}

/// The accesses in the notation of the catalogue.
template <class Log>
auto text_of(Log const& log) -> std::string {
    std::string got;
    for (auto const& one : log) {
        if (!got.empty()) { got += "; "; }
        simulate::print_access(one, [&](text part) { got.append(part.characters, part.length); });
    }
    return got;
}

}  // namespace

TEST_CASE(
    "PC-31, 32: the host's trace is stopped and saved before VM entry, the guest's is loaded, "
    "and after VM exit both ways back (PRG-167,170,171)") {
    msr_file cpu = host_file(0x250D);
    simulate::recording_port log{cpu};
    guest_pt guest = tracing_guest(0xE70D);
    host_pt host;
    auto const entry = enter(guest, ept, host, log);
    CHECK(entry);
    CHECK(entry.ctl.raw == 0xE70D);
    CHECK(entry.trace == driver::trace_state::disabled);
    CHECK(text_of(log) ==
          "RDMSR(570)->250D; WRMSR(570,0); RDMSR(571)->571; RDMSR(560)->560; RDMSR(561)->561; "
          "RDMSR(572)->572; RDMSR(580)->580; RDMSR(581)->581; RDMSR(582)->582; RDMSR(583)->583; "
          "WRMSR(571,0000057100000000); WRMSR(560,560000); WRMSR(561,56107F); WRMSR(572,572000); "
          "WRMSR(580,580000); WRMSR(581,581000); WRMSR(582,582000); WRMSR(583,583000)");
    log.clear();
    cpu.words[0x11] = 0x0000'0123'0000'0010;  // STATUS and the position after a while
    cpu.words[0x01] = 0x0000'0456'0000'017F;
    CHECK(leave(guest, host, log).trace == driver::trace_state::enabled);
    CHECK(text_of(log) ==
          "RDMSR(571)->0000012300000010; RDMSR(560)->560000; RDMSR(561)->000004560000017F; "
          "RDMSR(572)->572000; RDMSR(580)->580000; RDMSR(581)->581000; RDMSR(582)->582000; "
          "RDMSR(583)->583000; "
          "WRMSR(571,571); WRMSR(560,560); WRMSR(561,57F); WRMSR(572,572); WRMSR(580,580); "
          "WRMSR(581,581); WRMSR(582,582); WRMSR(583,583); WRMSR(570,250D)");
    CHECK(guest.msrs.status.raw == 0x0000'0123'0000'0010);
    CHECK(guest.msrs.output.mask_ptrs.raw == 0x0000'0456'0000'017F);
    CHECK(guest.msrs.ctl.raw == 0xE70D);
    CHECK(!guest.starts);
}

TEST_CASE("only the MSRs that the guest has are exchanged (PRG-170,172)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        guest_pt guest = tracing_guest(0x2109);
        guest.caps.leaf_14_1_eax = guest.caps.leaf_14_1_eax.with(reg::cpuid_14h_1_eax::RANGECNT{1});
        guest.caps.leaf_14_0_ebx = guest.caps.leaf_14_0_ebx.with(
            reg::cpuid_14h_0_ebx::CR3FILTER{value(false)});
        guest.msrs.addr[1] = {};
        guest.msrs.cr3_match = {};
        host_pt host;
        bool const entered = static_cast<bool>(enter(guest, ept, host, cpu));
        return entered && cpu.at(0x581) == 0x581000 && cpu.at(0x582) == 0x582 &&
               cpu.at(0x572) == 0x572 && leave(guest, host, cpu) && cpu.at(0x581) == 0x581 &&
               cpu.at(0x570) == 0;
    });
}

TEST_CASE("VM entry is refused if control 24 differs from how the guest's output is translated "
          "(REG-128, PRG-180, PRG-184)") {
    CHECK_TWICE([](auto value) {
        bool right = true;
        for (bool const shadows : {false, true}) {
            msr_file cpu = host_file(0x250D);
            guest_pt guest = tracing_guest(value(uint64_t{0x2109}));
            guest.output = shadows ? vmx::guest_output::shadow : vmx::guest_output::guest_physical;
            guest.shadow = vmx::shadow_use::placed;
            host_pt host;
            auto const entry = enter(guest, shadows ? ept : shadowed, host, cpu);
            right = right && !entry && entry.broken == rule::REG_128 && !entry.needs_shadow &&
                    cpu.at(0x570) == 0x250D && cpu.at(0x560) == 0x560 && leave(guest, host, cpu) &&
                    cpu.at(0x560) == 0x560;
            // Without output there is nothing to translate.
            guest.msrs.ctl = {0x2108};
            right = right && enter(guest, shadows ? ept : shadowed, host, cpu);
        }
        return right;
    });
}

TEST_CASE("VM entry is refused if the guest has values that its capabilities do not allow "
          "(PRG-173, REG-031, REG-037, REG-055, REG-070)") {
    CHECK_TWICE([](auto value) {
        auto const refusal = [&](auto const& narrow, uint64_t ctl) {
            msr_file cpu = host_file(0x250D);
            guest_pt guest = tracing_guest(value(ctl));
            narrow(guest.caps);
            host_pt host;
            auto const entry = enter(guest, ept, host, cpu);
            return cpu.at(0x570) == 0x250D && cpu.at(0x560) == 0x560 ? entry.broken : rule::none;
        };
        using ebx = reg::cpuid_14h_0_ebx;
        auto const without = [](auto flag) {
            return [=](cpu::capabilities& caps) {
                caps.leaf_14_0_ebx = caps.leaf_14_0_ebx.with(flag);
            };
        };
        auto const one_range = [](cpu::capabilities& caps) {
            caps.leaf_14_1_eax = caps.leaf_14_1_eax.with(reg::cpuid_14h_1_eax::RANGECNT{1});
        };
        auto const no_range = [](cpu::capabilities& caps) {
            caps.leaf_14_1_eax = caps.leaf_14_1_eax.with(reg::cpuid_14h_1_eax::RANGECNT{0});
        };
        auto const narrow = [](cpu::capabilities& caps) { caps.leaf_80000008_eax = {0x3014}; };
        uint64_t const filters = uint64_t{1} << 32;
        return refusal(without(ebx::CR3FILTER{false}), 0x2108 | 1 << 7) == rule::REG_031 &&
               refusal(without(ebx::CR3FILTER{false}), 0x2109) == rule::REG_013 &&
               refusal(without(ebx::MTC{false}), 0x2308) == rule::REG_030 &&
               refusal(without(ebx::CPSB_CAM{false}), 0x2109) == rule::REG_055 &&
               refusal(no_range, 0x2109 | filters) == rule::REG_037 &&
               refusal(one_range, 0x2109) == rule::REG_014 &&
               refusal(narrow, 0x2109) == rule::REG_070;
    });
}

TEST_CASE("L2 of a guest that moved writes its trace to the guest's memory alone (PRG-180,184)") {
    // L1 traces, and runs L2 without guest-physical output: L2 runs with shadow tables.
    auto const& caps = preset::ice_lake_u;
    auto const never = [] { return std::uint64_t{0}; };
    using machine = test::virtual_machine;
    machine first{caps, caps, vmx::guest_output::guest_physical, never};
    machine second{caps, caps, vmx::guest_output::guest_physical, never};
    CHECK(on_wrmsr(first.guest, 0x560, 0x4000));
    CHECK(on_wrmsr(first.guest, 0x561, 0xFFF));
    CHECK(on_wrmsr(first.guest, 0x570, 0x2005));
    vmx::nested_vmcs vmcs{};
    CHECK(enter_nested(first.guest, vmcs));
    CHECK(load(second.guest, store(first.guest)));
    for (machine* const one : {&first, &second}) {
        host_pt host;
        // A VMM that does not know that L2 runs.
        CHECK(enter(one->guest, one->own_controls, host, one->processor).broken == rule::REG_128);
        CHECK(one->guest.needs_shadow());
        CHECK(one->run(0x2000, {}));
        CHECK(!one->memory.uses_ept);
        (void)one->processor.on(action::indirect_jump{0x3000});
        CHECK(one->exit(0x3000));
        CHECK(one->memory.violations == 0);
        CHECK(one->memory.guest_byte(0x4000) == 0x02);
        CHECK(leave_nested(one->guest, vmcs));
        CHECK(one->run(0x3000, {}));
        CHECK(one->memory.uses_ept);
        (void)one->processor.on(action::indirect_jump{0x5000});
        CHECK(one->exit(0x5000));
        CHECK(one->memory.violations == 0);
    }
}

TEST_CASE("CVE-2024-53135: the host's TraceEn is cleared, also for a guest that does not trace "
          "(REG-130, PRG-171)") {
    CHECK_TWICE([](auto value) {
        vmx::controls set{.enable_ept = true};
        set = vmx::with_guest_pt(preset::ice_lake_u, set, vmx::guest_output::guest_physical);
        msr_file cpu = host_file(0x250D);
        bool const fails_without = vmx::broken_rule(preset::ice_lake_u, set, {cpu.at(0x570)}) ==
                                   rule::REG_130;
        guest_pt guest = tracing_guest(value(uint64_t{0x250C}));
        host_pt host;
        auto const entry = enter(guest, ept, host, cpu);
        bool const right = entry && !host.is_saved && entry.ctl.raw == 0x250C &&
                           cpu.at(0x580) == 0x580 &&
                           vmx::broken_rule(preset::ice_lake_u, set, {cpu.at(0x570)}) == rule::none;
        return fails_without && right && leave(guest, host, cpu) && cpu.at(0x570) == 0x250D;
    });
}

TEST_CASE("a fault of any access refuses VM entry, and leaves the host as it was (PRG-170,171)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t const index :
             {0x570U, 0x571U, 0x560U, 0x561U, 0x572U, 0x580U, 0x581U, 0x582U, 0x583U}) {
            msr_file cpu = host_file(0x250D);
            guest_pt guest = tracing_guest(0x2109);
            host_pt host;
            cpu.faulty = value(index);
            auto const entry = enter(guest, ept, host, cpu);
            bool const traces = (cpu.at(0x570) & 1) != 0;
            if (entry || entry.fault.index != index ||
                entry.trace != driver::trace_state::unknown) {
                return false;
            }
            cpu.faulty = 0;
            if (!traces && !cancel(guest, host, cpu)) { return false; }
            msr_file expected = host_file(0x250D);
            for (uint32_t i = 0x560; i < 0x588; ++i) {
                if (cpu.at(i) != expected.at(i) && i != 0x561) { return false; }
            }
            if (!guest.starts || guest.msrs.status.raw != uint64_t{0x571} << 32) { return false; }
        }
        return true;
    });
    CHECK_TWICE([](auto value) {  // the same on the way back
        msr_file cpu = host_file(0x250D);
        guest_pt guest = tracing_guest(0x2109);
        host_pt host;
        bool const entered = static_cast<bool>(enter(guest, ept, host, cpu));
        cpu.faulty = value(0x582U);
        auto const left = leave(guest, host, cpu);
        bool const reported = entered && !left && left.fault.index == 0x582 &&
                              left.trace == driver::trace_state::unknown &&
                              (cpu.at(0x570) & 1) == 0;
        // The values of the host are not lost.
        cpu.faulty = 0;
        cpu.words[0x21] = 0;
        return reported && cancel(guest, host, cpu) && cpu.at(0x570) == 0x250D &&
               cpu.at(0x581) == 0x581 && cpu.at(0x583) == 0x583 && guest.msrs.status.raw != 0x571;
    });
}

TEST_CASE("if the guest's values cannot be read the host's trace goes on (PRG-170)") {
    CHECK_TWICE([](auto value) {
        for (bool const shadows : {false, true}) {
            msr_file cpu = host_file(0x250D);
            guest_pt guest = tracing_guest(0x2109);
            if (shadows) { guest.output = vmx::guest_output::shadow; }
            guest.shadow = vmx::shadow_use::placed;
            auto const before = guest.msrs;
            host_pt host;
            bool const entered = static_cast<bool>(
                enter(guest, shadows ? shadowed : ept, host, cpu));
            cpu.unreadable = value(0x580U);
            driver::procedure_result left;
            if (shadows) {
                left = leave(guest, vmx::shadow{}, host, cpu);
            } else {
                left = leave(guest, host, cpu);
            }
            if (!entered || left.fault.index != 0x580 ||
                left.trace != driver::trace_state::enabled || cpu.at(0x570) != 0x250D ||
                cpu.at(0x583) != 0x583 || guest.msrs != before) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("an interrupt that is preserved is raised by the processor when the guest enables, and "
          "not again at each VM entry (OUT-086, PRG-177)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        guest_pt guest = tracing_guest(0x0100'0000'0000'2109);
        guest.caps = preset::P_ATM;
        guest.msrs.status = {value(uint64_t{0x80})};
        host_pt host;
        bool right = static_cast<bool>(enter(guest, ept, host, cpu));
        right = right && cpu.at(0x571) == 0x80 && !guest.hides_pend_topa_pmi;
        right = right && leave(guest, host, cpu);
        right = right && enter(guest, ept, host, cpu) && cpu.at(0x571) == 0x4 &&
                access_of_guest(guest, 0x571) == vmx::guest_access::intercept;
        cpu.words[0x11] = 0x40;
        right = right && leave(guest, host, cpu) && guest.msrs.status.raw == 0xC4 &&
                !guest.hides_pend_topa_pmi &&
                access_of_guest(guest, 0x571) == vmx::guest_access::pass_through;
        // Without PMI preservation, or without a pending interrupt, nothing is hidden.
        guest.msrs.ctl = {0x2109};
        right = right && enter(guest, ept, host, cpu) && cpu.at(0x571) == 0xC4;
        right = right && leave(guest, host, cpu);
        guest.msrs.ctl = {0x0100'0000'0000'2109};
        guest.msrs.status = {0x40};
        return right && enter(guest, ept, host, cpu) && cpu.at(0x571) == 0x40 &&
               access_of_guest(guest, 0x571) == vmx::guest_access::pass_through;
    });
}

TEST_CASE("a ToPA PMI of the guest is taken from the processor and injected once (PRG-177)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        guest_pt guest = tracing_guest(0x2109);
        vmx::host_pt host{.is_loaded = value(true)};
        cpu.global_status = value(uint64_t{1} << 54);
        bool const other = take_topa_pmi(guest, host, cpu).is_pending || guest.pmi_pending;
        cpu.global_status = value(uint64_t{3} << 54);
        bool const taken = take_topa_pmi(guest, host, cpu).is_pending &&
                           cpu.global_status == uint64_t{1} << 54 &&
                           guest.msrs.perf_global_status.raw == uint64_t{1} << 55;
        bool const once = !take_topa_pmi(guest, host, cpu).is_pending && take_pmi(guest) &&
                          !take_pmi(guest);
        cpu.faulty = 0x38E;
        cpu.global_status = uint64_t{1} << 55;
        auto const faulted = take_topa_pmi(guest, host, cpu);
        bool const reported = !faulted && faulted.fault.index == 0x38E && !faulted.is_pending;
        cpu.faulty = 0x390;
        auto const not_reset = take_topa_pmi(guest, host, cpu);
        return !other && taken && once && reported && not_reset.is_pending && !not_reset &&
               not_reset.fault.index == 0x390;
    });
}

TEST_CASE("a ToPA PMI of the host is not the guest's if the guest does not trace (PRG-177)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        cpu.global_status = value(uint64_t{1} << 55);
        guest_pt guest{.caps = preset::ice_lake_u};
        vmx::host_pt host;
        bool right = enter(guest, ept, host, cpu) && vmx::find_topa_pmi(cpu).is_pending;
        auto const taken = take_topa_pmi(guest, host, cpu);
        return right && taken && !taken.is_pending && !guest.pmi_pending &&
               cpu.global_status == uint64_t{1} << 55;
    });
}

TEST_CASE("no ToPA PMI is of a guest without ToPA output (REG-066, REG-204, PRG-177)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        guest_pt guest = tracing_guest(0x0100'0000'0000'2005);
        guest.caps = preset::P_ATM;
        guest.caps.leaf_14_0_ecx.raw &= ~3U;
        guest.msrs.output = {{0x5000}, {0xFFF}};
        guest.msrs.status = {value(uint64_t{0x84})};
        vmx::host_pt host;
        // The processor, which has ToPA, would raise one for PendToPAPMI.
        bool right = enter(guest, ept, host, cpu) && cpu.at(0x571) == 0x4 &&
                     access_of_guest(guest, 0x571) == vmx::guest_access::intercept;
        cpu.global_status = value(uint64_t{1} << 55);  // of the host
        auto const taken = take_topa_pmi(guest, host, cpu);
        guest_pt moved = guest;
        return right && taken && !taken.is_pending && !guest.pmi_pending &&
               cpu.global_status == uint64_t{1} << 55 && leave(guest, host, cpu) &&
               guest.msrs.status.raw == 0x84 && load(moved, store(guest));
    });
}

TEST_CASE("leaving a shadow went well if nothing faulted and the position is known") {
    CHECK_TWICE([](auto value) {
        vmx::shadow_exit good, lost, faulted;
        lost.is_placed = value(false);
        faulted.fault.happened = value(true);
        return good && !lost && !faulted;
    });
}

TEST_CASE("with shadow tables the processor gets their position, and CTL.ToPA (PRG-184,185)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        guest_pt guest = tracing_guest(value(uint64_t{0x2009}));  // a single range
        guest.output = vmx::guest_output::shadow;
        guest.host_output = {{0x7'0000'0000}, {0x1'0000'00FF}};
        guest.shadow = vmx::shadow_use::placed;
        host_pt host;
        auto const entry = enter(guest, shadowed, host, cpu);
        bool const loaded = entry && entry.ctl.raw == 0x2109 && cpu.at(0x560) == 0x7'0000'0000 &&
                            cpu.at(0x561) == 0x1'0000'00FF && guest.msrs.ctl.raw == 0x2009;
        cpu.words[0x01] = 0x2'0000'00FF;
        bool const left = static_cast<bool>(leave(guest, host, cpu));
        return loaded && left && guest.host_output.mask_ptrs.raw == 0x2'0000'00FF &&
               guest.msrs.output.base.raw == 0x560000 &&
               guest.msrs.output.mask_ptrs.raw == 0x56107F && guest.msrs.ctl.raw == 0x2009;
    });
    CHECK_TWICE([](auto value) {  // no shadow: nothing is done
        msr_file cpu = host_file(0x250D);
        guest_pt guest = tracing_guest(value(uint64_t{0x2109}));
        guest.output = vmx::guest_output::shadow;
        host_pt host;
        auto const entry = enter(guest, vmx::shadow{}, shadowed, host, cpu);
        bool const refused = !entry && entry.needs_shadow && cpu.at(0x570) == 0x250D;
        guest.msrs.ctl = {0x2108};
        bool const idle = enter(guest, vmx::shadow{}, shadowed, host, cpu) &&
                          leave(guest, vmx::shadow{}, host, cpu);
        // A position that is not in the shadow.
        guest.msrs.ctl = {0x2109};
        guest.shadow = vmx::shadow_use::placed;
        bool const lost = enter(guest, shadowed, host, cpu) &&
                          !leave(guest, vmx::shadow{}, host, cpu).is_placed;
        return refused && idle && lost;
    });
}

TEST_CASE(
    "with shadow paging the processor gets a CR3_MATCH of its own, and the guest reads the one "
    "that it wrote (PRG-175)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        guest_pt guest = tracing_guest(0x2189);
        guest.shadow_paging = value(true);
        guest.host_cr3_match = {0x7'1000};
        host_pt host;
        bool const loaded = enter(guest, ept, host, cpu) && cpu.at(0x572) == 0x7'1000 &&
                            access_of_guest(guest, 0x572) == vmx::guest_access::intercept &&
                            access_of_guest(guest, 0x571) == vmx::guest_access::pass_through &&
                            on_rdmsr(guest, 0x572).value == 0x572000;
        bool const left = leave(guest, host, cpu) && cpu.at(0x572) == 0x572 &&
                          guest.msrs.cr3_match.raw == 0x572000;
        guest.caps.leaf_14_0_ebx = guest.caps.leaf_14_0_ebx.with(
            reg::cpuid_14h_0_ebx::CR3FILTER{false});
        return loaded && left && access_of_guest(guest, 0x572) == vmx::guest_access::inject_gp;
    });
}

TEST_CASE("a guest with shadow paging has the trace of one without (PRG-175, GEN-028)") {
    // The guest traces the process with CR3 5000H of two. In the second run the processor has the
    // tables at 75000H and 76000H in place of those of the guest.
    std::uint64_t bytes[2] = {};
    std::vector<std::uint8_t> traces[2];
    for (bool const shadows : {false, true}) {
        std::uint64_t const real = shadows ? 0x7'0000 : 0;
        test::virtual_machine vm{preset::ice_lake_u, preset::ice_lake_u,
                                 vmx::guest_output::guest_physical, [] { return 0; }};
        vm.guest.shadow_paging = shadows;
        vm.guest.host_cr3_match = {0x7'5000};
        CHECK(on_wrmsr(vm.guest, 0x560, 0x4000));
        CHECK(on_wrmsr(vm.guest, 0x561, 0xFFF));
        CHECK(on_wrmsr(vm.guest, 0x572, 0x5000));
        CHECK(on_wrmsr(vm.guest, 0x570, 0x208D));
        for (std::uint64_t i = 0; i < 10; ++i) {
            CHECK(vm.run(0x2000, {.cr3 = real + 0x5000 + i % 2 * 0x1000}));
            (void)vm.processor.on(action::indirect_jump{0x3000 + 0x1000 * i});
            // A CR3-target value, which does not exit.
            (void)vm.processor.on(action::mov_cr3{0x3000 + 0x1000 * i, 0x3003 + 0x1000 * i,
                                                  real + 0x6000 - i % 2 * 0x1000});
            (void)vm.processor.on(action::indirect_jump{0x2000});
            CHECK(vm.exit(0x2000));
            CHECK(access::value_of(vm.guest.msrs, 0x572) == 0x5000);
        }
        bytes[shadows] =
            vm.guest.msrs.output.mask_ptrs.get<access::ia32_rtit_output_mask_ptrs::OutputOffset>();
        traces[shadows].resize(static_cast<std::size_t>(bytes[shadows]));
        for (std::size_t i = 0; i < traces[shadows].size(); ++i) {
            traces[shadows][i] = vm.memory.guest_byte(0x4000 + i);
        }
    }
    byte_window const all[] = {{traces[1].data(), traces[1].size()}};
    auto const got = edit::replace_cr3(all, [](std::uint64_t real) {
        return edit::guest_address{real == 0x7'5000 || real == 0x7'6000, real - 0x7'0000};
    });
    CHECK(got);
    CHECK(got.count == 6);  // of the PSB+, and of each write of the CR3 that is traced
    CHECK(traces[0] == traces[1]);
    CHECK(bytes[0] > 100);
}

TEST_CASE("no shadow of an earlier enable is used (PRG-184)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0);
        guest_pt guest = tracing_guest(0x2008);
        guest.output = vmx::guest_output::shadow;
        guest.msrs.ctl = {};
        guest.msrs.output.base = {0x1000};
        guest.msrs.output.mask_ptrs = {0x7F};
        // A single range of 128 bytes, which is a single range for the processor, too.
        struct page_of_guest {
            constexpr auto load(uint64_t) -> port_value { return {}; }
            constexpr auto translate(uint64_t, uint64_t) -> vmx::translation {
                return {vmx::backing::mapped, 0x7'0000'0000};
            }
        } memory;
        topa::entry entries[512] = {};
        topa::position origins[512] = {};
        vmx::shadow_page const page{0x5000, entries, origins};
        vmx::shadow of;
        host_pt host;
        bool right = static_cast<bool>(on_wrmsr(guest, 0x570, value(uint64_t{0x2009})));
        right = right && guest.needs_shadow() && !enter(guest, of, shadowed, host, cpu) &&
                begin_shadow(guest, of, guest.caps, &page, 1) == rule::none &&
                !guest.needs_shadow();
        // It is not complete. Without a shadow nothing can be entered.
        right = right && enter(guest, of, shadowed, host, cpu).needs_shadow && of.build(memory) &&
                enter(guest, ept, host, cpu).needs_shadow && cpu.at(0x560) == 0x560;
        right = right && enter(guest, of, shadowed, host, cpu) && cpu.at(0x560) == 0x7'0000'0000 &&
                leave(guest, of, host, cpu) && guest.shadow == vmx::shadow_use::placed &&
                enter(guest, of, shadowed, host, cpu) && leave(guest, of, host, cpu);
        // Disabled and enabled again, by WRMSR or by RSM.
        right = right && on_wrmsr(guest, 0x570, 0x2008) && on_wrmsr(guest, 0x570, 0x2009) &&
                enter(guest, of, shadowed, host, cpu).needs_shadow &&
                begin_shadow(guest, of, guest.caps, &page, 1) == rule::none && of.build(memory);
        smi(guest);
        return right && rsm(guest) && enter(guest, of, shadowed, host, cpu).needs_shadow;
    });
}

TEST_CASE("the guest's position is translated also if the host's trace cannot be restored "
          "(PRG-170, PRG-184)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0x250D);
        guest_pt guest = tracing_guest(0x2109);
        guest.output = vmx::guest_output::shadow;
        guest.shadow = vmx::shadow_use::placed;
        host_pt host;
        bool const entered = static_cast<bool>(enter(guest, shadowed, host, cpu));
        cpu.faulty = value(0x570U);
        auto const left = leave(guest, vmx::shadow{}, host, cpu);  // which has no position
        return entered && left.fault.index == 0x570 && !left.is_placed && !guest.starts;
    });
}

TEST_CASE("what enter did not load is not taken for the guest's (PRG-167, PRG-170)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0x250D);
        guest_pt guest = tracing_guest(0x2109);
        auto const before = guest.msrs;
        host_pt host;
        cpu.faulty = value(0x571U);
        bool const refused = !enter(guest, ept, host, cpu);
        cpu.faulty = 0;
        bool const same = leave(guest, host, cpu) && guest.msrs == before && guest.starts &&
                          cpu.at(0x560) == 0x560 && cpu.at(0x570) == 0x250D;
        // A second time, or after an entry that was refused, nothing is restored.
        cpu.words[0x10] = 0;
        cpu.words[0] = 0x7'7000;
        bool const twice = leave(guest, host, cpu) && cpu.at(0x560) == 0x7'7000;
        cpu.words[0x10] = 0x250D;
        bool const entered = enter(guest, ept, host, cpu) && leave(guest, host, cpu);
        guest.output = vmx::guest_output::shadow;
        guest.shadow = vmx::shadow_use::needed;
        // A `host_pt` of before is not used by an entry that is refused.
        auto const unused = [&](auto&& refused_enter) {
            host = {.is_saved = true, .is_loaded = true};
            auto const status = guest.msrs.status;
            return refused_enter().needs_shadow && leave(guest, host, cpu) &&
                   guest.msrs.status == status && cpu.at(0x570) == 0x250D && cpu.at(0x560) == 0x560;
        };
        cpu.words[0] = 0x560;
        bool const stale = unused([&] { return enter(guest, ept, host, cpu); }) &&
                           unused([&] { return enter(guest, vmx::shadow{}, shadowed, host, cpu); });
        return refused && same && twice && entered && stale;
    });
}

TEST_CASE("a ToPA PMI of the host that is pending is seen before VM entry (PRG-177)") {
    CHECK_TWICE([](auto value) {
        msr_file cpu = host_file(0x250D);
        guest_pt guest = tracing_guest(0x2109);
        host_pt host;
        cpu.global_status = value(uint64_t{1} << 55);
        bool const pending = enter(guest, ept, host, cpu) && vmx::find_topa_pmi(cpu).is_pending &&
                             cancel(guest, host, cpu) && cpu.at(0x570) == 0x250D && guest.starts;
        cpu.global_status = 0;
        return pending && enter(guest, ept, host, cpu) && !vmx::find_topa_pmi(cpu).is_pending;
    });
}

TEST_CASE("a guest on a processor: its trace goes to its memory, the host's goes on after "
          "(PRG-170,180)") {
    test::virtual_machine vm{preset::ice_lake_u, preset::ice_lake_u,
                             vmx::guest_output::guest_physical, [] { return std::uint64_t{0}; }};
    vm.memory.writable.insert(0x1'0000);
    CHECK(vm.processor.write(0x560, 0x1000'0000));
    CHECK(vm.processor.write(0x561, 0xFFF));
    CHECK(vm.processor.write(0x570, 0x2005));
    CHECK(on_wrmsr(vm.guest, 0x560, 0x4000));
    CHECK(on_wrmsr(vm.guest, 0x561, 0xFFF));
    CHECK(on_wrmsr(vm.guest, 0x570, 0x2005));
    CHECK(vm.run(0x2000, {}));
    (void)vm.processor.on(action::indirect_jump{0x3000});
    CHECK(vm.exit(0x3000));
    CHECK(vm.guest.msrs.output.mask_ptrs.get<access::ia32_rtit_output_mask_ptrs::OutputOffset>() !=
          0);
    CHECK(vm.memory.guest_byte(0x4000) == 0x02);
    CHECK(vm.memory.host.at(0x1000'0000) == 0x02);
    CHECK(vm.memory.violations == 0);
    CHECK(vm.processor.is_tracing());
    // While the host traces, VM entry that loads CTL is refused by the processor.
    CHECK(vm.processor.msrs().ctl.raw == 0x2005);
}

TEST_CASE("a PMI handler of the host that sets TraceEn between the preparation and VM entry makes "
          "it fail (REG-130, PRG-171)") {
    CHECK_TWICE([](auto value) {
        auto const set = ept;
        msr_file cpu = host_file(0x250D);
        guest_pt guest = tracing_guest(value(uint64_t{0x2109}));
        host_pt host;
        bool const ready = enter(guest, ept, host, cpu) &&
                           vmx::broken_rule(preset::ice_lake_u, set, {cpu.at(0x570)}) == rule::none;
        (void)cpu.write(0x570, 0x250D);
        bool const fails = vmx::broken_rule(preset::ice_lake_u, set, {cpu.at(0x570)}) ==
                           rule::REG_130;
        // After the failure: TraceEn is cleared, and the host continues.
        (void)cpu.write(0x570, 0);
        return ready && fails && cancel(guest, host, cpu) && cpu.at(0x570) == 0x250D &&
               cpu.at(0x581) == 0x581 && guest.starts;
    });
}
