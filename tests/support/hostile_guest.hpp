// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/virtual_machine.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/guest_image.hpp>
#include <ptspec/vmx/nested.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

/// A hostile guest.
namespace ptspec::test {

inline auto usual_host() -> cpu::capabilities { return cpu::preset::find("ElkhartLake")->value; }

/// What CPUID tells the guest: as the host, without VMX.
inline auto guest_caps() -> cpu::capabilities {
    auto caps = usual_host();
    caps.vmx_misc = {};
    return caps;
}

/// A guest in a virtual machine, and the same guest on a processor of its own whose trace ends and
/// continues where the VM exits are. Each step does the same with both and compares what they read.
class pair_of_guests {
public:
    /// `random` returns the numbers that all is chosen by.
    pair_of_guests(vmx::guest_output output, std::function<std::uint64_t()> random,
                   bool host_traces, cpu::capabilities const& caps = guest_caps(),
                   cpu::capabilities const& host = usual_host())
        : caps_{caps},
          random_{std::move(random)},
          host_traces_{host_traces},
          in_vm_{host, caps, output, random_},
          bare_{like(caps, host), bare_memory_, tap_, {.vmx_non_root = true}, ip_} {
        if (host_traces) { start_host(); }
        for (std::uint64_t i = 0; i < table_pages; ++i) { make_table(0x1000 * (i + 1)); }
        host_before_ = in_vm_.processor.msrs();
        enter();
        (void)write(0x560, 0x1000);
    }

    /// An access, an event, or a change of the guest's memory.
    void step() {
        switch (roll(host_traces_ ? 9 : 12)) {
            case 0:
            case 1:
            case 2: return write_msr();
            case 3: return static_cast<void>(read(any_msr()));
            case 4: return edit_table();
            case 5: return enable();
            case 6: return exit_and_enter();
            case 7: move_page(); return exit_and_enter();
            case 8: return read_all();
            default: return execute();
        }
    }
    /// The first difference.
    std::string difference;
    std::uint64_t steps_traced = 0;
    std::uint64_t errors = 0;
    std::uint64_t pmis = 0;

    void finish() {
        read_all();
        exit();
        if (in_vm_.memory.violations != 0) { differ("accesses outside the guest's memory"); }
        if (!host_traces_) { compare_memory(); }
        auto const host = in_vm_.processor.msrs();
        bool const same = host.ctl == host_before_.ctl &&
                          host.cr3_match == host_before_.cr3_match &&
                          host.output.base == host_before_.output.base &&
                          std::equal(host.addr, host.addr + 4, host_before_.addr);
        if (!same) { differ("the host's MSRs changed"); }
        if (!host_traces_ && host.output.mask_ptrs != host_before_.output.mask_ptrs) {
            differ("the host's position changed");
        }
    }
    [[nodiscard]] auto max_calls() const -> std::uint64_t { return in_vm_.max_calls; }
    [[nodiscard]] auto out_of_room() const -> std::uint64_t { return in_vm_.out_of_room; }

private:
    // Page 0 is what an empty entry leads to.
    static constexpr std::uint64_t table_pages = 16;
    static constexpr std::uint64_t regions = 0x1000'0000;

    auto any_table() -> std::uint64_t { return 0x1000 * (1 + roll(table_pages)); }
    // ------------------------------------------------------------------------- worlds

    void start_host() {
        in_vm_.memory.writable.insert(0x1'0000);
        auto& cpu = in_vm_.processor;
        (void)cpu.write(0x560, 0x1000'0000);
        (void)cpu.write(0x561, 0xFFF);
        (void)cpu.write(0x572, 0x1000);
        (void)cpu.write(0x580, 0x4000);
        (void)cpu.write(0x581, 0x4FFF);
        (void)cpu.write(0x570, 0x2005 | 1 << 10);
    }
    void enter() {
        if (!in_vm_.run(ip_, code())) { differ("VM entry failed"); }
        if (bare_.msrs().ctl.raw != 0) { differ("CTL of the other guest is not 0"); }
        (void)bare_.on(engine::action::vm_entry{vm_ip, ip_, code(), {true, ctl_}});
    }
    void exit() {
        if (!in_vm_.exit(ip_)) { differ("the position was lost"); }
        (void)bare_.on(engine::action::vm_exit{
            .from = ip_, .to = vm_ip, .after = virtual_machine::host_code(), .loads = {true, {}}});
        bool const pends = ctl_.get<access::ia32_rtit_ctl::InjectPsbPmiOnEnable>();
        using reset = reg::ia32_perf_global_status_reset;
        bool const raised =
            bare_.msrs().perf_global_status.get<reg::ia32_perf_global_status::Trace_ToPA_PMI>();
        (void)bare_.write(reset::address, reset{}.with(reset::Trace_ToPA_PMI{true}).raw);
        bool const got = take_pmi(in_vm_.guest);
        pmis += got;
        // With PMI preservation the other guest has another interrupt at each entry.
        if (!host_traces_ && !pends && got != raised) { differ("a PMI"); }
    }
    [[nodiscard]] auto code() const -> engine::execution_context {
        return {.cr3 = cr3_, .vmx_non_root = true};
    }

    // ------------------------------------------------------------------------- MSRs

    /// Often shortly before the end of a region of 4 KB.
    auto offset() -> std::uint64_t { return roll(2) == 0 ? roll(4) : 0x1000 - roll(0x100); }
    auto any_ctl() -> std::uint64_t {
        access::ia32_rtit_ctl made{0x2000 | roll(2)};
        made.raw |= 1 << 2 | (roll(3) != 0 ? 1U << 8U : 0U);  // OS, ToPA
        made.raw |= roll(2) << 1 | roll(2) << 10 | roll(2) << 11 | roll(2) << 12 | roll(2) << 7;
        if (roll(6) == 0) { made.raw |= std::uint64_t{1} << 56; }
        if (roll(6) == 0) { made.raw |= roll(3) << 32; }
        if (roll(8) == 0) { made.raw |= std::uint64_t{1} << roll(64); }
        return made.raw;
    }
    void write_msr() {
        std::uint32_t const index = any_msr();
        (void)write(index, any_value(index));
    }
    /// Sets TraceEn with legal values, after STATUS was written back as a driver does it.
    void enable() {
        bool done = write(0x570, 0) && write(0x571, read(0x571).value) && write(0x571, 0) &&
                    write(0x560, any_table()) && write(0x561, any_value(0x561));
        done = done &&
               (write(0x570, any_ctl() | 1) || write(0x570, 0x2105) || write(0x570, 0x2005));
        if (!done) { differ("the guest cannot enable its trace"); }
    }
    /// A processor with the guest's capabilities, of the host's model and with its clocks. Where
    /// the guest does not see PacketByteCnt, it counts as the host does, and begins from 0 at each
    /// enable: then the same bytes have the same places.
    static auto like(cpu::capabilities caps, cpu::capabilities const& host) -> cpu::capabilities {
        using CPSB_CAM = reg::cpuid_14h_0_ebx::CPSB_CAM;
        caps.leaf_01_eax = host.leaf_01_eax;
        caps.platform_info = host.platform_info;
        caps.leaf_14_0_ebx = caps.leaf_14_0_ebx.with(CPSB_CAM{host.leaf_14_0_ebx.get<CPSB_CAM>()});
        return caps;
    }
    [[nodiscard]] auto sees_byte_count() const -> bool {
        return caps_.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>();
    }
    [[nodiscard]] auto bare_state() const -> access::msr_state {
        auto state = bare_.msrs();
        if (state.ctl.raw == 0) { state.ctl = ctl_; }
        return state;
    }

public:
    /// WRMSR by the guest. False: #GP.
    auto write(std::uint32_t index, std::uint64_t value) -> bool {
        bool const allowed = static_cast<bool>(
            access::check_write(caps_, bare_state(), index, value));
        switch (access_of_guest(in_vm_.guest, index)) {
            case vmx::guest_access::pass_through: {
                // CTL is not written, and no other write is legal while TraceEn is 1.
                bool const done = in_vm_.processor.write(index, value);
                if (done || allowed) { differ("a write while TraceEn is 1"); }
                break;
            }
            case vmx::guest_access::intercept: {
                exit();
                auto const answer = on_wrmsr(in_vm_.guest, index, value);
                if (static_cast<bool>(answer) != allowed) { differ("a #GP of WRMSR"); }
                if (allowed && index == 0x570) {
                    bool const rises = (value & ~ctl_.raw & 1) != 0;
                    if (rises && !sees_byte_count()) {
                        (void)bare_.write(0x571, bare_.msrs().status.raw & 0xFF);
                    }
                    ctl_ = {value};
                } else if (allowed) {
                    (void)bare_.write(index, value);
                }
                ip_ += answer ? 2 : 0;
                enter();
                break;
            }
            case vmx::guest_access::inject_gp:
                if (allowed) { differ("a #GP of an MSR"); }
                break;
            case vmx::guest_access::not_pt: break;
        }
        return allowed;
    }
    /// RDMSR by the guest.
    auto read(std::uint32_t index) -> port_value {
        bool const present = static_cast<bool>(access::check_read(caps_, index));
        auto const expected = [&] {
            if (index == 0x570) { return ctl_.raw; }
            auto msrs = bare_.msrs();
            // After an exit this processor has TraceEn = 0.
            msrs.status = msrs.status.with(
                access::ia32_rtit_status::TriggerEn{access::trigger_en(ctl_, msrs.status)});
            if (index == 0x571 && !sees_byte_count()) { return msrs.status.raw & 0xFF; }
            return access::value_of(msrs, index);
        };
        switch (access_of_guest(in_vm_.guest, index)) {
            case vmx::guest_access::pass_through: {
                auto const got = in_vm_.processor.read(index);
                compare(index, got.value, expected());
                return got;
            }
            case vmx::guest_access::intercept: {
                exit();
                auto const answer = on_rdmsr(in_vm_.guest, index);
                if (!answer) { differ("a #GP of RDMSR"); }
                compare(index, answer.value, expected());
                enter();
                return {static_cast<bool>(answer), answer.value};
            }
            case vmx::guest_access::inject_gp:
                if (present) { differ("a #GP of a present MSR"); }
                break;
            case vmx::guest_access::not_pt: break;
        }
        return {};
    }

    /// A VM exit for a reason of the VMM.
    void exit_and_enter() {
        exit();
        migrate();
        enter();
    }

    // ------------------------------------------------------------------------- nested VMX

    /// VM entry by the guest, with the controls of `with_guest_pt`. False: it fails.
    auto enter_nested(vmx::nested_vmcs& vmcs) -> bool {
        bool const allowed = !ctl_.get<access::ia32_rtit_ctl::TraceEn>() &&
                             access::check_write(caps_, {}, 0x570, vmcs.guest_ctl.raw);
        exit();
        auto const entered = vmx::enter_nested(in_vm_.guest, vmcs);
        if (static_cast<bool>(entered) != allowed) { differ("a nested VM entry"); }
        if (entered.owes_pip) { differ("a PIP of a concealed VM entry"); }
        if (allowed) { ctl_ = vmcs.guest_ctl; }
        migrate();
        enter();
        return allowed;
    }
    /// VM exit to the guest hypervisor.
    void leave_nested(vmx::nested_vmcs& vmcs) {
        exit();
        auto const before = ctl_;
        if (owes_pip_at_exit(in_vm_.guest)) { differ("a PIP of a concealed VM exit"); }
        if (!vmx::leave_nested(in_vm_.guest, vmcs)) { differ("L2 does not run"); }
        if (vmcs.guest_ctl != before) { differ("the CTL that a nested VM exit saves"); }
        ctl_ = {};
        enter();
    }
    /// VM entry by the guest to L2, and VM exit from it, with controls that neither load nor clear
    /// CTL and do not translate output: the trace goes on in the same memory.
    void change_level(vmx::nested_vmcs& vmcs) {
        exit();
        auto& guest = in_vm_.guest;
        if (guest.level == vmx::guest_level::l2) {
            if (!vmx::leave_nested(guest, vmcs)) { differ("L2 does not run"); }
            if (vmcs.guest_ctl != ctl_) { differ("the CTL that a nested VM exit saves"); }
        } else if (!vmx::enter_nested(guest, vmcs)) {
            differ("a nested VM entry");
        }
        migrate();
        enter();
    }
    /// Executes code, at either level.
    void execute() {
        steps_traced += ctl_.get<access::ia32_rtit_ctl::TraceEn>();
        for (std::uint64_t left = 1 + roll(20); left != 0; --left) { execute_one(); }
    }
    auto any_msr() -> std::uint32_t {
        constexpr std::uint32_t indices[] = {0x560, 0x561, 0x570, 0x571, 0x572, 0x580, 0x581,
                                             0x582, 0x583, 0x584, 0x587, 0x57F, 0x562};
        return indices[roll(std::size(indices))];
    }
    auto any_value(std::uint32_t index) -> std::uint64_t {
        // A base that is legal is that of a table.
        std::uint64_t const illegal = index == 0x560 ? 1 : 0;
        // An index that is large enough leads to what output writes.
        std::uint64_t const mask = index == 0x561 ? ~(std::uint64_t{1} << 31) : ~std::uint64_t{0};
        if (roll(8) == 0) { return (random_() & mask) | illegal; }
        if (roll(8) == 0) { return (std::uint64_t{1} << roll(64) & mask) | illegal; }
        switch (index) {
            case 0x560: return any_table();
            case 0x561:
                return roll(2) == 0 ? offset() << 32 | roll(roll(10) == 0 ? 600 : 4) << 7 | 0x7F
                                    : roll(0x4000) << 32 | ((std::uint64_t{128} << roll(9)) - 1);
            case 0x570: return any_ctl();
            case 0x571: return roll(0x10000) << 32 | (roll(4) == 0 ? roll(16) << 4 : 0);
            case 0x572: return 0x1000 * roll(3);
            default: return 0x1000 * roll(8);
        }
    }
    [[nodiscard]] auto roll(std::uint64_t sides) -> std::uint64_t { return random_() % sides; }
    void differ(std::string const& what) {
        if (difference.empty()) { difference = what; }
    }

private:
    /// Every state that a guest can be in moves as an image. A guest that does not see
    /// PacketByteCnt has a PSB+ more then, and stays.
    void migrate() {
        auto& guest = in_vm_.guest;
        vmx::guest_pt moved{.caps = guest.caps, .output = guest.output};
        auto const loaded = load(moved, vmx::store(guest));
        bool const same = moved.msrs == guest.msrs && moved.level == guest.level &&
                          moved.nested == guest.nested && moved.pmi_pending == guest.pmi_pending &&
                          moved.starts == guest.starts;
        if (!loaded || !same) { differ("the guest cannot be moved"); }
        if (sees_byte_count()) { guest = moved; }
    }
    void compare(std::uint32_t index, std::uint64_t got, std::uint64_t expected) {
        // Other packets of the host come between, so that positions and counts differ.
        if (host_traces_ && (index == 0x561 || index == 0x560 || index == 0x571)) { return; }
        if (got == expected) { return; }
        char text[100];
        std::snprintf(text, sizeof text, "MSR %x is %llx, not %llx", index,
                      static_cast<unsigned long long>(got),
                      static_cast<unsigned long long>(expected));
        differ(text);
    }
    void read_all() {
        for (std::uint32_t index = 0x560; index < 0x588; ++index) { (void)read(index); }
        auto const status = bare_.msrs().status;
        errors += status.get<access::ia32_rtit_status::Error>();
    }

    // ------------------------------------------------------------------------- memory

    void store(std::uint64_t address, std::uint64_t value) {
        for (unsigned i = 0; i < 8; ++i) {
            auto const byte = static_cast<std::uint8_t>(value >> (8 * i));
            in_vm_.memory.guest_byte(address + i) = byte;
            bare_memory_.at(address + i) = byte;
        }
    }
    /// Guests change tables only while TraceEn is 0, and do not let output overwrite them: a shadow
    /// has the entries as they were when TraceEn was set.
    void edit_table() {
        if (ctl_.get<access::ia32_rtit_ctl::TraceEn>()) { return execute(); }
        make_table(any_table());
    }
    void make_table(std::uint64_t table) {
        std::uint64_t const count = 1 + roll(8);
        for (std::uint64_t i = 0; i < count; ++i) {
            std::uint64_t const size = roll(500) == 0  ? roll(16)
                                       : roll(20) == 0 ? roll(6)
                                                       : roll(3);
            std::uint64_t base = regions + 0x1000 * roll(32);
            if (roll(10) != 0) { base &= ~((std::uint64_t{4096} << size) - 1); }
            std::uint64_t entry = base | size << 6 | (roll(2) == 0 ? 4U : 0U) |
                                  (roll(12) == 0 ? 16U : 0U);
            // Not bit 28: an END would lead to a region, and output would overwrite the table.
            if (roll(30) == 0) {
                entry |= std::uint64_t{1} << (roll(2) == 0 ? 1 + roll(11) : 29 + roll(35));
            }
            bool const is_end = i + 1 == count;
            store(table + 8 * i, is_end ? any_table() | 1 : entry);
        }
    }
    /// The VMM moves a guest page to another host page, unless output may go there.
    void move_page() {
        std::uint64_t const page = roll(2) == 0 ? roll(table_pages) : regions / 4096 + roll(32);
        bool const is_pinned = in_vm_.guest.current_output() == vmx::guest_output::shadow &&
                               ctl_.get<access::ia32_rtit_ctl::TraceEn>();
        if (!is_pinned) { in_vm_.memory.move_page(page); }
    }
    void compare_memory() {
        for (auto& [page, bytes] : bare_memory_.pages) {
            for (std::size_t i = 0; i < 4096; ++i) {
                if (in_vm_.memory.guest_byte(page * 4096 + i) != bytes[i]) {
                    return differ("byte " + std::to_string(page * 4096 + i));
                }
            }
        }
        for (auto const& [page, host_page] : in_vm_.memory.host_page_of) {
            if (bare_memory_.pages.count(page) != 0) { continue; }
            for (auto const byte : in_vm_.memory.host.pages[host_page]) {
                if (byte != 0) { return differ("a byte of page " + std::to_string(page)); }
            }
        }
    }

    // ------------------------------------------------------------------------- code

    void execute_one() {
        std::uint64_t const target = 0x2000 + roll(0x4000);
        switch (roll(6)) {
            case 0: return on(engine::action::conditional{target, true}, target);
            case 1: return on(engine::action::conditional{ip_ + 2, false}, ip_ + 2);
            case 2: return on(engine::action::indirect_jump{target}, target);
            case 3: return on(engine::action::direct_call{ip_ + 5, target}, target);
            case 4: return on(engine::action::ptwrite{ip_, ip_ + 5, random_(), true}, ip_ + 5);
            default:
                cr3_ = 0x1000 * roll(3);
                return on(engine::action::mov_cr3{ip_, ip_ + 3, cr3_}, ip_ + 3);
        }
    }
    template <class Event>
    void on(Event const& what, std::uint64_t next) {
        (void)in_vm_.processor.on(what);
        (void)bare_.on(what);
        ip_ = next;
    }

    static constexpr std::uint64_t vm_ip = virtual_machine::host_ip;

    cpu::capabilities caps_;
    std::function<std::uint64_t()> random_;
    bool host_traces_;
    std::uint64_t ip_ = 0x2000;
    std::uint64_t cr3_ = 0;
    access::ia32_rtit_ctl ctl_{};
    virtual_machine in_vm_;
    sparse_memory bare_memory_;
    simulate::no_tap tap_{};
    simulate::fake_processor<sparse_memory> bare_;
    access::msr_state host_before_{};
};

}  // namespace ptspec::test
