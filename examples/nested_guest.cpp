// SPDX-License-Identifier: BSL-1.0

// A hypervisor (L0) runs a guest hypervisor (L1), which traces itself and its guest (L2). L0
// emulates the VM entries and VM exits of L1, and makes L1's trace that of a processor with VMX: it
// adds the PIPs of these transitions, and replaces the address of its own VMCS by that of L1's.

#include "standard_output.hpp"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/vmx/insert_pip.hpp>
#include <ptspec/edit/replace_addresses.hpp>
#include <ptspec/vmx/msr_bitmap.hpp>
#include <ptspec/vmx/nested.hpp>
#include <ptspec/vmx/world_switch.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace ptspec;
namespace action = engine::action;
using conceals_non_root = reg::vmcs_secondary_proc_ctls::ConcealVmxNonRootFromPT;
using conceals_exits = reg::vmcs_vmexit_ctls::ConcealVmExitsFromPT;
using conceals_entries = reg::vmcs_vmentry_ctls::ConcealVmEntriesFromPT;

constexpr auto const& caps = cpu::preset::skylake_x;
constexpr unsigned jumps_per_run = 50;
constexpr std::uint64_t l1_cr3 = 0x1000, l2_cr3 = 0x7000;
constexpr std::uint64_t vmcs_of_l1 = 0x30'0000, vmcs_of_l2 = 0x30'1000;  // with which L0 runs them
constexpr std::uint64_t vmcs_in_l1 = 0x3000;  // that of L1 for L2, in L1's memory
constexpr std::uint64_t l1_buffer = 0x4000;   // where L1 traces to
constexpr std::uint64_t host_ip = 0xFFFF'8000'0000'1000;
constexpr std::uint64_t memory_of_l1 = 0x20'0000;

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// The memory of L1, which is at `memory_of_l1` in that of the host.
struct guest_memory {
    host_memory& of;
    std::uint64_t size;

    auto load(std::uint64_t address) -> port_value {
        return address < size ? of.load(memory_of_l1 + address) : port_value{};
    }
    auto store(std::uint64_t address, byte_view bytes) -> std::size_t {
        return address < size ? of.store(memory_of_l1 + address, bytes) : 0;
    }
    auto translate(std::uint64_t address, std::uint64_t) -> vmx::translation {
        if (address >= size) { return {vmx::backing::none}; }
        return {vmx::backing::mapped, memory_of_l1 + address};
    }
};

struct machine {
    machine() { (void)cpu.on(action::vmxon{host_ip, host_ip}); }
    machine(machine const&) = delete;
    auto operator=(machine const&) -> machine& = delete;

    std::uint8_t ram[0x8000] = {};
    topa::entry entries[512] = {};
    topa::position origins[512] = {};
    vmx::shadow_page page{0x10'0000, entries, origins};
    host_region regions[2] = {{0x10'0000, reinterpret_cast<std::uint8_t*>(entries), sizeof entries},
                              {memory_of_l1, ram, sizeof ram}};
    host_memory memory{regions};
    guest_memory l1_memory{memory, sizeof ram};
    simulate::fake_processor<host_memory> cpu{caps, memory, {}, host_ip};

    vmx::guest_pt guest{.caps = caps, .output = vmx::guest_output::shadow};
    vmx::shadow shadow{};
    vmx::controls own = vmx::with_guest_pt(caps, {}, guest.output);  // of L0 for L1
    vmx::nested_vmcs vmcs{};                                         // of L1 for L2
    vmx::msr_bitmap bitmap{}, bitmap_of_l1{}, merged{};

    /// Runs L1, or L2 while it is entered, until the next exit to L0.
    void run(std::uint64_t first_ip) {
        if (guest.needs_shadow()) {
            expect(begin_shadow(guest, shadow, caps, &page, 1) == rule::none &&
                       shadow.build(l1_memory),
                   "a shadow table");
        }
        bool const in_l2 = guest.level == vmx::guest_level::l2;
        auto const set = vmx::merged_controls(own, guest);
        vmx::host_pt host;
        auto const entry = vmx::enter(guest, shadow, set, host, cpu);
        expect(static_cast<bool>(entry), "VM entry");
        if (in_l2) {
            vmx::update_msr_bitmap(guest, bitmap_of_l1, merged);
        } else {
            vmx::update_msr_bitmap(guest, bitmap);
        }
        (void)cpu.on(action::vmptrld{host_ip, in_l2 ? vmcs_of_l2 : vmcs_of_l1});
        cpu.conceal({.non_root = set.secondary.get<conceals_non_root>(),
                     .exits = set.vm_exit.get<conceals_exits>(),
                     .entries = set.vm_entry.get<conceals_entries>()});
        (void)cpu.on(
            action::vm_entry{.at = host_ip,
                             .to = first_ip,
                             .after = {.cr3 = in_l2 ? l2_cr3 : l1_cr3, .vmx_non_root = true},
                             .loads = {true, entry.ctl}});
        std::uint64_t ip = first_ip;
        for (unsigned i = 0; i < jumps_per_run; ++i) {
            ip = first_ip + 0x1'0000 * (i % 7);
            (void)cpu.on(action::indirect_jump{ip});
        }
        (void)cpu.on(action::vm_exit{.from = ip, .to = host_ip, .loads = {true, {}}});
        expect(!vmx::take_topa_pmi(guest, host, cpu).is_pending, "no PMI");
        expect(static_cast<bool>(vmx::leave(guest, shadow, host, cpu)), "VM exit");
    }

    /// Adds the PIP of a transition that the processor did not execute.
    void insert_pip(std::uint64_t cr3, bool nr) {
        using packet::pip;
        auto const which = pip{}.with(pip::CR3{wrapped{cr3}}, pip::NR{nr});
        auto const done = vmx::insert_pip(guest, shadow, {.cr3 = cr3}, which, l1_memory);
        expect(done && done.is_owed, "room for a PIP");
    }
    /// The exit of L1 at VMLAUNCH or VMRESUME. The answer is the rule by which the entry fails.
    auto on_vm_entry_of_l1() -> rule {
        auto const entered = vmx::enter_nested(guest, vmcs);
        if (!entered) { return entered.broken; }
        if (entered.owes_pip) { insert_pip(l2_cr3, entered.pip_nr); }
        return rule::none;
    }
    /// An exit of L2 that L1 handles.
    void on_vm_exit_to_l1() {
        if (vmx::owes_pip_at_exit(guest)) { insert_pip(l1_cr3, false); }
        expect(vmx::leave_nested(guest, vmcs), "L2 was running");
    }
};

/// The jumps of L1 and of L2 in a trace, told apart by NR of the PIPs.
struct levels {
    bool in_l2 = false;
    unsigned jumps[2] = {};
    unsigned vmcs_packets = 0;

    void operator()(packet::pip const& one, trace::packet_place) {
        in_l2 = one.get<packet::pip::NR>();
    }
    void operator()(packet::tip const&, trace::packet_place) { ++jumps[in_l2]; }
    void operator()(packet::vmcs const& one, trace::packet_place) {
        ++vmcs_packets;
        expect(one.get<packet::vmcs::base>() == vmcs_in_l1, "no address of the host");
    }
    void operator()(trace::item const& one) {
        expect(one.what == trace::item_type::end, "a trace without damage");
    }
};

}  // namespace

auto main() -> int {
    machine now;
    auto& guest = now.guest;
    expect(on_wrmsr(guest, 0x560, l1_buffer) && on_wrmsr(guest, 0x561, 0x3FFF) &&
               on_wrmsr(guest, 0x570, 0x2005).trace_en_changed,
           "L1 traces its kernel and L2's to 16 KB");

    // This processor has no guest-physical output.
    using output = reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr;
    now.vmcs.set.secondary = now.vmcs.set.secondary.with(output{true});
    rule const broken = now.on_vm_entry_of_l1();
    std::printf("the first VMLAUNCH of L1 fails: %s\n", describe(broken).data());
    expect(broken != rule::none && guest.level == vmx::guest_level::l1, "L2 is not entered");

    now.vmcs = {};
    for (unsigned round = 0; round < 10; ++round) {
        now.run(0x40'0000);
        expect(now.on_vm_entry_of_l1() == rule::none, "L2 is entered");
        now.run(0x7F00'0000'0000);
        now.on_vm_exit_to_l1();
    }

    // L1 reads its trace.
    auto const size =
        guest.msrs.output.mask_ptrs.get<reg::ia32_rtit_output_mask_ptrs::OutputOffset>();
    byte_window const pieces[] = {{now.ram + l1_buffer, static_cast<std::size_t>(size)}};
    auto const replaced = edit::replace_vmcs(pieces, [](std::uint64_t address) {
        return edit::guest_address{address == vmcs_of_l2, vmcs_in_l1};
    });
    expect(static_cast<bool>(replaced), "each VMCS is one of L1");
    levels seen;
    trace::reader reader{byte_view{pieces[0].first, static_cast<std::size_t>(size)}};
    (void)reader.for_each<packet::pip, packet::tip, packet::vmcs, trace::item>(seen);
    std::printf("L1's trace: %llu bytes, %u jumps of L1, %u of L2, %u VMCS packets\n",
                static_cast<unsigned long long>(size), seen.jumps[0], seen.jumps[1],
                seen.vmcs_packets);
    expect(seen.jumps[0] == 10 * jumps_per_run && seen.jumps[1] == 10 * jumps_per_run &&
               seen.vmcs_packets != 0,
           "each jump in its level");
}
