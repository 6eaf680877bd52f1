// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/execution_context.hpp>

/// Far transfers, interrupts, exceptions, INIT and SIPI, enclave transitions.
namespace ptspec::engine::action {

/// The transfers without a FUP that Event Trace distinguishes. Source: GEN-301.
enum class far_kind : uint8_t {
    plain,
    iret,
    uiret,
    syscall,  ///< SYSCALL and SYSENTER
    sysret,   ///< SYSRET and SYSEXIT
    eret,     ///< ERETU and ERETS
};

/// Far JMP, CALL and RET, SYSCALL, SYSRET, SYSENTER, SYSEXIT, IRET, UIRET, ERETU, ERETS.
///
/// Source: GEN-110, GEN-114, GEN-136.
struct far_transfer {
    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    far_kind kind = far_kind::plain;
};

/// INT n, INT3, INT1, INTO. Source: GEN-110, GEN-111, GEN-113.
struct software_interrupt {
    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
};
/// An external interrupt, an NMI, a trap, or a machine check delivered as a trap.
/// Source: GEN-110, GEN-113.
struct interrupt {
    uint64_t next = 0;
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
};
/// A fault, or a machine check delivered as a fault. Source: GEN-110, GEN-113, GEN-289, GEN-302.
struct exception {
    static constexpr uint8_t page_fault = 0x0E;

    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
    uint64_t cr2 = 0;  ///< of a page fault
};
/// The delivery of a user interrupt. Source: GEN-301, GEN-303.
struct user_interrupt {
    uint64_t next = 0;
    uint64_t to = 0;
    uint8_t vector = 0;  ///< the user vector
};
/// A visit to a kernel that is not traced: a system call, an interrupt, a fault or a signal, as an
/// emulator of user mode sees it. Traced as with IA32_RTIT_CTL.OS = 0, whatever OS is. The code
/// that continues has the context of the code that was left.
///
/// Source: GEN-020, GEN-051, GEN-110, GEN-113.
struct kernel_visit {
    enum class reason : uint8_t {
        system_call,  ///< SYSCALL, SYSENTER; without a FUP
        interrupt,    ///< `at` is the next instruction
        exception,    ///< a fault, or INT n, INT3, INTO: `at` is the instruction
    };
    uint64_t at = 0;
    uint64_t to = 0;  ///< the next instruction of the user code
    reason cause = reason::system_call;
    uint8_t vector = 0;   ///< of an interrupt or exception
    uint64_t cr2 = 0;     ///< of a page fault
    bool returns = true;  ///< false: the code ended, as by the system call exit; `to` is ignored
};
/// INIT. The bootstrap processor continues at `to`, the others wait for a SIPI.
///
/// Source: GEN-113, GEN-290.
struct init {
    uint64_t next = 0;
    uint64_t to = 0;
    execution_context after{};
    bool waits_for_sipi = false;
};
/// Source: GEN-290.
struct sipi {
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
};

/// EENTER, ERESUME, EEXIT, EEE, AEX. `after.inside` is the kind of enclave that executes next.
///
/// Source: GEN-113, GEN-285, GEN-286.
struct enclave_transfer {
    uint64_t from = 0;  ///< the instruction; for an AEX that is a trap the one after it
    uint64_t to = 0;    ///< for an AEX the AEP
    execution_context after{};
};

}  // namespace ptspec::engine::action
