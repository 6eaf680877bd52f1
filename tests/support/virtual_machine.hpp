// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/vmx/nested.hpp>
#include <ptspec/vmx/world_switch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

/// A guest with Intel PT in a virtual machine, and the same guest on a processor of its own.
namespace ptspec::test {

/// Physical memory whose pages appear when they are used.
struct sparse_memory {
    using ignores_pmis = sparse_memory;

    std::map<std::uint64_t, std::array<std::uint8_t, 4096>> pages;

    auto load(std::uint64_t address) -> port_value {
        byte_array<8> bytes;
        for (unsigned i = 0; i < 8; ++i) { bytes.bytes[i] = at(address + i); }
        return {true, load_le64(bytes.data())};
    }
    auto store(std::uint64_t address, byte_view from) -> std::size_t {
        for (std::size_t i = 0; i < from.size(); ++i) { at(address + i) = from[i]; }
        return from.size();
    }
    auto at(std::uint64_t address) -> std::uint8_t& {
        return pages[address / 4096][address % 4096];
    }
};

/// The memory of a host with one guest. Every guest page has a host page, chosen at random when it
/// is first used; some are missing at first.
struct vmm_memory {
    using ignores_pmis = vmm_memory;

    sparse_memory host;
    std::map<std::uint64_t, std::uint64_t> host_page_of;  ///< of guest pages
    std::set<std::uint64_t> writable;                     ///< host pages that output may reach
    std::set<std::uint64_t> readable;                     ///< pages of tables
    std::set<std::uint64_t> missing;                      ///< guest pages that are not present
    std::function<std::uint64_t()> random;
    std::uint64_t next_page = 0x5'0000;  ///< 20 GB
    bool uses_ept = false;               ///< output addresses are guest-physical
    std::uint64_t violations = 0;        ///< accesses outside the pages above
    std::uint64_t calls = 0;             ///< of the guest memory port

    auto page_of(std::uint64_t guest_page) -> std::uint64_t {
        auto const found = host_page_of.find(guest_page);
        if (found != host_page_of.end()) { return found->second; }
        next_page += random() % 100 < 60 ? 1 : 2 + random() % 1000;
        if (random() % 100 < 25) { missing.insert(guest_page); }
        writable.insert(next_page);
        return host_page_of[guest_page] = next_page;
    }
    /// A guest page moves to another host page, which has the same bytes.
    void move_page(std::uint64_t guest_page) {
        std::uint64_t const old = page_of(guest_page);
        auto const bytes = host.pages[old];
        host_page_of.erase(guest_page);
        writable.erase(old);
        host.pages.erase(old);
        host.pages[page_of(guest_page)] = bytes;
    }
    auto guest_byte(std::uint64_t address) -> std::uint8_t& {
        return host.at(page_of(address / 4096) * 4096 + address % 4096);
    }

    // The processor's port.
    auto load(std::uint64_t address) -> port_value {
        if (uses_ept) { address = page_of(address / 4096) * 4096 + address % 4096; }
        violations += writable.count(address / 4096) == 0 && readable.count(address / 4096) == 0;
        return host.load(address);
    }
    auto store(std::uint64_t address, byte_view from) -> std::size_t {
        for (std::size_t i = 0; i < from.size(); ++i) {
            std::uint64_t one = address + i;
            if (uses_ept) { one = page_of(one / 4096) * 4096 + one % 4096; }
            if (writable.count(one / 4096) == 0) {
                ++violations;
                return i;
            }
            host.at(one) = from[i];
        }
        return from.size();
    }
};

/// `guest_memory_port`.
struct guest_memory {
    vmm_memory& of;

    auto load(std::uint64_t address) -> port_value {
        ++of.calls;
        std::uint64_t const page = of.page_of(address / 4096);
        if (of.missing.count(address / 4096) != 0) { return {}; }
        return of.host.load(page * 4096 + address % 4096);
    }
    auto translate(std::uint64_t address, std::uint64_t bytes) -> vmx::translation {
        ++of.calls;
        std::uint64_t const first = address / 4096;
        std::uint64_t const page = of.page_of(first);
        if (of.missing.count(first) != 0) { return {vmx::backing::missing}; }
        std::uint64_t run = 1;
        while (run < bytes / 4096 && run < 8 && of.page_of(first + run) == page + run &&
               of.missing.count(first + run) == 0) {
            ++run;
        }
        return {vmx::backing::mapped, page * 4096, run * 4096};
    }
};

/// A VMM with one guest on one processor.
class virtual_machine {
public:
    using ctl = access::ia32_rtit_ctl;
    static constexpr std::uint64_t host_ip = 0xFFFF'8000'0010'0000;

    virtual_machine(cpu::capabilities const& host_caps, cpu::capabilities const& guest_caps,
                    vmx::guest_output output, std::function<std::uint64_t()> random,
                    std::size_t shadow_pages = 64)
        : own_controls{vmx::with_guest_pt(host_caps, {.enable_ept = true}, output)},
          host_caps_{host_caps},
          processor{host_caps, memory, tap_, host_code(), host_ip} {
        memory.random = std::move(random);
        guest.caps = guest_caps;
        guest.output = output;
        entries_.resize(shadow_pages * 512);
        origins_.resize(shadow_pages * 512);
        for (std::size_t i = 0; i < shadow_pages; ++i) {
            std::uint64_t const page = 0x3'0000 + 2 * i;
            pages_.push_back({page * 4096, &entries_[512 * i], &origins_[512 * i]});
            memory.readable.insert(page);
        }
    }
    virtual_machine(virtual_machine const&) = delete;
    auto operator=(virtual_machine const&) -> virtual_machine& = delete;

    static auto host_code() -> engine::execution_context { return {.cr3 = 0x1000}; }

    /// Enters the guest at an IP. False if entry was refused.
    auto run(std::uint64_t ip, engine::execution_context code) -> bool {
        code.vmx_non_root = true;
        memory.uses_ept = false;
        if (guest.needs_shadow()) { build_shadow(); }
        auto const set = vmx::merged_controls(own_controls, guest);
        auto const entry = vmx::enter(guest, shadow, set, host, processor);
        if (!entry) { return false; }
        memory.uses_ept = guest_output_of(set) == vmx::guest_output::guest_physical;
        (void)processor.on(engine::action::vm_entry{host_ip, ip, code, {true, entry.ctl}});
        return processor.msrs().ctl == entry.ctl;
    }
    /// A VM exit of the guest at an IP. False if its position was lost.
    auto exit(std::uint64_t ip) -> bool {
        (void)processor.on(engine::action::vm_exit{
            .from = ip, .to = host_ip, .after = host_code(), .loads = {true, {}}});
        memory.uses_ept = false;
        (void)vmx::take_topa_pmi(guest, host, processor);
        return static_cast<bool>(vmx::leave(guest, shadow, host, processor));
    }

    vmx::controls own_controls;
    vmm_memory memory;
    vmx::guest_pt guest;
    vmx::shadow shadow;
    vmx::host_pt host;
    std::uint64_t out_of_room = 0;
    std::uint64_t max_calls = 0;  ///< of the guest memory port, for one enable

private:
    void build_shadow() {
        memory.calls = 0;
        if (begin_shadow(guest, shadow, host_caps_, pages_.data(), pages_.size()) != rule::none) {
            return;
        }
        guest_memory port{memory};
        while (true) {
            auto const built = shadow.build(port, 1000);
            if (built) { break; }
            if (built.what == vmx::shadow_progress::missing_page) {
                memory.missing.erase(built.address.value / 4096);
            } else if (built.what == vmx::shadow_progress::no_room) {
                ++out_of_room;
                if (!shadow.end_with_error()) { break; }
            } else if (built.what != vmx::shadow_progress::paused) {
                break;
            }
        }
        max_calls = std::max(max_calls, memory.calls);
        for (std::size_t i = 0; i < shadow.pages_used(); ++i) { copy_table(pages_[i]); }
    }
    void copy_table(vmx::shadow_page const& from) {
        for (std::size_t i = 0; i < 512; ++i) {
            byte_array<8> bytes;
            store_le64(bytes.data(), from.entries[i].raw);
            (void)memory.host.store(from.address.value + 8 * i, bytes);
        }
    }

    cpu::capabilities host_caps_;
    std::vector<topa::entry> entries_;
    std::vector<topa::position> origins_;
    std::vector<vmx::shadow_page> pages_;
    simulate::no_tap tap_{};

public:
    simulate::fake_processor<vmm_memory> processor;
};

}  // namespace ptspec::test
