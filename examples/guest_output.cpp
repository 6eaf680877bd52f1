// SPDX-License-Identifier: BSL-1.0

// A guest traces to its own memory through EPT, while some of its pages are still on the host that
// it comes from. Each is fetched at the EPT violation of the output, and no byte of trace is lost.
// A guest whose ToPA table leads to no memory gets an operational error.

#include "standard_output.hpp"

#include <ptspec/base/host_memory.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/vmx/msr_exits.hpp>
#include <ptspec/vmx/output_violation.hpp>
#include <ptspec/vmx/world_switch.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

using namespace ptspec;
namespace action = ptspec::engine::action;

constexpr uint64_t guest_table = 0x1000;  // guest-physical
constexpr uint64_t guest_buffer = 0x2000;
constexpr uint64_t guest_size = 0x5000;
constexpr uint64_t host_base = 0x20'0000;  // where the guest's memory is here
constexpr uint64_t host_ip = 0xFFFF'8000'0000'1000;
constexpr auto const& caps = cpu::preset::ice_lake_u;

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// The guest's memory, and which of its pages are here.
struct guest_memory {
    host_memory& of;
    bool is_here[guest_size / 4096] = {true};

    auto load(uint64_t address) -> port_value {
        return address < guest_size ? of.load(host_base + address) : port_value{};
    }
    auto translate(uint64_t address, uint64_t) -> vmx::translation {
        if (address >= guest_size) { return {vmx::backing::none}; }
        if (!is_here[address / 4096]) { return {vmx::backing::missing}; }
        return {vmx::backing::mapped, host_base + address};
    }
};

struct host_machine {
    /// The guest's table has two regions: 8 KB at its buffer, and 4 KB.
    explicit host_machine(uint64_t second_region) {
        store_le64(ram + guest_table, guest_buffer | 1 << 6);
        store_le64(ram + guest_table + 8, second_region);
        store_le64(ram + guest_table + 16, topa::link_to(guest_table).raw);
        expect(on_wrmsr(guest, 0x560, guest_table) && on_wrmsr(guest, 0x570, 0x2105), "WRMSR");
    }
    host_machine(host_machine const&) = delete;
    auto operator=(host_machine const&) -> host_machine& = delete;

    void enter() {
        auto const entry = vmx::enter(guest, set, host, cpu);
        expect(static_cast<bool>(entry), "VM entry");
        (void)cpu.on(action::vm_entry{.at = host_ip, .to = ip, .loads = {true, entry.ctl}});
    }
    void leave() {
        (void)cpu.on(action::vm_exit{.from = ip, .to = host_ip, .loads = {true, {}}});
        expect(static_cast<bool>(vmx::leave(guest, host, cpu)), "VM exit");
    }
    /// The VM exits by EPT violations of the output. Those for a page that is fetched are modelled
    /// without `leave` and `enter`.
    void handle_violations() {
        while (output.has_violation()) {
            auto const access = output.take_violation();
            auto const answer = on_ept_violation(guest, access.qualification(), access.address,
                                                 pages);
            ++violations;
            if (answer.what == vmx::ept_violation_action::missing_page) {
                pages.is_here[answer.page.value / 4096] = true;  // fetched
            } else {
                expect(answer.what == vmx::ept_violation_action::end_output, "no memory");
                output.discard(true);  // what waits is lost
                leave();
                output.discard(false);
                end_output(guest);
                enter();
            }
        }
    }
    /// Runs the guest, which executes indirect jumps.
    void run(unsigned jumps) {
        enter();
        handle_violations();
        for (unsigned i = 0; i < jumps; ++i) {
            ip = 0x40'0000 + i % 7 * 0x1'0000'0000;
            (void)cpu.on(action::indirect_jump{ip});
            handle_violations();
        }
        leave();
    }

    uint8_t ram[guest_size] = {};
    host_region regions[1] = {{host_base, ram, sizeof ram}};
    host_memory memory{regions};
    guest_memory pages{memory};
    vmx::ept_memory<host_memory, guest_memory> output{memory, pages};
    simulate::no_tap tap{};
    simulate::fake_processor<decltype(output)> cpu{caps, output, tap, {}, host_ip};
    vmx::guest_pt guest{.caps = caps};
    vmx::controls set = vmx::with_guest_pt(caps, {.enable_ept = true}, guest.output);
    vmx::host_pt host{};
    uint64_t ip = 0x40'0000;
    unsigned violations = 0;
};

}  // namespace

auto main() -> int {
    constexpr unsigned jumps = 700;
    host_machine arrived{guest_buffer + 0x2000};
    arrived.run(jumps);
    auto const& msrs = arrived.guest.msrs;
    auto const position = topa::position_in(msrs.output.base, msrs.output.mask_ptrs);
    trace::reader reader{
        byte_view{arrived.ram + guest_buffer, 0x2000 * position.index + position.offset}};
    unsigned found = 0;
    for (auto item = reader.next(); item; item = reader.next()) {
        expect(item.what == trace::item_type::packet, "a packet");
        found += item.packet.is<packet::tip>();
    }
    std::printf("%u pages were fetched, %u of %u jumps are in the trace\n", arrived.violations,
                found, jumps);
    expect(found == jumps && arrived.violations == 4, "each page and each jump");

    host_machine astray{0x60'0000};
    astray.run(jumps);
    expect(astray.guest.msrs.status.get<access::ia32_rtit_status::Error>(), "an error");
    std::puts("output to no memory: the guest reads Error in IA32_RTIT_STATUS");
}
