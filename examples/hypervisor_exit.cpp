// SPDX-License-Identifier: BSL-1.0

// A hypervisor gives a guest Intel PT on a processor without guest-physical output: it handles the
// guest's exits, shadows its ToPA table, injects its PMI, and moves it to another host in the midst
// of the trace. At the end the guest reads its own trace.

#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/fake_processor.hpp>
#include <ptspec/host_memory.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/vmx/world_switch.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace ptspec;
namespace event = ptspec::engine::event;

constexpr uint64_t guest_table = 0x1000;  // guest-physical
constexpr uint64_t guest_buffer = 0x2000;
constexpr uint64_t guest_bytes = 0x4000;
constexpr uint64_t host_ip = 0xFFFF'8000'0000'1000;

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// A host: a processor, and memory in which the guest's pages are not contiguous.
struct host_machine {
    explicit host_machine(uint64_t guest_page_0) : page_0{guest_page_0} {}
    host_machine(host_machine const&) = delete;
    auto operator=(host_machine const&) -> host_machine& = delete;

    [[nodiscard]] auto load(uint64_t address) -> port_value {
        return address < guest_bytes ? memory.load(host_address(address)) : port_value{};
    }
    [[nodiscard]] auto translate(uint64_t address, uint64_t) -> vmx::translation {
        if (address >= guest_bytes) { return {vmx::backing::none}; }
        return {vmx::backing::mapped, host_address(address)};
    }
    [[nodiscard]] auto host_address(uint64_t address) const -> uint64_t {
        return page_0 + 2 * (address & ~uint64_t{4095}) + address % 4096;
    }

    uint64_t page_0;
    std::vector<uint8_t> ram = std::vector<uint8_t>(2 * guest_bytes);
    topa::entry entries[2][512] = {};
    topa::position origins[2][512] = {};
    vmx::shadow_page pages[2] = {{0x10'0000, entries[0], origins[0]},
                                 {0x10'1000, entries[1], origins[1]}};
    host_region regions[2] = {{page_0, ram.data(), ram.size()},
                              {0x10'0000, reinterpret_cast<uint8_t*>(&entries), sizeof entries}};
    host_memory memory{regions};
    driver::no_tap tap{};
    driver::fake_processor<host_memory> cpu{cpu::preset::skylake_x, memory, tap, {}, host_ip};
    vmx::guest_pt guest{.caps = cpu::preset::skylake_x, .output = vmx::guest_output::shadow};
    vmx::shadow shadow{};

    /// Runs the guest until the next exit.
    template <class Code>
    void run(uint64_t ip, Code&& code) {
        if (guest.needs_position) {
            expect(shadow.begin(guest.caps, guest.caps, guest.msrs, pages, 2) == rule::none &&
                       shadow.build(*this),
                   "a shadow table");
        }
        vmx::host_pt host;
        auto const entry = enter(guest, shadow, host, cpu);
        expect(static_cast<bool>(entry), "VM entry");
        (void)cpu.on(event::vm_entry{.at = host_ip, .to = ip, .loads = {true, entry.ctl}});
        uint64_t const end = code(cpu);
        (void)cpu.on(event::vm_exit{.from = end, .to = host_ip, .loads = {true, {}}});
        if (take_topa_pmi(guest, cpu)) { std::puts("the VMM took a ToPA PMI"); }
        bool placed = false;
        expect(leave(guest, shadow, host, cpu, placed) && placed, "the guest's position");
        if (take_pmi(guest)) { std::puts("the guest gets a PMI"); }
    }
};

/// The guest's code: indirect jumps.
auto jumps(unsigned count) {
    return [count](auto& cpu) {
        uint64_t to = 0x40'0000;
        for (unsigned i = 0; i < count; ++i) {
            to = 0x40'0000 + i % 7 * 0x1'0000'0000;
            (void)cpu.on(event::indirect_jump{to});
        }
        return to;
    };
}

}  // namespace

auto main() -> int {
    host_machine first{0x20'0000};
    store_le64(&first.ram[2 * guest_table], guest_buffer | 1 << 2);  // 4 KB, INT
    store_le64(&first.ram[2 * guest_table + 8], guest_buffer + 4096);
    store_le64(&first.ram[2 * guest_table + 16], topa::link_to(guest_table).raw);
    expect(on_wrmsr(first.guest, 0x584, 0).why == rule::REG_014, "an MSR that is not there");
    expect(static_cast<bool>(on_wrmsr(first.guest, 0x560, guest_table)), "WRMSR");
    expect(on_wrmsr(first.guest, 0x570, 0x2105).trace_en_changed, "WRMSR that enables");
    first.run(0x40'0000, jumps(200));

    // The guest moves: its memory, and the image of its MSRs.
    auto const image = vmx::save(first.guest);
    host_machine second{0x70'0000};
    second.ram = first.ram;
    second.regions[0].bytes = second.ram.data();
    expect(static_cast<bool>(vmx::load(second.guest, image)), "an image");
    second.run(0x40'0000, jumps(200));

    expect(on_wrmsr(second.guest, 0x570, 0x2104).trace_en_changed, "WRMSR that disables");
    auto const position = topa::position_in(second.guest.msrs.output_base,
                                            second.guest.msrs.output_mask_ptrs);
    std::vector<uint8_t> trace(4096 * position.index + position.offset);
    for (size_t i = 0; i < trace.size(); ++i) {
        trace[i] = second.ram[2 * ((guest_buffer + i) & ~uint64_t{4095}) + i % 4096];
    }
    trace::reader reader{byte_view{trace}};
    unsigned packets = 0;
    unsigned tips = 0;
    for (auto item = reader.next(); item; item = reader.next()) {
        expect(item.what == trace::item_type::packet, "a packet");
        ++packets;
        tips += item.packet.is<packet::tip>();
    }
    std::printf("the guest's trace: %zu bytes, %u packets, %u indirect jumps\n", trace.size(),
                packets, tips);
    expect(tips == 400, "each jump");
}
