// SPDX-License-Identifier: BSL-1.0

// A hypervisor gives a guest Intel PT on a processor without guest-physical output: it handles the
// guest's exits, shadows its ToPA table, injects its PMI, and moves it to another host in the midst
// of the trace. At the end the guest reads its own trace.

#include "standard_output.hpp"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/guest_image.hpp>
#include <ptspec/vmx/msr_bitmap.hpp>
#include <ptspec/vmx/msr_exits.hpp>
#include <ptspec/vmx/world_switch.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

using namespace ptspec;
namespace action = ptspec::engine::action;

constexpr uint64_t guest_table = 0x1000;  // guest-physical
constexpr uint64_t guest_buffer = 0x2000;
constexpr uint64_t host_ip = 0xFFFF'8000'0000'1000;

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// Runs a guest until its next exit. `execute(ctl)` enters it with this IA32_RTIT_CTL, and returns
/// after the exit, which cleared it. False: the guest did not run, since an access faulted or the
/// host has a ToPA PMI to handle, or the guest's position was lost.
template <msr_port Msrs, class Execute>
auto run_guest(vmx::guest_pt& guest, vmx::shadow& shadow, vmx::controls const& set,
               vmx::msr_bitmap& bitmap, unsigned& pmis, Msrs& msrs, Execute&& execute) -> bool {
    vmx::host_pt host;
    auto const entry = vmx::enter(guest, shadow, set, host, msrs);
    if (!entry || vmx::find_topa_pmi(msrs).is_pending) {
        (void)vmx::cancel(guest, host, msrs);
        return false;
    }
    vmx::update_msr_bitmap(guest, bitmap);
    execute(entry.ctl);
    pmis += vmx::take_topa_pmi(guest, host, msrs).is_pending;
    return static_cast<bool>(vmx::leave(guest, shadow, host, msrs));
}

/// A host: a processor, and the guest's 16 KB of memory, which are at `base` here.
struct host_machine {
    explicit host_machine(uint64_t guest_memory) : base{guest_memory} {}
    host_machine(host_machine const&) = delete;
    auto operator=(host_machine const&) -> host_machine& = delete;

    // The guest's memory for `shadow`.
    auto load(uint64_t address) -> port_value {
        return address < sizeof ram ? memory.load(base + address) : port_value{};
    }
    auto translate(uint64_t address, uint64_t) -> vmx::translation {
        if (address >= sizeof ram) { return {vmx::backing::none}; }
        return {vmx::backing::mapped, base + address};
    }

    uint64_t base;
    uint8_t ram[0x4000] = {};
    topa::entry entries[512] = {};
    topa::position origins[512] = {};
    vmx::shadow_page page{0x10'0000, entries, origins};
    host_region regions[2] = {{base, ram, sizeof ram},
                              {0x10'0000, reinterpret_cast<uint8_t*>(entries), sizeof entries}};
    host_memory memory{regions};
    simulate::no_tap tap{};
    simulate::fake_processor<host_memory> cpu{cpu::preset::skylake_x, memory, tap, {}, host_ip};
    vmx::guest_pt guest{.caps = cpu::preset::skylake_x, .output = vmx::guest_output::shadow};
    vmx::shadow shadow{};
    vmx::controls set = vmx::with_guest_pt(cpu::preset::skylake_x, {}, guest.output);
    vmx::msr_bitmap bitmap{};

    /// Runs the guest until the next exit: 200 indirect jumps.
    void run() {
        if (guest.needs_shadow()) {
            expect(begin_shadow(guest, shadow, guest.caps, &page, 1) == rule::none &&
                       shadow.build(*this),
                   "a shadow table");
        }
        auto const execute = [this](reg::ia32_rtit_ctl loaded) {
            uint64_t ip = 0x40'0000;
            (void)cpu.on(action::vm_entry{.at = host_ip, .to = ip, .loads = {true, loaded}});
            for (unsigned i = 0; i < 200; ++i) {
                ip = 0x40'0000 + i % 7 * 0x1'0000'0000;
                (void)cpu.on(action::indirect_jump{ip});
            }
            (void)cpu.on(action::vm_exit{.from = ip, .to = host_ip, .loads = {true, {}}});
        };
        unsigned pmis = 0;
        expect(run_guest(guest, shadow, set, bitmap, pmis, cpu, execute), "VM entry and VM exit");
        if (pmis != 0) { std::puts("the VMM took a ToPA PMI"); }
        if (take_pmi(guest)) { std::puts("the guest gets a PMI"); }
    }
};

}  // namespace

auto main() -> int {
    host_machine first{0x20'0000};
    store_le64(first.ram + guest_table, guest_buffer | 1 << 2);  // 4 KB, INT
    store_le64(first.ram + guest_table + 8, guest_buffer + 4096);
    store_le64(first.ram + guest_table + 16, topa::link_to(guest_table).raw);
    expect(on_wrmsr(first.guest, 0x584, 0).broken == rule::REG_014, "an MSR that is not there");
    expect(static_cast<bool>(on_wrmsr(first.guest, 0x560, guest_table)), "WRMSR");
    expect(on_wrmsr(first.guest, 0x570, 0x2105).trace_en_changed, "WRMSR that enables");
    first.run();

    // The guest moves: its memory, and the image of its MSRs.
    host_machine second{0x70'0000};
    copy_bytes(second.ram, first.ram, sizeof second.ram);
    expect(static_cast<bool>(vmx::load(second.guest, vmx::store(first.guest))), "an image");
    second.run();

    expect(on_wrmsr(second.guest, 0x570, 0x2104).trace_en_changed, "WRMSR that disables");
    auto const position = topa::position_in(second.guest.msrs.output.base,
                                            second.guest.msrs.output.mask_ptrs);
    byte_view const trace{second.ram + guest_buffer, 4096 * position.index + position.offset};
    trace::reader reader{trace};
    unsigned jumps = 0;
    for (auto item = reader.next(); item; item = reader.next()) {
        expect(item.what == trace::item_type::packet, "a packet");
        jumps += item.packet.is<packet::tip>();
    }
    std::printf("the guest's trace: %zu bytes, %u indirect jumps\n", trace.size(), jumps);
    expect(jumps == 400, "each jump");
}
