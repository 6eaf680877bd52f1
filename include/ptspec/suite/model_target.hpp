// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/simulate/instruction_action.hpp>
#include <ptspec/suite/target.hpp>
#include <ptspec/x86/decode.hpp>

/// Targets that are models: a processor that obeys all rules, and models with a defect, which prove
/// that a check can fail.
namespace ptspec::suite {

/// How a model breaks the rules.
enum class defect : uint8_t {
    none,
    accepts_all,      ///< no access faults, and what was written reads back
    refuses_all,      ///< each access to an MSR of Intel PT faults
    reads_zero,       ///< each RDMSR returns 0
    stores_nothing,   ///< no byte of trace is stored, but the output MSRs advance
    traces_nothing,   ///< no instruction of a snippet has a packet
    never_stops,      ///< STOP, INT and reserved bits of entries are ignored, and TraceStop
    frozen_pointers,  ///< the output MSRs read as they were written
    no_interrupt,     ///< no PMI, and IA32_PERF_GLOBAL_STATUS is 0
    other_cpuid,      ///< CPUID enumerates no optional feature
    wild_cpuid,       ///< CPUID enumerates what no processor has
    keeps_trace_en,   ///< TraceEn reads 1 after XSAVES and resets; XRSTORS loads nothing
    no_time,          ///< the clocks stand still, and no timing packets are enabled
};
inline constexpr unsigned defect_count = underlying(defect::no_time) + 1U;

/// The memory of a model: the given pages. What would be stored outside of them is counted.
struct model_memory {
    using ignores_pmis = model_memory;

    given_memory given{};
    defect wrong = defect::none;
    uint64_t stray_bytes = 0;

    [[nodiscard]] constexpr auto load(uint64_t address) noexcept -> port_value {
        if (!given.has(address, 8)) { return {true, 0}; }
        uint64_t word = load_le64(given.bytes + (address - given.base.value));
        if (wrong == defect::never_stops) {
            topa::entry const right{word & ~topa::entry::reserved_mask()};
            word = right.with(topa::entry::INT{false}, topa::entry::STOP{false}).raw;
        }
        return {true, word};
    }
    [[nodiscard]] constexpr auto store(uint64_t address, byte_view stored) noexcept -> size_t {
        for (size_t i = 0; i < stored.size(); ++i) {
            if (!given.has(address + i, 1)) {
                ++stray_bytes;
            } else if (wrong != defect::stores_nothing) {
                given.bytes[address + i - given.base.value] = stored[i];
            }
        }
        return stored.size();
    }
};

/// The clocks of a model. Each instruction takes as many cycles as ticks of the TSC: some so few
/// that their CYC has one byte.
struct model_clock {
    static constexpr uint64_t cycles_of_step = 64;
    /// The cycles of an instruction of a snippet, by its number among the steps.
    [[nodiscard]] static constexpr auto cycles_of(unsigned number) noexcept -> uint64_t {
        return number % 4 == 1 ? 16 : cycles_of_step;
    }
    /// Ticks of the TSC in a crystal cycle where CPUID.15H has no ratio.
    static constexpr uint64_t other_ratio = 84;

    uint64_t tsc = 0;

    /// An instruction's time passes.
    [[nodiscard]] constexpr auto step(cpu::capabilities const& caps, uint64_t cycles) noexcept
        -> engine::action::elapsed {
        tsc += cycles;
        return now(caps, cycles);
    }
    /// The clocks as they are, after an instruction's cycles.
    [[nodiscard]] constexpr auto now(cpu::capabilities const& caps, uint64_t cycles) const noexcept
        -> engine::action::elapsed {
        uint64_t const art = caps.has_crystal_ratio() ? caps.crystal_ticks(tsc) : tsc / other_ratio;
        return {cycles, art, tsc};
    }
};

/// What a processor executes in a step of a snippet, which is at `base`; `after` is the context of
/// the next instruction.
[[nodiscard]] constexpr auto execution_of(snippet const& code, snippet_step const& step,
                                          uint64_t base, uint64_t cr3,
                                          engine::execution_context after) noexcept
    -> simulate::execution {
    auto const instruction =
        x86::decode({code.bytes + step.at, code.size - size_t{step.at}}).instruction;
    bool const has_cr3 = instruction.kind == x86::instruction_class::mov_to_cr3;
    return {.instruction = instruction,
            .at = base + step.at,
            .to = base + step.to,
            .after = after,
            .operand = has_cr3 ? cr3 : step.operand};
}

/// A modelled processor with these capabilities, and with one defect if the check shall fail.
class model_target {
    using ctl = reg::ia32_rtit_ctl;

public:
    static constexpr uint64_t code_address = 0xFFFF'D5A5'C340'0000;
    static constexpr uint64_t given_address = 0x10'0000;
    static constexpr uint64_t cr3_value = 0x5A'5C3F'1000;

    /// Where the snippets are, CR3, the time-stamp counter at first, and the last IP of earlier
    /// packets.
    struct surroundings {
        uint64_t code = code_address;
        uint64_t cr3 = cr3_value;
        uint64_t tsc = 1'000'000;
        uint64_t last_ip = 0;
    };

    constexpr model_target(cpu::capabilities const& caps, engine::model_options const& options,
                           uint8_t* bytes, uint32_t pages, defect wrong = defect::none) noexcept
        : model_target{caps, options, bytes, pages, wrong, surroundings{}} {}
    constexpr model_target(cpu::capabilities const& caps, engine::model_options const& options,
                           uint8_t* bytes, uint32_t pages, defect wrong,
                           surroundings around) noexcept
        : caps_{caps},
          memory_{{{given_address}, bytes, pages}, wrong},
          wrong_{wrong},
          around_{around},
          cpu_{caps_, memory_, {.cr3 = around.cr3}, around.code, options} {
        (void)cpu_.write(lvt::address, pmi_vector);
        cpu_.set_last_ip(around.last_ip);
        // Long enough for an edge of the crystal clock, which a TMA reports.
        clock_.tsc = around.tsc - 9 * model_clock::cycles_of_step;
        for (unsigned i = 0; i < 8; ++i) { tick(); }
    }
    model_target(model_target const&) = delete;
    auto operator=(model_target const&) -> model_target& = delete;

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
        -> cpuid_registers {
        auto got = cpu_.query(leaf, subleaf);
        if (wrong_ == defect::other_cpuid && leaf == 0x14) {
            got = {subleaf == 0 ? 1U : 0, 0, subleaf == 0 ? 1U : 0, 0};
        }
        if (wrong_ == defect::wild_cpuid) {
            switch (leaf) {
                case 0: got.eax = 0x13; break;
                case 0x0D: got = {}; break;
                case 0x14:
                    got = subleaf == 0 ? cpuid_registers{1, ~0U, ~1U, ~0U}
                                       : cpuid_registers{7, 0, 0, 0};
                    break;
                case 0x15: got = {1, 0, 1, 0}; break;
                default: break;
            }
        }
        return got;
    }
    [[nodiscard]] constexpr auto memory() const noexcept -> given_memory { return memory_.given; }
    [[nodiscard]] constexpr auto abilities() const noexcept -> ability_set {
        return ability_set{}
            .with(ability::enable)
            .with(ability::execute)
            .with(ability::interrupt)
            .with(ability::xsaves, caps_.has_xsaves_state())
            .with(ability::reset)
            .with(ability::global_status)
            .with(ability::model_time);
    }
    [[nodiscard]] constexpr auto address_of(snippet const&) const noexcept -> uint64_t {
        return around_.code;
    }
    [[nodiscard]] constexpr auto cr3() const noexcept -> uint64_t { return around_.cr3; }
    constexpr void note(text, access::msr_state const&) const noexcept {}

    [[nodiscard]] constexpr auto read(uint32_t index) noexcept -> msr_result {
        auto const got = cpu_.read(index);
        auto const number = index - access::first_pt_msr;
        bool const is_pt = number < kept_count;
        uint64_t value = got.value;
        if (wrong_ == defect::accepts_all && is_pt && is_kept_[number]) {
            return {.is_done = true, .value = kept_[number]};
        }
        if (wrong_ == defect::frozen_pointers && is_output(index)) { value = kept_[number]; }
        if (shows_trace_en_ && index == ctl::address) {
            value = ctl{value}.with(ctl::TraceEn{true}).raw;
        }
        if (wrong_ == defect::reads_zero) { value = 0; }
        if (wrong_ == defect::no_interrupt && !is_pt) { value = 0; }
        if (wrong_ == defect::accepts_all && is_pt) { return {.is_done = true, .value = value}; }
        if (!got || (wrong_ == defect::refuses_all && is_pt)) { return fault(); }
        return {.is_done = true, .value = value};
    }
    [[nodiscard]] constexpr auto write(uint32_t index, uint64_t value) noexcept -> msr_result {
        if (wrong_ == defect::refuses_all) { return fault(); }
        if (index == ctl::address) { shows_trace_en_ = false; }
        bool const done = cpu_.write(index, without_what_is_ignored(index, value));
        auto const number = index - access::first_pt_msr;
        bool const accepts = wrong_ == defect::accepts_all;
        if ((done || accepts) && number < kept_count) {
            is_kept_[number] = true;
            kept_[number] = value;
        }
        return done || accepts ? msr_result{.is_done = true} : fault();
    }
    [[nodiscard]] constexpr auto execute(snippet const& code, uint64_t on, uint64_t off) noexcept
        -> snippet_run {
        tick();
        snippet_run done{.tsc_before = clock_.tsc};
        go_to(snippet::enable_at);
        done.enabled = write(ctl::address, on);
        if (!done.enabled.is_done) { return done; }
        for (unsigned i = 0; i < code.step_count; ++i) {
            tick(model_clock::cycles_of(i));
            if (wrong_ != defect::traces_nothing) { take(code, code.steps[i]); }
        }
        tick();
        go_to(code.disable_at);
        done.disabled = write(ctl::address, off);
        done.tsc_after = clock_.tsc;
        return done;
    }
    [[nodiscard]] constexpr auto pmi() noexcept -> bool {
        bool const came = cpu_.deliver_pmi();
        if (came) { (void)cpu_.write(lvt::address, pmi_vector); }
        return came && wrong_ != defect::no_interrupt;
    }
    [[nodiscard]] constexpr auto xsaves(reg::xsave_pt_state& image) noexcept -> msr_result {
        auto const ctl_before = cpu_.msrs().ctl;
        auto const got = cpu_.xsaves();
        image = got.image;
        shows_trace_en_ = wrong_ == defect::keeps_trace_en && ctl_before.get<ctl::TraceEn>();
        if (wrong_ == defect::reads_zero) { image = {}; }
        return {.is_done = true};
    }
    [[nodiscard]] constexpr auto xrstors(reg::xsave_pt_state const& image) noexcept -> msr_result {
        if (wrong_ == defect::refuses_all) { return fault(); }
        if (wrong_ == defect::keeps_trace_en || wrong_ == defect::accepts_all) {
            return {.is_done = true};
        }
        return cpu_.xrstors(image).took_effect() ? msr_result{.is_done = true} : fault();
    }
    [[nodiscard]] constexpr auto reset(reset_kind kind) noexcept -> bool {
        auto const before = cpu_.msrs();
        if (kind == reset_kind::warm) {
            cpu_.warm_reset({.cr3 = around_.cr3}, around_.code);
        } else {
            cpu_.cold_reset({.cr3 = around_.cr3}, around_.code);
        }
        shows_trace_en_ = wrong_ == defect::keeps_trace_en && before.ctl.get<ctl::TraceEn>();
        for (bool& one : is_kept_) { one = false; }
        (void)cpu_.write(lvt::address, pmi_vector);
        return true;
    }

    [[nodiscard]] constexpr auto stray_bytes() const noexcept -> uint64_t {
        return memory_.stray_bytes;
    }

private:
    using lvt = reg::ia32_x2apic_lvt_pmi;
    static constexpr uint64_t pmi_vector = 0xF0;
    static constexpr uint32_t kept_count = access::last_pt_msr - access::first_pt_msr + 1;

    static constexpr auto fault() noexcept -> msr_result {
        return {.vector = msr_result::general_protection};
    }
    [[nodiscard]] static constexpr auto is_output(uint32_t index) noexcept -> bool {
        return index == reg::ia32_rtit_output_base::address ||
               index == reg::ia32_rtit_output_mask_ptrs::address;
    }
    [[nodiscard]] constexpr auto without_what_is_ignored(uint32_t index,
                                                         uint64_t value) const noexcept
        -> uint64_t {
        if (index != ctl::address) { return value; }
        if (wrong_ == defect::never_stops) {
            for (unsigned n = 0; n < reg::ia32_rtit_addr::count; ++n) {
                if (access::use_of_range(ctl{value}, n) == reg::addr_cfg::trace_stop) {
                    value &= ~(ptspec::detail::field_mask<ctl::ADDR0_CFG> << 4 * n);
                }
            }
        }
        if (wrong_ == defect::no_time) {
            value = ctl{value}.with(ctl::TSCEn{false}, ctl::MTCEn{false}, ctl::CYCEn{false}).raw;
        }
        return value;
    }
    constexpr void go_to(uint16_t offset) noexcept {
        (void)cpu_.on(engine::action::sequential{around_.code + offset});
    }
    constexpr void tick(uint64_t cycles = model_clock::cycles_of_step) noexcept {
        (void)cpu_.on(wrong_ == defect::no_time ? clock_.now(caps_, cycles)
                                                : clock_.step(caps_, cycles));
    }
    constexpr void take(snippet const& code, snippet_step const& one) noexcept {
        auto const executed = execution_of(code, one, around_.code, around_.cr3,
                                           cpu_.unit().state().code);
        simulate::take_action(executed, [&](auto const& action) { (void)cpu_.on(action); });
    }

    cpu::capabilities caps_;
    model_memory memory_;
    defect wrong_;
    surroundings around_;
    simulate::fake_processor<model_memory> cpu_;
    model_clock clock_{};
    uint64_t kept_[kept_count] = {};
    bool is_kept_[kept_count] = {};
    bool shows_trace_en_ = false;  ///< what `keeps_trace_en` reads after XSAVES and resets
};

static_assert(target<model_target>);

}  // namespace ptspec::suite
