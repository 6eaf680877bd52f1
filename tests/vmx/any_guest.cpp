// SPDX-License-Identifier: BSL-1.0
// Whatever a guest does to its Intel PT, its image loads, and it can be entered. Guests with random
// capabilities, on hosts with guest-physical output and with shadow tables, write MSRs, load XSAVE
// images, take SMIs, are reset, and run guests of their own; the host may trace, too. The
// environment variable PTSPEC_ANY_GUEST sets the count of operations.
#include <ptspec/vmx/guest_cpuid.hpp>

#include <support/dice.hpp>
#include <support/how_many.hpp>
#include <support/virtual_machine.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/guest_image.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace ptspec;
using vmx::guest_level;
using vmx::guest_output;

namespace {

using ctl = access::ia32_rtit_ctl;

struct counts {
    std::uint64_t operations = 0;
    std::uint64_t traced = 0;     ///< operations after which TraceEn was 1
    std::uint64_t executed = 0;   ///< times that code was traced
    std::uint64_t pmis = 0;       ///< of guests
    std::uint64_t host_pmis = 0;  ///< of hosts
    std::uint64_t shutdowns = 0;  ///< by a rule of the CTL that SMM left
    std::uint64_t nested = 0;     ///< operations in L2
    std::uint64_t in_smm = 0;
    std::uint64_t hides_topa = 0;    ///< operations of guests without ToPA,
    std::uint64_t hides_single = 0;  ///< without single-range output,
    std::uint64_t hides_mtc = 0;     ///< and without MTC
};

/// A host that can give guests Intel PT in this way.
auto hosts_for(guest_output output) -> std::vector<cpu::capabilities> {
    std::vector<cpu::capabilities> found;
    for (auto const& one : cpu::preset::all) {
        if (vmx::guest_capabilities(one.value, {.output = output})) { found.push_back(one.value); }
    }
    return found;
}

/// What CPUID tells a guest: what the host offers, with some bits of leaf 14H less.
auto any_caps(test::dice const& from, cpu::capabilities const& host, guest_output output)
    -> cpu::capabilities {
    vmx::guest_policy const how{
        .output = output, .xsaves = from.chance(50), .nested = from.chance(60)};
    auto caps = vmx::guest_capabilities(host, how).value;
    for (auto hidden = from.roll(6); hidden != 0; --hidden) {
        std::uint32_t const bit = ~(std::uint32_t{1} << from.roll(9));
        switch (from.roll(6)) {
            case 0:
            case 1: caps.leaf_14_0_ebx.raw &= bit; break;
            case 2:
            case 3: caps.leaf_14_0_ecx.raw &= ~(std::uint32_t{1} << from.roll(3)); break;
            case 4: caps.leaf_14_1_eax.raw &= ~(std::uint32_t{1} << from.roll(32)); break;
            default: caps.leaf_14_1_ebx.raw &= ~(std::uint32_t{1} << from.roll(32)); break;
        }
    }
    return caps;
}

class any_guest {
public:
    any_guest(test::dice from, cpu::capabilities const& host, guest_output output, counts& seen)
        : from_{std::move(from)},
          seen_{seen},
          vm_{host, any_caps(from_, host, output), output,
              [random = from_] { return random.roll(std::uint64_t{1} << 62); }, 32},
          caps_{vm_.guest.caps} {
        for (std::uint64_t table = 1; table <= tables; ++table) { make_table(table * 0x1000); }
        if (from_.chance(50)) { start_host(host); }
    }

    void step() {
        ++seen_.operations;
        operate();
        check_guest();
        check_entry();
    }
    std::string difference;

private:
    static constexpr std::uint64_t tables = 4;
    static constexpr std::uint64_t host_table = 0x1'0000'0000;

    [[nodiscard]] auto has_topa() const -> bool { return (caps_.leaf_14_0_ecx.raw & 1U) != 0; }
    [[nodiscard]] auto has_single_range() const -> bool {
        return (caps_.leaf_14_0_ecx.raw & 4U) != 0;
    }
    [[nodiscard]] auto has_mtc() const -> bool { return (caps_.leaf_14_0_ebx.raw & 8U) != 0; }

    void differ(std::string const& what) {
        if (difference.empty()) { difference = what; }
    }

    // ------------------------------------------------------------------------- the host

    /// The host traces to two regions of a page, with an interrupt after each.
    void start_host(cpu::capabilities const& host) {
        std::uint64_t const page = host_table / 4096;
        for (std::uint64_t i = 1; i < 3; ++i) { vm_.memory.writable.insert(page + i); }
        vm_.memory.readable.insert(page);
        host_entry(0, (host_table + 0x1000) | 4U);
        host_entry(1, (host_table + 0x2000) | 4U);
        host_entry(2, host_table | 1U);
        auto& cpu = vm_.processor;
        bool const inject = (host.leaf_14_0_ebx.raw & 1U << 6) != 0 && from_.chance(50);
        (void)cpu.write(0x560, host_table);
        (void)cpu.write(0x561, std::uint64_t{0xF00} << 32 | 0x7F);
        host_traces_ = cpu.write(0x570, 0x2105 | (inject ? std::uint64_t{1} << 56 : 0));
    }
    void host_entry(std::uint64_t index, std::uint64_t entry) {
        byte_array<8> bytes;
        store_le64(bytes.data(), entry);
        (void)vm_.memory.host.store(host_table + 8 * index, bytes);
    }
    /// The handler of the host: without it the next `enter` could not tell whose the PMI is.
    void handle_host_pmi() {
        auto const pending = vmx::find_topa_pmi(vm_.processor);
        if (!pending.is_pending) { return; }
        ++seen_.host_pmis;
        if (!host_traces_) { differ("a PMI of a host that does not trace"); }
        auto& cpu = vm_.processor;
        auto const was = cpu.read(0x570).value;
        bool done = cpu.write(0x570, was & ~std::uint64_t{1});
        done = done && cpu.write(0x571, cpu.read(0x571).value & ~std::uint64_t{0xF0});
        done = done && cpu.write(0x390, std::uint64_t{1} << 55) && cpu.write(0x570, was);
        if (!done) { differ("the host cannot handle its PMI"); }
    }

    // ------------------------------------------------------------------------- the guest

    void store(std::uint64_t address, std::uint64_t value) {
        for (unsigned i = 0; i < 8; ++i) {
            vm_.memory.guest_byte(address + i) = static_cast<std::uint8_t>(value >> (8 * i));
        }
    }
    /// Regions of a page, often with INT, and a link.
    void make_table(std::uint64_t at) {
        std::uint64_t const count = 1 + from_.roll(3);
        for (std::uint64_t i = 0; i < count; ++i) {
            store(at + 8 * i, (0x10'0000 + 0x1000 * from_.roll(8)) | (from_.chance(60) ? 4U : 0U) |
                                  (from_.chance(5) ? 16U : 0U) | (from_.chance(3) ? 2U : 0U));
        }
        store(at + 8 * count, (0x1000 * (1 + from_.roll(tables))) | 1U);
    }
    auto any_ctl() const -> std::uint64_t {
        std::uint64_t made = 0x4 | from_.roll(2) | from_.roll(2) << 1;
        if (from_.chance(80)) { made |= 0x2000; }
        if (from_.chance(60)) { made |= 0x100; }
        if (from_.chance(20)) { made |= 0x800; }
        if (from_.chance(10)) { made |= 0x200 | from_.roll(16) << 14; }
        if (from_.chance(40)) { made |= std::uint64_t{1} << 56; }
        if (from_.chance(10)) { made |= from_.roll(4) << 32; }
        if (from_.chance(10)) { made |= std::uint64_t{1} << from_.roll(64); }
        return made;
    }
    auto any_value(std::uint32_t index) const -> std::uint64_t {
        if (from_.chance(5)) { return from_.roll(~std::uint64_t{0}); }
        switch (index) {
            case 0x560: return 0x1000 * (1 + from_.roll(tables));
            case 0x561:
                return (0x1000 - from_.roll(0x80)) % 0x1000 << 32 |
                       (from_.chance(50) ? 0x7F : 0xFFF);
            case 0x570: return from_.chance(20) ? 0 : any_ctl();
            case 0x571:
                return (from_.chance(30) ? from_.roll(0x20000) << 32 : 0) |
                       (from_.chance(60) ? from_.roll(16) << 4 & 0xC0 : from_.roll(16) << 4);
            default: return 0x1000 * from_.roll(8);
        }
    }
    auto any_msr() const -> std::uint32_t {
        constexpr std::uint64_t indices[] = {0x560, 0x561, 0x570, 0x570, 0x570, 0x571, 0x571,
                                             0x572, 0x580, 0x581, 0x582, 0x587, 0x562};
        return static_cast<std::uint32_t>(from_.one_of(indices));
    }
    /// As a driver does it, with a STATUS that it may have saved.
    void enable() {
        auto& guest = vm_.guest;
        (void)on_wrmsr(guest, 0x570, 0);
        for (std::uint32_t const index : {0x571U, 0x560U, 0x561U}) {
            (void)on_wrmsr(guest, index, any_value(index));
        }
        for (std::uint64_t const extra : {std::uint64_t{1} << 56, std::uint64_t{0}}) {
            for (std::uint64_t const made : {0x2105U, 0x2005U, 0x105U, 0x5U}) {
                if (from_.chance(70) && on_wrmsr(guest, 0x570, made | extra)) { return; }
            }
        }
    }
    void load_xsave_area() {
        auto image = saved_;
        if (from_.chance(40)) {
            image = image.with(access::xsave_pt_state::IA32_RTIT_CTL{ctl{any_ctl()}});
        }
        if (from_.chance(30)) { image.quadwords[from_.roll(9)] = any_value(any_msr()); }
        (void)on_xrstors(vm_.guest, image);
    }
    void change_level() {
        auto& guest = vm_.guest;
        auto& msrs = guest.msrs;
        if (guest.level == guest_level::l2) {
            if (!leave_nested(guest, vmcs_)) { differ("L2 does not run"); }
        } else if (!msrs.in_smm && msrs.in_vmx_operation) {
            vmcs_ = {};
            if (from_.chance(70)) {
                auto const how = from_.chance(70) ? guest_output::guest_physical
                                                  : guest_output::shadow;
                vmcs_.set = vmx::with_guest_pt(caps_, {.enable_ept = true}, how);
            }
            if (from_.chance(10)) { vmcs_.set.vm_entry.raw ^= 1U << from_.roll(32); }
            if (from_.chance(10)) { vmcs_.set.secondary.raw ^= 1U << from_.roll(32); }
            if (from_.chance(70)) { vmcs_.guest_ctl = {any_ctl()}; }
            (void)enter_nested(guest, vmcs_);
        }
    }
    void change_vmx() {
        auto& guest = vm_.guest;
        if (guest.level == guest_level::l1 && !guest.msrs.in_smm) {
            from_.chance(80) ? vmxon(guest) : vmxoff(guest);
        }
    }
    /// RSM, often after SMM cleared the TraceEn that it had set for itself, in another CTL.
    void resume() {
        if (from_.chance(60)) {
            (void)on_wrmsr(vm_.guest, 0x570, any_ctl() & ~std::uint64_t{1});
            (void)on_wrmsr(vm_.guest, 0x570, 0);
        }
        if (from_.chance(50)) { (void)on_wrmsr(vm_.guest, 0x570, any_ctl() & ~std::uint64_t{1}); }
        auto const before = vm_.guest.msrs;
        auto const done = rsm(vm_.guest);
        if (done.outcome != access::rsm_outcome::shutdown) { return; }
        if (vm_.guest.msrs != before) { differ("RSM that shuts down changes an MSR"); }
        // The rule is read from the catalogue.
        auto const left = before.ctl.raw;
        bool const is_legal = (left & 0x140) != 0 || has_single_range();
        bool const has_branches = (left & 0x2000) != 0 || has_mtc();
        bool const is_named = (left & 1) != 0 ? done.broken == rule::REG_102
                              : !is_legal     ? done.broken == rule::REG_025
                              : !has_branches ? done.broken == rule::REG_040
                                              : done.broken == rule::REG_121;
        if (!is_named) { differ("the rule of RSM"); }
        seen_.shutdowns += (left & 1) == 0;
        if (from_.chance(80)) { warm_reset(vm_.guest); }
    }
    void operate() {
        auto& guest = vm_.guest;
        auto const roll = from_.roll(100);
        if (roll < 30) {
            auto const index = any_msr();
            (void)on_wrmsr(guest, index, any_value(index));
        } else if (roll < 45) {
            enable();
        } else if (roll < 50) {
            saved_ = on_xsaves(guest);
        } else if (roll < 57) {
            load_xsave_area();
        } else if (roll < 61) {
            smi(guest);
        } else if (roll < 73) {
            resume();
        } else if (roll < 75) {
            from_.chance(50) ? cold_reset(guest) : warm_reset(guest);
        } else if (roll < 78) {
            change_vmx();
        } else if (roll < 84) {
            change_level();
        } else if (roll < 87) {
            (void)on_global_status_write(guest, from_.chance(50) ? 0x390 : 0x391,
                                         std::uint64_t{1} << 55);
        } else if (roll < 90) {
            if (!restore(guest, guest.msrs)) { differ("its own MSRs are refused"); }
        } else if (roll < 95 && !guest.trace_en()) {
            make_table(0x1000 * (1 + from_.roll(tables)));
        } else {
            executes_ = true;
        }
    }

    // ------------------------------------------------------------------------- checks

    void check_guest() {
        auto const& guest = vm_.guest;
        vmx::guest_pt moved{.caps = guest.caps, .output = guest.output};
        auto const loaded = load(moved, vmx::store(guest));
        if (!loaded) {
            return differ("its image is refused, " + std::to_string(underlying(loaded.broken)));
        }
        if (moved.msrs != guest.msrs || moved.level != guest.level ||
            moved.nested != guest.nested || moved.pmi_pending != guest.pmi_pending ||
            moved.starts != guest.starts) {
            differ("its image differs");
        }
        auto const global = guest.msrs.perf_global_status.raw;
        if (!has_topa() && (global != 0 || guest.pmi_pending)) { differ("a PMI without ToPA"); }
        seen_.traced += guest.trace_en();
        seen_.nested += guest.level != guest_level::l1;
        seen_.in_smm += guest.msrs.in_smm;
        seen_.hides_topa += !has_topa();
        seen_.hides_single += !has_single_range();
        seen_.hides_mtc += !has_mtc();
    }
    void check_entry() {
        handle_host_pmi();
        auto& guest = vm_.guest;
        bool const traces = guest.trace_en();
        if (!vm_.run(ip_, {.cr3 = 0x3000, .vmx_non_root = true})) {
            return differ("VM entry is refused");
        }
        if (traces && (executes_ || from_.chance(10))) {
            ++seen_.executed;
            for (unsigned i = 0; i < 30; ++i) {
                ip_ = 0x2000 + from_.roll(0x4000);
                (void)vm_.processor.on(engine::action::indirect_jump{ip_});
            }
        }
        executes_ = false;
        if (!vm_.exit(ip_)) { differ("the position is lost"); }
        if (take_pmi(guest)) {
            ++seen_.pmis;
            if (!traces || guest.msrs.perf_global_status.raw >> 55 != 1) { differ("a PMI"); }
        }
        // Whose image was not moved keeps a bit of the guest in the processor.
        if (!host_traces_ && vmx::find_topa_pmi(vm_.processor).is_pending) {
            differ("a PMI of the guest stays in the processor");
        }
        if (vm_.memory.violations != 0) { differ("output outside the guest's memory"); }
        auto const image = vmx::store(guest);
        vmx::guest_pt moved{.caps = guest.caps, .output = guest.output};
        if (!load(moved, image)) { differ("its image after a VM exit is refused"); }
    }

    test::dice from_;
    counts& seen_;
    test::virtual_machine vm_;
    cpu::capabilities caps_;
    vmx::nested_vmcs vmcs_{};
    access::xsave_pt_state saved_{};
    std::uint64_t ip_ = 0x2000;
    bool host_traces_ = false;
    bool executes_ = false;
};

}  // namespace

TEST_CASE("whatever a guest does, its image loads and it can be entered (REG-025, REG-040, "
          "REG-108, REG-121, REG-204, PRG-171, PRG-173, PRG-177)") {
    auto const count = test::number_from("PTSPEC_ANY_GUEST", test::usual_count / 10);
    constexpr std::uint64_t in_a_world = 250;
    auto const with_ept = hosts_for(guest_output::guest_physical);
    auto const with_shadow = hosts_for(guest_output::shadow);
    REQUIRE(!with_ept.empty());
    REQUIRE(!with_shadow.empty());
    counts seen;
    unsigned wrong = 0;
    for (std::uint64_t seed = 0; seen.operations < count; ++seed) {
        test::dice const from{seed};
        bool const shadows = from.chance(50);
        auto const& hosts = shadows ? with_shadow : with_ept;
        auto const world = std::make_unique<any_guest>(
            from, hosts[from.roll(hosts.size())],
            shadows ? guest_output::shadow : guest_output::guest_physical, seen);
        std::uint64_t step = 0;
        while (step < in_a_world && world->difference.empty()) {
            world->step();
            ++step;
        }
        if (world->difference.empty()) { continue; }
        if (++wrong <= 10) {
            FAIL_CHECK("seed ", seed, ", operation ", step, ": ", world->difference);
        }
    }
    MESSAGE(seen.operations, " operations, ", wrong, " differences; ", seen.traced, " traced, ",
            seen.executed, " executed, ", seen.pmis, " PMIs, ", seen.host_pmis, " of hosts, ",
            seen.shutdowns, " shutdowns, ", seen.nested, " in L2, ", seen.in_smm,
            " in SMM; without ToPA ", seen.hides_topa, ", single range ", seen.hides_single,
            ", MTC ", seen.hides_mtc);
    CHECK(wrong == 0);
    if (count < 10'000) { return; }
    CHECK(seen.traced > count / 5);
    CHECK(seen.executed > count / 50);
    CHECK(seen.pmis > count / 1000);
    CHECK(seen.host_pmis > count / 1000);
    CHECK(seen.shutdowns > count / 2000);
    CHECK(seen.nested > count / 100);
    CHECK(seen.in_smm > count / 10);
    CHECK(seen.hides_topa > count / 50);
    CHECK(seen.hides_single > count / 50);
    CHECK(seen.hides_mtc > count / 50);
}
