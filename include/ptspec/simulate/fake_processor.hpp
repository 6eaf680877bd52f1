// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/pmi.hpp>
#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/simulate/capabilities_cpuid.hpp>

/// A logical processor for tests of drivers: CPUID, MSRs, the trace unit, and its PMI.
namespace ptspec::simulate {

/// Why an access of a `fake_processor` failed. Not a result: it does not convert to bool.
struct fake_fault {
    rule broken = rule::none;  ///< the rule of a #GP; none for an unknown MSR
    bool is_unknown_msr = false;
    port_fault memory{};  ///< the memory port failed: retry the access

    friend constexpr auto operator==(fake_fault const&, fake_fault const&) -> bool = default;
};

namespace detail {

/// A memory port whose interrupts are recorded, and whose stored bytes are passed to `tap`.
template <memory_port Memory, class Tap>
struct tapped_memory {
    Memory& memory;
    Tap& tap;
    bool& interrupt;

    constexpr auto load(uint64_t address) noexcept -> port_value { return memory.load(address); }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        size_t const stored = memory.store(address, bytes);
        tap(address, bytes.first(stored));
        return stored;
    }
    using ignores_fabric = choose_t<memory_port_members<Memory>::has_send, void, tapped_memory>;
    constexpr auto send(byte_view bytes) noexcept -> size_t { return memory.send(bytes); }
    constexpr void raise() noexcept { interrupt = true; }
};

}  // namespace detail

/// Ignores the bytes of trace.
struct no_tap {
    constexpr void operator()(uint64_t, byte_view) const noexcept {}
};

/// A logical processor. Each action and access goes to its trace unit, whose bytes go to the memory
/// port and, if there is a tap, to `tap(address, bytes)`; its PMIs become pending and are delivered
/// by `deliver_pmi`.
///
/// It is an `msr_port` and a `cpuid_port`. An access is made by the instruction at the current IP,
/// at its CPL: above 0 it raises #GP. Besides the MSRs of the trace unit it has
/// IA32_PERF_GLOBAL_CTRL, the x2APIC LVT entry, and the capability MSRs. All others raise #GP.
///
/// Shape:  a value, except that it borrows the memory port and the tap.
/// Source: as `engine::trace_unit`; OUT-082..087, REG-002, REG-203..205.
template <memory_port Memory, class Tap = no_tap const, size_t Depth = 1024>
class fake_processor {
public:
    static_assert(callable<Tap&, uint64_t, byte_view>,
                  "the tap of a processor is called with (uint64_t address, ptspec::byte_view "
                  "bytes)");

    /// The length of WRMSR, in bytes.
    static constexpr unsigned wrmsr_bytes = 2;

    /// Without options it has those of its kind, as `engine::trace_unit`.
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             engine::execution_context const& code = {}, uint64_t ip = 0) noexcept
        : fake_processor{caps, memory, tap, code, ip, engine::options_of(caps)} {}
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             engine::execution_context const& code, uint64_t ip,
                             engine::model_options const& options) noexcept
        : fake_processor{caps, memory, tap, access::msr_state{}, code, ip, options} {}
    /// A processor that has executed for a while, as `engine::trace_unit`.
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             access::msr_state const& msrs, engine::execution_context const& code,
                             uint64_t ip) noexcept
        : fake_processor{caps, memory, tap, msrs, code, ip, engine::options_of(caps)} {}
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             access::msr_state const& msrs, engine::execution_context const& code,
                             uint64_t ip, engine::model_options const& options) noexcept
        : caps_{caps}, memory_{memory}, tap_{tap}, unit_{caps, msrs, code, ip, options} {}
    /// The same without a tap.
    constexpr explicit fake_processor(cpu::capabilities const& caps, Memory& memory,
                                      engine::execution_context const& code = {},
                                      uint64_t ip = 0) noexcept
        requires same_as<Tap, no_tap const>
        : fake_processor{caps, memory, no_tap{}, code, ip} {}
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory,
                             engine::execution_context const& code, uint64_t ip,
                             engine::model_options const& options) noexcept
        requires same_as<Tap, no_tap const>
        : fake_processor{caps, memory, no_tap{}, code, ip, options} {}

    // -------------------------------------------------------------------------------- ports

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
        -> cpuid_registers {
        return capabilities_cpuid{caps_}.query(leaf, subleaf);
    }

    constexpr auto read(uint32_t index) noexcept -> port_value {
        fault_ = {};
        if (cpl() != 0) {
            fault_.broken = rule::REG_002;
            return {};
        }
        if (auto const* const word = stored_msr(index)) { return {true, *word}; }
        if (auto const value = capability_msr(index)) { return value; }
        auto const got = unit_.rdmsr(index);
        if (!got) {
            fault_ = {.broken = got.verdict.broken,
                      .is_unknown_msr = got.verdict.what == access::outcome::not_covered};
            return {};
        }
        return {true, got.value};
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        fault_ = {};
        if (cpl() != 0) {
            fault_.broken = rule::REG_002;
            return false;
        }
        if (auto* const word = stored_msr(index)) {
            *word = value;
            return true;
        }
        auto const result = run([&](auto& memory) {
            return unit_.wrmsr({.index = index,
                                .value = value,
                                .at = unit_.ip(),
                                .next = unit_.ip() + wrmsr_bytes},
                               memory);
        });
        fault_ = {.broken = result.broken,
                  .is_unknown_msr = result.what == engine::access_outcome::not_covered,
                  .memory = result.fault};
        return result.took_effect();
    }
    /// Counts the fences.
    constexpr void fence() noexcept { ++fences_; }

    /// Why the last access failed.
    [[nodiscard]] constexpr auto fault() const noexcept -> fake_fault { return fault_; }
    [[nodiscard]] constexpr auto fences() const noexcept -> uint64_t { return fences_; }

    // -------------------------------------------------------------------------------- execution

    /// Executes an action of `engine::action`.
    template <class Action>
    constexpr auto on(Action const& e) noexcept -> port_fault {
        return run([&](auto& memory) { return unit_.on(e, memory); });
    }
    /// Enters user code at `ip` with SYSRET: its CPL is 3, and the rest of the context stays.
    /// `action::far_transfer` can enter any context, in its `after`; by default that has CPL 0.
    constexpr auto enter_user(uint64_t ip) noexcept -> port_fault {
        auto after = unit_.state().code;
        after.cpl = 3;
        return on(engine::action::far_transfer{
            .at = unit_.ip(), .to = ip, .after = after, .kind = engine::action::far_kind::sysret});
    }
    /// The CPL of the code that executes.
    [[nodiscard]] constexpr auto cpl() const noexcept -> unsigned {
        return unit_.state().code.counted_cpl();
    }
    /// Sets the controls by which a VMM conceals VMX operation, as of `engine::trace_unit`.
    constexpr void conceal(engine::vmx_concealment const& concealment) noexcept {
        unit_.conceal(concealment);
    }
    /// Sets the last IP of earlier packets, as of `engine::trace_unit`.
    constexpr void set_last_ip(uint64_t ip) noexcept { unit_.set_last_ip(ip); }
    constexpr auto xsaves() noexcept -> engine::xsaves_result {
        return run([&](auto& memory) {
            return unit_.xsaves(unit_.ip(), unit_.ip() + xsaves_bytes, memory);
        });
    }
    /// XSAVES that faults, as of `engine::trace_unit`: the IP stays, and TraceEn is as before.
    constexpr auto xsaves_that_faults() noexcept -> engine::access_result {
        return run([&](auto& memory) { return unit_.xsaves_that_faults(unit_.ip(), memory); });
    }
    constexpr auto xrstors(access::xsave_pt_state const& image) noexcept -> engine::xrstors_result {
        return run([&](auto& memory) {
            return unit_.xrstors(image, unit_.ip(), unit_.ip() + xsaves_bytes, memory);
        });
    }
    /// XRSTORS of an area whose XSTATE_BV[8] is 0: see `parsed_area::is_initial`.
    constexpr auto xrstors_init() noexcept -> engine::xrstors_result {
        return run(
            [&](auto& memory) { return unit_.xrstors_init(unit_.ip() + xsaves_bytes, memory); });
    }
    constexpr void warm_reset(engine::execution_context const& after, uint64_t ip) noexcept {
        unit_.warm_reset(after, ip);
        lvt_ = masked_lvt;
        pmi_pending_ = false;
        interrupted_.is_known = false;
    }
    constexpr void cold_reset(engine::execution_context const& after, uint64_t ip) noexcept {
        unit_.cold_reset(after, ip);
        lvt_ = masked_lvt;
        global_ctrl_ = 0;
        pmi_pending_ = false;
        interrupted_.is_known = false;
    }

    // -------------------------------------------------------------------------------- the PMI

    /// True if `deliver_pmi` would deliver: a PMI is pending, and the LVT entry is not masked.
    [[nodiscard]] constexpr auto pmi_is_deliverable() const noexcept -> bool {
        return pmi_pending_ && !reg::ia32_x2apic_lvt_pmi{lvt_}.get<lvt::Mask>();
    }
    /// Delivers a pending PMI: the LVT entry becomes masked. False if there is none to deliver.
    ///
    /// At CPL 3 this is an interrupt: the handler executes in 64-bit code at CPL 0, from `handler`
    /// on, until `return_from_pmi`. At CPL 0 the handler is part of the code that it interrupts.
    ///
    /// Source: GEN-110, GEN-113, OUT-082..087.
    constexpr auto deliver_pmi(uint64_t handler = 0xFFFF'8000'0000'0000) noexcept -> bool {
        if (!pmi_is_deliverable()) { return false; }
        pmi_pending_ = false;
        uint8_t const vector = static_cast<uint8_t>(lvt{lvt_}.template get<lvt::Vector>());
        lvt_ = access::after_delivery(lvt{lvt_}).raw;
        if (access::deliver_pmi(caps_, unit_.msrs()).clears_global_ctrl) { global_ctrl_ = 0; }
        if (cpl() == 0) {
            nested_ += interrupted_.is_known ? 1U : 0U;
            return true;
        }
        interrupted_ = {true, unit_.state().code, unit_.ip()};
        nested_ = 0;
        auto after = interrupted_.code;
        after.cs_base = 0;
        after.cpl = 0;
        after.width = engine::code_width::bits_64;
        after.real_mode = after.virtual_8086 = after.IF = false;
        after.inside = engine::enclave::none;
        fault_ = {.memory = on(engine::action::interrupt{
                      .next = interrupted_.ip, .to = handler, .after = after, .vector = vector})};
        return true;
    }
    /// IRET of the handler of a PMI that came at CPL 3: the interrupted code continues. No effect
    /// after a PMI that came at CPL 0.
    constexpr auto return_from_pmi() noexcept -> port_fault {
        if (!interrupted_.is_known) { return {}; }
        if (nested_ != 0) {
            --nested_;
            return {};
        }
        interrupted_.is_known = false;
        return on(engine::action::far_transfer{.at = unit_.ip(),
                                               .to = interrupted_.ip,
                                               .after = interrupted_.code,
                                               .kind = engine::action::far_kind::iret});
    }

    // -------------------------------------------------------------------------------- state

    [[nodiscard]] constexpr auto unit() const noexcept -> engine::trace_unit<Depth> const& {
        return unit_;
    }
    [[nodiscard]] constexpr auto msrs() const noexcept -> access::msr_state { return unit_.msrs(); }
    /// True if TraceEn is 1.
    [[nodiscard]] constexpr auto is_tracing() const noexcept -> bool {
        return unit_.state().template ctl<reg::ia32_rtit_ctl::TraceEn>();
    }
    /// The rule by which tracing ended while TraceEn stays 1: of STOP, TraceStop or an operational
    /// error. None if tracing runs, or TraceEn is 0.
    [[nodiscard]] constexpr auto why_stopped() const noexcept -> rule {
        bool const runs = unit_.msrs().status.template get<reg::ia32_rtit_status::TriggerEn>();
        if (runs || !is_tracing()) { return rule::none; }
        rule const of_output = unit_.ended_by();
        return of_output != rule::none ? of_output : rule::REG_068;
    }
    /// How often TraceEn became 1, and 0, other than by a reset.
    [[nodiscard]] constexpr auto times_enabled() const noexcept -> uint64_t { return enabled_; }
    [[nodiscard]] constexpr auto times_disabled() const noexcept -> uint64_t { return disabled_; }

private:
    using lvt = reg::ia32_x2apic_lvt_pmi;
    static constexpr unsigned xsaves_bytes = 4;  // XSAVES64, XRSTORS64
    static constexpr uint64_t masked_lvt = lvt{}.with(lvt::Mask{true}).raw;

    /// Calls a function of the unit with the memory port, and counts changes of TraceEn.
    template <class Function>
    constexpr auto run(Function function) noexcept {
        bool const was_on = is_tracing();
        detail::tapped_memory<Memory, Tap> memory{memory_, tap_, pmi_pending_};
        auto const result = function(memory);
        bool const is_on = is_tracing();
        enabled_ += !was_on && is_on;
        disabled_ += was_on && !is_on;
        return result;
    }
    [[nodiscard]] constexpr auto stored_msr(uint32_t index) noexcept -> uint64_t* {
        return index == reg::ia32_perf_global_ctrl::address ? &global_ctrl_
               : index == lvt::address                      ? &lvt_
                                                            : nullptr;
    }
    [[nodiscard]] constexpr auto capability_msr(uint32_t index) const noexcept -> port_value {
        switch (index) {
            case reg::msr_platform_info::address: return {true, caps_.platform_info.raw};
            case reg::ia32_perf_capabilities::address: return {true, caps_.perf_capabilities.raw};
            case reg::ia32_vmx_misc::address: return {true, caps_.vmx_misc.raw};
            case reg::ia32_vmx_procbased_ctls2::address:
                return {true, caps_.vmx_procbased_ctls2.raw};
            case reg::ia32_vmx_exit_ctls::address: return {true, caps_.vmx_exit_ctls.raw};
            case reg::ia32_vmx_entry_ctls::address: return {true, caps_.vmx_entry_ctls.raw};
            default: return {};
        }
    }

    cpu::capabilities caps_;
    Memory& memory_;
    choose_t<same_as<Tap, no_tap const>, no_tap, Tap&> tap_;
    engine::trace_unit<Depth> unit_;
    uint64_t global_ctrl_ = 0;
    uint64_t lvt_ = masked_lvt;
    bool pmi_pending_ = false;
    /// The code that a PMI interrupted at CPL 3.
    struct interrupted {
        bool is_known = false;
        engine::execution_context code{};
        uint64_t ip = 0;
    };
    interrupted interrupted_{};
    unsigned nested_ = 0;  ///< PMIs in the handler of that one
    fake_fault fault_{};
    uint64_t fences_ = 0;
    uint64_t enabled_ = 0;
    uint64_t disabled_ = 0;
};

}  // namespace ptspec::simulate
