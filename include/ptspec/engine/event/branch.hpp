// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/event/execution_context.hpp>

/// What a logical processor does, as far as its trace depends on it.
///
/// IPs are offsets from the CS base, as software sees them. `at` is the instruction itself, the
/// manual's CLIP; `next` the one behind it, NLIP; `to` where execution goes, BLIP. `after` is what
/// runs then.
namespace ptspec::engine::event {

// ------------------------------------------------------------------------------------ near branches

/// Jcc, JCXZ, JECXZ, JRCXZ, LOOP and its kin. Source: GEN-110, GEN-121.
struct conditional {
    uint64_t to = 0;  ///< the target where it was taken, else the instruction behind
    bool taken = false;
};
/// JMP E9 and EB. Source: GEN-110, GEN-112.
struct direct_jump {
    uint64_t to = 0;
};
/// CALL E8. Source: GEN-110, GEN-112, GEN-132.
struct direct_call {
    uint64_t next = 0;
    uint64_t to = 0;
};
/// JMP FF /4, and JMPABS. Source: GEN-110.
struct indirect_jump {
    uint64_t to = 0;
};
/// CALL FF /2. Source: GEN-110, GEN-132.
struct indirect_call {
    uint64_t next = 0;
    uint64_t to = 0;
};
/// RET C3 and C2. Source: GEN-110, GEN-130..139.
struct near_return {
    uint64_t to = 0;
};
/// Instructions that trace says nothing about came up to `next`. Source: GEN-083, GEN-084.
struct sequential {
    uint64_t next = 0;
};

// ------------------------------------------------------------------------------------ transfers

/// Of the transfers without a FUP those that Event Trace tells apart. Source: GEN-301.
enum class far_kind : uint8_t {
    plain,
    iret,
    uiret,
    syscall,  ///< SYSCALL and SYSENTER
};

/// Far JMP, CALL and RET, SYSCALL, SYSRET, SYSENTER, SYSEXIT, IRET, UIRET.
///
/// Source: GEN-110, GEN-114, GEN-136.
struct far_transfer {
    uint64_t at = 0;
    uint64_t to = 0;
    running after{};
    far_kind kind = far_kind::plain;
};

/// A task switch takes many cycles: its packets are in the trace when each is due.
///
/// Units:  core clock cycles. Source: GEN-215.
struct cycles_within {
    uint64_t until_pip = 0;
    uint64_t until_target = 0;  ///< from the PIP on
};

/// INT n, INT3, INT1, INTO. Source: GEN-110, GEN-111, GEN-113.
struct software_interrupt {
    uint64_t at = 0;
    uint64_t to = 0;
    running after{};
    uint8_t vector = 0;
    cycles_within takes{};
};
/// An external interrupt, an NMI, a trap, or a machine check like one. Source: GEN-110, GEN-113.
struct interrupt {
    uint64_t next = 0;
    uint64_t to = 0;
    running after{};
    uint8_t vector = 0;
    cycles_within takes{};
};
/// A fault, or a machine check like one. Source: GEN-110, GEN-113, GEN-289, GEN-302.
struct exception {
    static constexpr uint8_t page_fault = 0x0E;

    uint64_t at = 0;
    uint64_t to = 0;
    running after{};
    uint8_t vector = 0;
    uint64_t cr2 = 0;  ///< of a page fault
    cycles_within takes{};
};
/// The delivery of a user interrupt. Source: GEN-301, GEN-303.
struct user_interrupt {
    uint64_t next = 0;
    uint64_t to = 0;
    uint8_t vector = 0;  ///< the user vector
};
/// INIT. The bootstrap processor goes on at `to`, the others wait for a SIPI.
///
/// Source: GEN-113, GEN-290.
struct init {
    uint64_t next = 0;
    uint64_t to = 0;
    running after{};
    bool waits_for_sipi = false;
};
/// Source: GEN-290.
struct sipi {
    uint64_t to = 0;
    running after{};
    uint8_t vector = 0;
};

}  // namespace ptspec::engine::event
