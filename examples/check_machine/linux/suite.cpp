// SPDX-License-Identifier: BSL-1.0

// The C++ part of the module: the suite on the processor that executes it.

#include "shim.h"

#include <ptspec/ports/x86_target.hpp>
#include <ptspec/suite/report.hpp>

namespace {

using namespace ptspec;

/// The fault of the one run that there is at a time.
ports::snippet_fault fault;

/// Collects the pieces of a line, and prints it; a longer one as two.
struct line_printer {
    char line[256] = {};
    unsigned length = 0;

    void operator()(text piece) {
        for (char const letter : piece) {
            if (letter == '\n' || length == sizeof line) {
                suite_print(line, length);
                length = 0;
            }
            if (letter != '\n') { line[length++] = letter; }
        }
    }
};

/// The kernel as a `ports::target_system`. Interrupts are disabled while a check runs. PMIs, 38EH,
/// 390H and the LVT belong to perf.
struct kernel_system {
    suite_run& run;
    line_printer& print;
    suite::check_names names{};

    static auto try_rdmsr(uint32_t index, uint64_t& value) noexcept -> bool {
        unsigned long long got = 0;
        bool const done = suite_rdmsr(index, &got) == 0;
        value = got;
        return done;
    }
    static auto try_wrmsr(uint32_t index, uint64_t value) noexcept -> bool {
        return suite_wrmsr(index, value) == 0;
    }
    [[nodiscard]] auto memory() const noexcept -> suite::given_memory {
        return {{run.physical}, run.bytes, suite_pages};
    }
    [[nodiscard]] static auto abilities() noexcept -> suite::ability_set {
        using suite::ability;
        return suite::ability_set{}.with(ability::enable).with(ability::execute);
    }
    [[nodiscard]] auto place(suite::snippet const& code) const noexcept -> uint64_t {
        bool is_there = true;
        for (unsigned i = 0; i < code.size; ++i) {
            is_there = is_there && run.code[i] == code.bytes[i];
            run.code[i] = code.bytes[i];
        }
        if (!is_there) { (void)ports::cpuid(0, 0); }  // serializes: other bytes execute now
        return reinterpret_cast<uintptr_t>(suite_code);
    }
    [[nodiscard]] static auto fault() noexcept -> ports::snippet_fault& { return ::fault; }
    [[nodiscard]] static auto nmis() noexcept -> uint64_t { return suite_nmis(); }
    [[nodiscard]] static auto pmi() noexcept -> bool { return false; }
    /// Disables interrupts while a check runs.
    void note(text name, access::msr_state const&) noexcept {
        names.note(name, print);
        suite_irqs(name.size() == 0 ? 1 : 0);
    }
};

/// True if VMXON was executed, by KVM, on a processor that then refuses IA32_RTIT_CTL. Source:
/// REG-110.
auto is_locked_by_vmx() noexcept -> bool {
    constexpr uint64_t cr4_vmxe = 1U << 13;
    using misc = reg::ia32_vmx_misc;
    uint64_t cr4 = 0;
    uint64_t value = 0;
    asm volatile("movq %%cr4, %0" : "=r"(cr4));
    return (cr4 & cr4_vmxe) != 0 && kernel_system::try_rdmsr(misc::address, value) &&
           !misc{value}.get<misc::INTEL_PT>();
}

}  // namespace

int suite_end_snippet(unsigned long* ip, unsigned long* sp) {
    return ports::end_faulted_snippet(fault, *ip, *sp) ? 1 : 0;
}

void suite_run_here(suite_run* of) {
    line_printer print;
    kernel_system system{*of, print};
    if (is_locked_by_vmx()) {
        print("# in VMX operation, and IA32_VMX_MISC[14] is 0: remove kvm_intel first\n");
        return;
    }
    ports::x86_target<kernel_system> target{system};
    auto const counts = suite::run_all(
        target, {.runs = of->runs}, print, [](text) { return false; }, "KTAP version 1");
    of->is_tracing = target.stop_tracing() ? 0 : 1;
    of->passed = !counts.has_failures() && !counts.is_empty() ? 1 : 0;
}
