// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/code_width.hpp>
#include <ptspec/base/raw_bits.hpp>

/// The properties of x86 instructions that a trace depends on.
namespace ptspec::x86 {

using cpu::code_width;

/// The class of an instruction. Instructions without an effect on a trace are `other`.
///
/// Source: SDM vol. 3, "Change of Flow Instruction (COFI) Tracing"; GEN-110, GEN-111.
enum class instruction_class : uint8_t {
    other,
    conditional,    ///< Jcc, LOOP, JRCXZ
    direct_jump,    ///< JMP E9, EB
    direct_call,    ///< CALL E8
    indirect_jump,  ///< JMP FF/4
    indirect_call,  ///< CALL FF/2
    absolute_jump,  ///< JMPABS; traced as an indirect jump
    near_return,    ///< RET C2, C3
    far_jump,       ///< JMP EA, FF/5
    far_call,       ///< CALL 9A, FF/3
    far_return,     ///< RET CA, CB
    iret,
    syscall,
    sysret,
    sysenter,
    sysexit,
    uiret,
    eret,                ///< ERETU, ERETS
    software_interrupt,  ///< INT n, INT3, INT1, INTO
    vm_entry,            ///< VMLAUNCH, VMRESUME
    vm_call,             ///< VMCALL, VMMCALL
    vmxon,
    vmxoff,
    vmptrld,
    vmclear,
    rsm,
    getsec,
    enclave,  ///< ENCLU, ENCLS, ENCLV
    ptwrite,
    mov_to_cr3,
    wrmsr,  ///< WRMSR, WRMSRNS, WRMSRLIST
    xsaves,
    xrstors,
    xbegin,
    xend,
    xabort,
    hlt,
    mwait,
    interrupt_flag,  ///< STI, CLI, POPF: may change IF
};

/// A decoded instruction.
///
/// Units:  bytes.
struct instruction {
    /// The number of bytes of the longest instruction.
    static constexpr uint8_t max_bytes = 15;

    uint8_t length = 0;
    instruction_class kind = instruction_class::other;
    bool has_displacement = false;    ///< a conditional or direct branch, or XBEGIN
    bool repeats = false;             ///< a string instruction with REP
    bool target_is_16_bits = false;   ///< the branch clears the upper bits of the IP
    bool operand_is_64_bits = false;  ///< of PTWRITE
    uint8_t vector = 0;               ///< of a software interrupt
    /// Relative to the next instruction. For an absolute jump, the target.
    int64_t displacement = 0;

    friend constexpr auto operator==(instruction const&, instruction const&) -> bool = default;
};

/// True for a branch whose target is in the instruction.
[[nodiscard]] constexpr auto is_direct(instruction const& instruction) noexcept -> bool {
    return instruction.has_displacement || instruction.kind == instruction_class::absolute_jump;
}

/// The target of a direct branch at `ip`.
///
/// Shape:  an offset in the code segment, as the instruction pointer holds it.
[[nodiscard]] constexpr auto target_of(instruction const& instruction, uint64_t ip,
                                       code_width width = code_width::bits_64) noexcept
    -> uint64_t {
    auto const displacement = static_cast<uint64_t>(instruction.displacement);
    if (instruction.kind == instruction_class::absolute_jump) { return displacement; }
    uint64_t const target = ip + instruction.length + displacement;
    if (width == code_width::bits_64) { return target; }
    return target & low_bits(instruction.target_is_16_bits ? 16 : 32);
}

}  // namespace ptspec::x86
