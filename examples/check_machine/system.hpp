// SPDX-License-Identifier: BSL-1.0
#pragma once

// The suite on a PC that no operating system runs: the handlers of #GP, NMI and the PMI, the local
// APIC, and the report. How the machine was started is the platform's matter.

#include "pc.hpp"

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/ports/x86_target.hpp>
#include <ptspec/suite/observe.hpp>
#include <ptspec/suite/report.hpp>

#include <stdint.h>

namespace check_machine {

using namespace ptspec;

// ------------------------------------------------------------------------------ the local APIC

/// The local APIC, by MSRs or in memory, as firmware left it.
class local_apic {
public:
    enum class reg : uint32_t { eoi = 0x0B, spurious_vector = 0x0F, lvt_pmi = 0x34 };

    local_apic() {
        constexpr uint32_t ia32_apic_base = 0x1B;
        constexpr uint64_t enabled = 1U << 11;
        constexpr uint64_t is_x2apic = 1U << 10;
        constexpr uint64_t address = ((uint64_t{1} << 36) - 1) & ~uint64_t{0xFFF};
        uint64_t const base = ports::rdmsr(ia32_apic_base);
        is_enabled_ = (base & enabled) != 0;
        uses_msrs_ = (base & is_x2apic) != 0;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the address of a device
        registers_ = reinterpret_cast<uint32_t volatile*>(base & address);
    }
    [[nodiscard]] auto is_enabled() const -> bool { return is_enabled_; }
    [[nodiscard]] auto read(reg one) const -> uint32_t {
        return uses_msrs_ ? static_cast<uint32_t>(ports::rdmsr(first_msr + underlying(one)))
                          : registers_[4 * underlying(one)];
    }
    void write(reg one, uint32_t value) const {
        if (uses_msrs_) {
            ports::wrmsr(first_msr + underlying(one), value);
        } else {
            registers_[4 * underlying(one)] = value;
        }
    }

private:
    static constexpr uint32_t first_msr = 0x800;

    bool is_enabled_ = false;
    bool uses_msrs_ = false;
    uint32_t volatile* registers_ = nullptr;
};

// ------------------------------------------------------------------------------------ handlers

inline constexpr unsigned nmi_vector = 2;
inline constexpr unsigned pmi_vector = 0xEF;

/// What the handlers share with the program.
struct handler_state {
    ports::snippet_fault fault{};
    unsigned pmis = 0;
    unsigned nmis = 0;
    local_apic const* apic = nullptr;
};
inline handler_state handlers;

inline void unmask_pmi(local_apic const& apic) { apic.write(local_apic::reg::lvt_pmi, pmi_vector); }

[[gnu::interrupt]] inline void on_pmi(machine::interrupt_frame*) {
    ++handlers.pmis;
    unmask_pmi(*handlers.apic);
    handlers.apic->write(local_apic::reg::eoi, 0);
}
[[gnu::interrupt]] inline void on_nmi(machine::interrupt_frame*) { ++handlers.nmis; }

/// The handler of #GP: an access of `skipping_access` continues, and a snippet ends.
template <class OtherFault>
[[gnu::interrupt]] void on_fault(machine::interrupt_frame* frame, uint64_t) {
    machine::interrupt_frame volatile* const saved = frame;  // the processor reads it
    uint64_t ip = saved->ip;
    uint64_t flags = saved->flags;
    uint64_t sp = saved->sp;
    if (!end_faulted_snippet(handlers.fault, ip, sp) && !ports::skip_faulted_access(ip, flags)) {
        OtherFault::end(machine::general_protection);
    }
    saved->ip = ip;
    saved->flags = flags;
    saved->sp = sp;
}

/// The table of interrupts of the program while it exists: the one before it, and the handlers.
template <class OtherFault>
class own_interrupts {
public:
    own_interrupts() {
        asm volatile("sidt %0" : "=m"(before_));
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the address of a table
        auto const* const from = reinterpret_cast<machine::gate const*>(before_.base);
        for (unsigned i = 0; i < count; ++i) {
            if ((i + 1) * sizeof(machine::gate) <= before_.limit + 1U) { gates[i] = from[i]; }
        }
        set(machine::general_protection, reinterpret_cast<uintptr_t>(&on_fault<OtherFault>));
        set(nmi_vector, reinterpret_cast<uintptr_t>(&on_nmi));
        set(pmi_vector, reinterpret_cast<uintptr_t>(&on_pmi));
        machine::table_register const own{sizeof gates - 1, reinterpret_cast<uintptr_t>(gates)};
        asm volatile("lidt %0" : : "m"(own));
    }
    ~own_interrupts() { asm volatile("lidt %0" : : "m"(before_)); }
    own_interrupts(own_interrupts const&) = delete;
    auto operator=(own_interrupts const&) -> own_interrupts& = delete;

private:
    static constexpr unsigned count = 256;
    static inline machine::gate gates[count];

    static void set(unsigned vector, uintptr_t handler) { gates[vector] = machine::gate{handler}; }
    machine::table_register before_{};
};

// ------------------------------------------------------------------------------------ the system

/// The memory that a platform gives: pages for output and tables, and a page for the snippets.
struct pc_memory {
    suite::given_memory given{};
    uint8_t* code = nullptr;

    static constexpr uint32_t pages = 64;
};

/// A PC as a `ports::target_system`. `print` takes text.
template <class Print>
class pc_system : public ports::skipping_access {
public:
    pc_system(pc_memory const& memory, Print& print) : memory_{memory}, print_{print} {
        handlers.apic = &apic_;
        if (!apic_.is_enabled()) { return; }
        lvt_before_ = apic_.read(local_apic::reg::lvt_pmi);
        spurious_before_ = apic_.read(local_apic::reg::spurious_vector);
        constexpr uint32_t software_enable = 1U << 8;
        apic_.write(local_apic::reg::spurious_vector, spurious_before_ | software_enable);
        unmask_pmi(apic_);
    }
    ~pc_system() {
        if (!apic_.is_enabled()) { return; }
        apic_.write(local_apic::reg::lvt_pmi, lvt_before_);
        apic_.write(local_apic::reg::spurious_vector, spurious_before_);
    }
    pc_system(pc_system const&) = delete;
    auto operator=(pc_system const&) -> pc_system& = delete;

    [[nodiscard]] auto memory() const -> suite::given_memory { return memory_.given; }
    [[nodiscard]] auto abilities() const -> suite::ability_set {
        using suite::ability;
        // IA32_PERF_GLOBAL_STATUS_SET exists since version 4 of performance monitoring.
        bool const has_global = (ports::cpuid(0x0A, 0).eax & 0xFF) >= 4;
        return suite::ability_set{}
            .with(ability::enable)
            .with(ability::execute)
            .with(ability::interrupt, apic_.is_enabled())
            .with(ability::global_status, has_global);
    }
    [[nodiscard]] auto place(suite::snippet const& code) -> uint64_t {
        for (unsigned i = 0; i < code.size; ++i) { memory_.code[i] = code.bytes[i]; }
        return reinterpret_cast<uintptr_t>(memory_.code);
    }
    [[nodiscard]] auto fault() -> ports::snippet_fault& { return handlers.fault; }
    [[nodiscard]] auto nmis() const -> uint64_t { return handlers.nmis; }
    [[nodiscard]] auto pmi() -> bool {
        constexpr unsigned long_enough = 1000;
        ports::interrupts_disabled const guard;
        asm volatile("sti" : : : "memory");
        for (unsigned i = 0; i < long_enough; ++i) { asm volatile("pause" : : : "memory"); }
        asm volatile("cli" : : : "memory");
        bool const came = handlers.pmis != seen_pmis_;
        seen_pmis_ = handlers.pmis;
        return came;
    }
    void note(text name, access::msr_state const&) { names_.note(name, print_); }

private:
    pc_memory memory_;
    Print& print_;
    local_apic apic_{};
    uint32_t lvt_before_ = 0;
    uint32_t spurious_before_ = 0;
    unsigned seen_pmis_ = 0;
    suite::check_names names_{};
};

// ------------------------------------------------------------------------------------ the program

/// The options of the program: words such as `runs=3`, `kind=skylake` and `observe`.
struct options {
    suite::run_options run{};
    bool has_kind = false;
    engine::model_options kind{};
    bool observes = false;
    text unknown{};  ///< a word that is no option; empty: none
};

/// Reads options from a text of words.
[[nodiscard]] constexpr auto read_options(text from) -> options {
    options made;
    size_t at = 0;
    auto const begins_with = [](text word, text head) {
        return word.size() >= head.size() && text{word.data(), head.size()} == head;
    };
    while (at < from.size()) {
        size_t const first = at;
        while (at < from.size() && from.data()[at] != ' ') { ++at; }
        text const word{from.data() + first, at - first};
        ++at;
        constexpr text runs = "runs=";
        constexpr text kind = "kind=";
        bool is_known = word.size() == 0;
        if (begins_with(word, runs)) {
            unsigned number = 0;
            for (size_t i = runs.size(); i < word.size() && number <= 1000; ++i) {
                auto const digit = static_cast<unsigned>(word.data()[i] - '0');
                number = digit < 10 ? 10 * number + digit : 1001;
            }
            is_known = number >= 1 && number <= 1000;
            made.run.runs = number;
        } else if (begins_with(word, kind)) {
            auto const row = suite::read_row(
                {word.data() + kind.size(), word.size() - kind.size()});
            is_known = made.has_kind = row.is_valid;
            made.kind = row.options;
        } else if (word == text{"observe"}) {
            is_known = made.observes = true;
        }
        if (!is_known) { made.unknown = word; }
    }
    return made;
}

/// How a run ended.
struct run_result {
    bool has_passed = false;  ///< no rule is broken, and something could be asked
    bool is_tracing = false;  ///< TraceEn cannot be cleared: the memory must stay reserved
};

/// Runs all checks on this processor, and prints the report. `is_left_out` is true for a check that
/// hung before.
template <class OtherFault, class Print, callable<text> LeftOut>
[[nodiscard]] auto run(pc_memory const& memory, text words, Print&& print, LeftOut&& is_left_out)
    -> run_result {
    print("# ptspec: holds this processor against the rules of Intel PT. For test machines.\n"
          "# The report has raw values of registers and addresses.\n");
    auto asked = read_options(words);
    if (asked.has_kind) { asked.run.kind = &asked.kind; }
    if (asked.unknown.size() != 0) {
        print("# no option ");
        print(asked.unknown);
        print("; there are runs=1..1000, kind=ROW and observe\n");
        return {};
    }
    ports::interrupts_disabled const guard;
    own_interrupts<OtherFault> const handlers_of_this;
    pc_system<Print> system{memory, print};
    ports::x86_target<pc_system<Print>> target{system};
    auto const counts = suite::run_all(target, asked.run, print, is_left_out);
    if (asked.observes) {
        auto const found = suite::observe_kind(target, suite::capabilities_of(target));
        suite::print_observed(found, print, "# row: ");
    }
    bool const is_stopped = target.stop_tracing();
    if (!is_stopped) { print("# TraceEn cannot be cleared: switch the machine off\n"); }
    return {!counts.has_failures() && !counts.is_empty(), !is_stopped};
}

}  // namespace check_machine
