// SPDX-License-Identifier: BSL-1.0
#pragma once

#if !defined(PTSPEC_SINGLE_HEADER)  // the single header, included before this one, is enough
#include <ptspec/driver/msr_sequence.hpp>
#endif

/// The instructions of the logical processor that executes this, as ports, for code in ring 0. They
/// are inline assembly for g++ and clang, 32-bit or 64-bit.
namespace ptspec::ports {

// NOLINTBEGIN(misc-const-correctness): clang-tidy does not see that asm writes its outputs

// ------------------------------------------------------------------------------ instructions

/// RDMSR. A #GP goes to the handler of the system.
[[nodiscard]] inline auto rdmsr(uint32_t index) noexcept -> uint64_t {
    uint32_t low = 0;
    uint32_t high = 0;
    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(index) : "memory");
    return uint64_t{high} << 32 | low;
}
/// WRMSR. A #GP goes to the handler of the system.
inline void wrmsr(uint32_t index, uint64_t value) noexcept {
    asm volatile("wrmsr"
                 :
                 : "c"(index), "a"(static_cast<uint32_t>(value)),
                   "d"(static_cast<uint32_t>(value >> 32))
                 : "memory");
}

[[nodiscard]] inline auto cpuid(uint32_t leaf, uint32_t subleaf) noexcept -> cpuid_registers {
    cpuid_registers out;
    asm volatile("cpuid"
                 : "=a"(out.eax), "=b"(out.ebx), "=c"(out.ecx), "=d"(out.edx)
                 : "a"(leaf), "c"(subleaf));
    return out;
}

/// SFENCE. After TraceEn was cleared it makes the trace visible to other logical processors.
/// Source: PRG-062.
inline void sfence() noexcept { asm volatile("sfence" : : : "memory"); }

// ------------------------------------------------------------------------------------ faults

/// How RDMSR and WRMSR are executed where they may fault. Both functions return false after a
/// fault that they detect; they may be static. In a kernel they call its own accessors:
///
///     struct kernel_access {
///         static auto try_rdmsr(uint32_t index, uint64_t& value) noexcept -> bool {
///             return my_rdmsr(index, &value) == 0;  // calls rdmsrq_safe() or rdmsrl_safe()
///         }
///         static auto try_wrmsr(uint32_t index, uint64_t value) noexcept -> bool;
///     };
template <class Access>
concept msr_access = requires(Access& access, uint32_t index, uint64_t& read, uint64_t written) {
    { access.try_rdmsr(index, read) } -> same_as<bool>;
    { access.try_wrmsr(index, written) } -> same_as<bool>;
};

/// The instruction alone. It does not return after a fault, unless the system's handler skips it.
struct unchecked_access {
    [[nodiscard]] static auto try_rdmsr(uint32_t index, uint64_t& value) noexcept -> bool {
        value = rdmsr(index);
        return true;
    }
    [[nodiscard]] static auto try_wrmsr(uint32_t index, uint64_t value) noexcept -> bool {
        wrmsr(index, value);
        return true;
    }
};

/// The instruction, with a #GP handler that calls `skip_faulted_access`. The handler reports the
/// fault in CF of the interrupted code, so that no memory is shared between logical processors.
///
/// Shape:  CLC, then RDMSR or WRMSR. The CLC also marks the access for the handler.
struct skipping_access {
    [[nodiscard]] static auto try_rdmsr(uint32_t index, uint64_t& value) noexcept -> bool {
        uint32_t low = 0;
        uint32_t high = 0;
        bool faulted = false;
        asm volatile("clc\n\trdmsr"
                     : "=a"(low), "=d"(high), "=@ccc"(faulted)
                     : "c"(index)
                     : "memory");
        if (!faulted) { value = uint64_t{high} << 32 | low; }
        return !faulted;
    }
    [[nodiscard]] static auto try_wrmsr(uint32_t index, uint64_t value) noexcept -> bool {
        bool faulted = false;
        asm volatile("clc\n\twrmsr"
                     : "=@ccc"(faulted)
                     : "c"(index), "a"(static_cast<uint32_t>(value)),
                       "d"(static_cast<uint32_t>(value >> 32))
                     : "memory");
        return !faulted;
    }
};

/// Skips the access of `skipping_access` at which a #GP occurred: sets CF in the saved EFLAGS, and
/// moves the saved IP to the next instruction. For the #GP handler of firmware or of a hypervisor,
/// with the IP and the EFLAGS of its frame.
///
/// Errors: false, and no change, if the #GP came from other code.
template <class Word>
    requires(sizeof(Word) >= sizeof(uintptr_t))
[[nodiscard]] auto skip_faulted_access(Word& ip, Word& eflags) noexcept -> bool {
    constexpr uint8_t clc = 0xF8;
    constexpr uint8_t wrmsr_opcode[] = {0x0F, 0x30};
    constexpr uint8_t rdmsr_opcode[] = {0x0F, 0x32};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an IP is a number
    auto const* const at = reinterpret_cast<uint8_t const*>(static_cast<uintptr_t>(ip));
    bool const is_access = at[0] == rdmsr_opcode[0] &&
                           (at[1] == rdmsr_opcode[1] || at[1] == wrmsr_opcode[1]);
    if (!is_access || at[-1] != clc) { return false; }
    ip += sizeof rdmsr_opcode;
    eflags |= 1;
    return true;
}

// NOLINTEND(misc-const-correctness)

// ------------------------------------------------------------------------------------ ports

/// The MSRs of this logical processor, as a `driver::fenced_msr_port`. The caller must prevent
/// migration while a procedure of `driver/` executes.
///
/// Errors: a fault that `Access` detects is the result of the access.
template <msr_access Access = unchecked_access>
class x86_msrs {
public:
    constexpr x86_msrs() noexcept = default;
    constexpr explicit x86_msrs(Access access) noexcept : access_{access} {}

    auto read(uint32_t index) noexcept -> port_value {
        uint64_t value = 0;
        bool const done = access_.try_rdmsr(index, value);
        return {done, value};
    }
    auto write(uint32_t index, uint64_t value) noexcept -> bool {
        return access_.try_wrmsr(index, value);
    }
    void fence() noexcept { sfence(); }

private:
    Access access_{};
};

/// CPUID of this logical processor, as a `cpuid_port`.
struct x86_cpuid {
    [[nodiscard]] static auto query(uint32_t leaf, uint32_t subleaf) noexcept -> cpuid_registers {
        return cpuid(leaf, subleaf);
    }
};

static_assert(driver::fenced_msr_port<x86_msrs<>>);
static_assert(driver::fenced_msr_port<x86_msrs<skipping_access>> && cpuid_port<x86_cpuid>);

}  // namespace ptspec::ports
