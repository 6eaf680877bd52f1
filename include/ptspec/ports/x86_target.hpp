// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/x86.hpp>
#include <ptspec/suite/target.hpp>

/// The logical processor that executes this, as a target of the suite. It is for ring 0 of 64-bit
/// mode, in a kernel, in firmware, or in a program without an operating system. A system gives the
/// memory, the places of the snippets, and the handler of #GP.
namespace ptspec::ports {

/// Where the handler of #GP finds what it needs to end a snippet at which a fault occurred.
///
/// `call_snippet` fills it, and the handler calls `end_faulted_snippet`.
struct snippet_fault {
    uint64_t first = 0;       ///< linear address of the code
    uint64_t end = 0;         ///< of the byte after it; 0: no snippet executes
    uint64_t ip = 0;          ///< where the program continues
    uint64_t sp = 0;          ///< and its stack pointer
    uint64_t faulted_at = 0;  ///< the instruction that faulted; 0: none
};

/// Ends the snippet at which a #GP occurred. For the handler, with the IP and the stack pointer of
/// its frame, which it changes.
///
/// Errors: false, and no change, if the #GP came from other code.
template <class Word>
[[nodiscard]] auto end_faulted_snippet(snippet_fault& of, Word& ip, Word& sp) noexcept -> bool {
    auto const at = static_cast<uint64_t>(ip);
    if (at < of.first || at >= of.end) { return false; }
    of.faulted_at = at;
    of.end = 0;
    ip = static_cast<Word>(of.ip);
    sp = static_cast<Word>(of.sp);
    return true;
}

/// What a system gives a target. `place` makes the bytes of a snippet executable, and returns their
/// linear address, always the same for a snippet; 0 if it cannot. `nmis` counts the NMIs of this
/// processor: they come although interrupts are disabled. `pmi` and `note` are those of a target.
template <class System>
concept target_system = msr_access<System> && requires(System& it, suite::snippet const& code,
                                                       text name, access::msr_state const& msrs) {
    { it.memory() } -> same_as<suite::given_memory>;
    { it.abilities() } -> same_as<suite::ability_set>;
    { it.place(code) } -> same_as<uint64_t>;
    { it.fault() } -> same_as<snippet_fault&>;
    { it.nmis() } -> same_as<uint64_t>;
    { it.pmi() } -> same_as<bool>;
    it.note(name, msrs);
};

#if defined(__x86_64__)

// NOLINTBEGIN(misc-const-correctness): clang-tidy does not see that asm writes its outputs

[[nodiscard]] inline auto rdtsc() noexcept -> uint64_t {
    uint32_t low = 0;
    uint32_t high = 0;
    asm volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
    return uint64_t{high} << 32 | low;
}

/// Disables interrupts while it exists.
class interrupts_disabled {
public:
    interrupts_disabled() noexcept {
        asm volatile("leaq -128(%%rsp), %%rsp\n\t"  // the red zone, if there is one
                     "pushfq\n\tpopq %0\n\t"
                     "leaq 128(%%rsp), %%rsp\n\t"
                     "cli"
                     : "=r"(flags_)
                     :
                     : "memory");
    }
    ~interrupts_disabled() {
        constexpr uint64_t interrupt_flag = 1U << 9;
        if ((flags_ & interrupt_flag) != 0) { asm volatile("sti" : : : "memory"); }
    }
    interrupts_disabled(interrupts_disabled const&) = delete;
    auto operator=(interrupts_disabled const&) -> interrupts_disabled& = delete;

private:
    uint64_t flags_ = 0;
};

/// Calls a snippet at a linear address, with its two arguments. A #GP in it ends it.
///
/// The call is a RET: a processor with indirect branch tracking needs no ENDBR64 in the snippet.
inline void call_snippet(snippet_fault& fault, uint64_t code, uint64_t bytes, uint64_t on,
                         uint64_t off) noexcept {
    fault = {.first = code, .end = code + bytes};
    asm volatile("leaq -128(%%rsp), %%rsp\n\t"  // the red zone, if this is compiled with one
                 "movq %%rsp, %c[sp](%%rbx)\n\t"
                 "leaq 1f(%%rip), %%rax\n\t"
                 "movq %%rax, %c[ip](%%rbx)\n\t"
                 "pushq %%rax\n\t"
                 "pushq %[code]\n\t"
                 "ret\n"
                 "1:\tleaq 128(%%rsp), %%rsp"
                 : "+D"(on), "+S"(off)
                 : "b"(&fault), [code] "r"(code), [ip] "i"(__builtin_offsetof(snippet_fault, ip)),
                   [sp] "i"(__builtin_offsetof(snippet_fault, sp))
                 : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
    fault.end = 0;
}

// NOLINTEND(misc-const-correctness)

/// The logical processor that executes this. The caller must prevent migration.
template <target_system System>
class x86_target {
    using ctl = reg::ia32_rtit_ctl;
    using result = suite::msr_result;

public:
    constexpr explicit x86_target(System& system) noexcept : system_{system} {}

    [[nodiscard]] auto read(uint32_t index) noexcept -> result {
        uint64_t value = 0;
        bool const done = system_.try_rdmsr(index, value);
        return done ? result{.is_done = true, .value = value} : faulted();
    }
    [[nodiscard]] auto write(uint32_t index, uint64_t value) noexcept -> result {
        return system_.try_wrmsr(index, value) ? result{.is_done = true} : faulted();
    }
    [[nodiscard]] auto query(uint32_t leaf, uint32_t subleaf) const noexcept -> cpuid_registers {
        return cpuid(leaf, subleaf);
    }
    [[nodiscard]] auto memory() noexcept -> suite::given_memory { return system_.memory(); }
    /// What the system allows. A processor has no time of a model, and is not reset; XSAVES needs
    /// IA32_XSS, which belongs to the system.
    [[nodiscard]] auto abilities() noexcept -> suite::ability_set { return system_.abilities(); }
    [[nodiscard]] auto address_of(suite::snippet const& code) noexcept -> uint64_t {
        return system_.place(code);
    }
    [[nodiscard]] auto cr3() const noexcept -> uint64_t {
        uint64_t value = 0;
        asm volatile("movq %%cr3, %0" : "=r"(value));
        return value;
    }
    [[nodiscard]] auto pmi() noexcept -> bool { return system_.pmi(); }
    void note(text name, access::msr_state const& msrs) noexcept { system_.note(name, msrs); }

    [[nodiscard]] auto execute(suite::snippet const& code, uint64_t on, uint64_t off) noexcept
        -> suite::snippet_run {
        uint64_t const at = system_.place(code);
        if (at == 0) { return {.enabled = not_asked(), .disabled = not_asked()}; }
        auto& fault = system_.fault();
        suite::snippet_run done{.enabled = {.is_done = true}, .disabled = {.is_done = true}};
        uint64_t const disturbances = count_disturbances();
        {
            interrupts_disabled const guard;
            done.tsc_before = rdtsc();
            call_snippet(fault, at, code.size, on, off);
            done.tsc_after = rdtsc();
            if (fault.faulted_at == at + suite::snippet::enable_at) {
                done.enabled = faulted();
            } else if (fault.faulted_at != 0) {
                done.disabled = fault.faulted_at == at + code.disable_at ? faulted() : not_asked();
                (void)system_.try_wrmsr(ctl::address, ctl{on}.with(ctl::TraceEn{false}).raw);
            }
            sfence();  // PRG-062
        }
        done.is_disturbed = disturbances != count_disturbances();
        return done;
    }

    /// Clears TraceEn after the last check. False if it stays 1: the given memory must then stay
    /// reserved, because the processor may still write to it.
    [[nodiscard]] auto stop_tracing() noexcept -> bool {
        auto const is_on = [&] {
            auto const now = read(ctl::address);
            return now.is_done && ctl{now.value}.get<ctl::TraceEn>();
        };
        if (!is_on()) { return true; }
        (void)write(ctl::address, 0);
        return !is_on();
    }

    [[nodiscard]] auto xsaves(reg::xsave_pt_state&) const noexcept -> result { return not_asked(); }
    [[nodiscard]] auto xrstors(reg::xsave_pt_state const&) const noexcept -> result {
        return not_asked();
    }
    [[nodiscard]] auto reset(suite::reset_kind) const noexcept -> bool { return false; }

private:
    static constexpr auto faulted() noexcept -> result {
        return {.vector = result::general_protection};
    }
    static constexpr auto not_asked() noexcept -> result { return {.is_asked = false}; }

    /// What came between instructions although interrupts were disabled: NMIs and SMIs.
    [[nodiscard]] auto count_disturbances() noexcept -> uint64_t {
        constexpr uint32_t msr_smi_count = 0x34;
        uint64_t smis = 0;
        (void)system_.try_rdmsr(msr_smi_count, smis);  // 0 where it does not exist
        return smis + system_.nmis();
    }

    System& system_;
};

#endif

}  // namespace ptspec::ports
