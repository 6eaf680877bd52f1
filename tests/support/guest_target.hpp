// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/random_numbers.hpp>
#include <support/virtual_machine.hpp>

#include <ptspec/suite/model_target.hpp>
#include <ptspec/vmx/guest_cpuid.hpp>
#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/msr_exits.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace ptspec::test {

/// What a VMM forgets.
enum class vmm_fault : uint8_t {
    none,
    passes_ctl,      ///< accesses to IA32_RTIT_CTL reach the processor
    passes_status,   ///< and those to IA32_RTIT_STATUS
    host_cpuid,      ///< CPUID is the host's
    keeps_base,      ///< VM entry leaves IA32_RTIT_OUTPUT_BASE of the host
    keeps_pointers,  ///< VM exit does not read IA32_RTIT_OUTPUT_MASK_PTRS
    no_pmi,          ///< no virtual PMI
    absent_msrs,     ///< MSRs that the guest lacks read as 0, and writes are dropped
};

/// A guest of `virtual_machine` as a target of the suite.
class guest_target {
    using ctl = access::ia32_rtit_ctl;

public:
    static constexpr uint64_t code_address = 0xFFFF'9000'0040'0000;
    static constexpr uint64_t given_address = 0x20'0000;
    static constexpr uint32_t pages = 16;
    static constexpr uint64_t cr3_value = 0x77'1000;

    guest_target(cpu::capabilities const& host, cpu::capabilities const& guest,
                 vmx::guest_output output, vmm_fault fault = vmm_fault::none)
        : fault_{fault},
          host_caps_{host},
          vm_{host, guest, output, [this] { return random_(); }},
          bytes_(pages * suite::given_memory::page_bytes),
          before_(bytes_) {
        vm_.processor.conceal({.non_root = true, .exits = true, .entries = true});
        tick();
        enter(code_address);
    }

    auto query(uint32_t leaf, uint32_t subleaf) -> cpuid_registers {
        auto const& caps = fault_ == vmm_fault::host_cpuid ? host_caps_ : vm_.guest.caps;
        return simulate::capabilities_cpuid{caps}.query(leaf, subleaf);
    }
    auto memory() -> suite::given_memory { return {{given_address}, bytes_.data(), pages}; }
    auto abilities() -> suite::ability_set {
        using suite::ability;
        return suite::ability_set{}
            .with(ability::enable)
            .with(ability::execute)
            .with(ability::interrupt)
            .with(ability::global_status);
    }
    auto address_of(suite::snippet const&) -> uint64_t { return code_address; }
    auto cr3() -> uint64_t { return cr3_value; }
    void note(text, access::msr_state const&) {}
    auto xsaves(reg::xsave_pt_state&) -> suite::msr_result { return {.is_asked = false}; }
    auto xrstors(reg::xsave_pt_state const&) -> suite::msr_result { return {.is_asked = false}; }
    auto reset(suite::reset_kind) -> bool { return false; }

    auto read(uint32_t index) -> suite::msr_result {
        if (!access::is_pt_msr(index)) { return read_status(index); }
        if (passes(index)) { return result_of(vm_.processor.read(index)); }
        switch (access_of_guest(vm_.guest, index)) {
            case vmx::guest_access::pass_through: return result_of(vm_.processor.read(index));
            case vmx::guest_access::intercept: {
                exit();
                auto const answer = on_rdmsr(vm_.guest, index);
                enter(ip_);
                return answer ? suite::msr_result{.is_done = true, .value = answer.value} : gp();
            }
            default: return absent();
        }
    }
    auto write(uint32_t index, uint64_t value) -> suite::msr_result {
        if (!access::is_pt_msr(index)) { return write_status(index, value); }
        if (passes(index)) { return result_of(vm_.processor.write(index, value)); }
        switch (access_of_guest(vm_.guest, index)) {
            case vmx::guest_access::pass_through:
                return result_of(vm_.processor.write(index, value));
            case vmx::guest_access::intercept: {
                exit();
                auto const answer = on_wrmsr(vm_.guest, index, value);
                ip_ += answer ? 2U : 0U;
                enter(ip_);
                return answer ? suite::msr_result{.is_done = true} : gp();
            }
            default: return absent();
        }
    }
    auto execute(suite::snippet const& code, uint64_t on, uint64_t off) -> suite::snippet_run {
        tick();
        suite::snippet_run done{.tsc_before = clock_.tsc};
        go_to(suite::snippet::enable_at);
        done.enabled = write(ctl::address, on);
        if (!done.enabled.is_done) { return done; }
        for (unsigned i = 0; i < code.step_count; ++i) {
            tick(suite::model_clock::cycles_of(i));
            take(code, code.steps[i]);
        }
        tick();
        go_to(code.disable_at);
        done.disabled = write(ctl::address, off);
        done.tsc_after = clock_.tsc;
        exit();
        enter(ip_);
        return done;
    }
    auto pmi() -> bool {
        exit();
        bool const came = vmx::take_pmi(vm_.guest);
        enter(ip_);
        return came && fault_ != vmm_fault::no_pmi;
    }

    [[nodiscard]] auto violations() const -> uint64_t { return vm_.memory.violations; }

private:
    static auto gp() -> suite::msr_result {
        return {.vector = suite::msr_result::general_protection};
    }
    static auto result_of(port_value got) -> suite::msr_result {
        return got ? suite::msr_result{.is_done = true, .value = got.value} : gp();
    }
    static auto result_of(bool done) -> suite::msr_result {
        return done ? suite::msr_result{.is_done = true} : gp();
    }
    auto absent() const -> suite::msr_result {
        return fault_ == vmm_fault::absent_msrs ? suite::msr_result{.is_done = true} : gp();
    }
    [[nodiscard]] auto passes(uint32_t index) const -> bool {
        return (fault_ == vmm_fault::passes_ctl && index == ctl::address) ||
               (fault_ == vmm_fault::passes_status && index == access::ia32_rtit_status::address);
    }
    auto read_status(uint32_t index) -> suite::msr_result {
        exit();
        enter(ip_);
        uint64_t const value = vm_.guest.msrs.perf_global_status.raw;
        return index == reg::ia32_perf_global_status::address
                   ? suite::msr_result{.is_done = true, .value = value}
                   : gp();
    }
    auto write_status(uint32_t index, uint64_t value) -> suite::msr_result {
        exit();
        auto const answer = on_global_status_write(vm_.guest, index, value);
        enter(ip_);
        return answer ? suite::msr_result{.is_done = true} : gp();
    }

    void enter(uint64_t ip) {
        push();
        ip_ = ip;
        auto const base = vm_.guest.msrs.output.base;
        if (fault_ == vmm_fault::keeps_base) { vm_.guest.msrs.output.base = {0x9'0000}; }
        (void)vm_.run(ip, {.cr3 = cr3_value});
        if (fault_ == vmm_fault::keeps_base) { base_ = base; }
    }
    void exit() {
        auto const pointers = vm_.guest.msrs.output.mask_ptrs;
        push();
        (void)vm_.exit(ip_);
        if (fault_ == vmm_fault::keeps_base) { vm_.guest.msrs.output.base = base_; }
        if (fault_ == vmm_fault::keeps_pointers) { vm_.guest.msrs.output.mask_ptrs = pointers; }
        for (uint32_t i = 0; i < pages; ++i) { std::memcpy(page(i), guest_page(i), 4096); }
        before_ = bytes_;
    }
    /// Gives the guest the pages that the check has changed.
    void push() {
        for (uint32_t i = 0; i < pages; ++i) {
            auto* const old = before_.data() + i * 4096UL;
            if (std::memcmp(page(i), old, 4096) == 0) { continue; }
            std::memcpy(guest_page(i), page(i), 4096);
            std::memcpy(old, page(i), 4096);
        }
    }
    auto page(uint32_t number) -> uint8_t* { return bytes_.data() + number * 4096UL; }
    auto guest_page(uint32_t number) -> uint8_t* {
        return vm_.memory.host.pages[vm_.memory.page_of(given_address / 4096 + number)].data();
    }
    void go_to(uint16_t offset) {
        ip_ = code_address + offset;
        (void)vm_.processor.on(engine::action::sequential{ip_});
    }
    void tick(uint64_t cycles = suite::model_clock::cycles_of_step) {
        (void)vm_.processor.on(clock_.step(host_caps_, cycles));
    }
    void take(suite::snippet const& code, suite::snippet_step const& one) {
        auto const executed = suite::execution_of(code, one, code_address, cr3_value,
                                                  vm_.processor.unit().state().code);
        simulate::take_action(executed,
                              [&](auto const& action) { (void)vm_.processor.on(action); });
        ip_ = executed.to;
    }

    vmm_fault fault_;
    random_numbers random_{};
    cpu::capabilities host_caps_;
    virtual_machine vm_;
    std::vector<uint8_t> bytes_;
    std::vector<uint8_t> before_;  ///< as the guest has them
    uint64_t ip_ = 0;
    suite::model_clock clock_{1'000'000};
    access::ia32_rtit_output_base base_{};
};
static_assert(suite::target<guest_target>);

}  // namespace ptspec::test
