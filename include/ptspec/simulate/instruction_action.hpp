// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/branch.hpp>
#include <ptspec/engine/action/power.hpp>
#include <ptspec/engine/action/register_write.hpp>
#include <ptspec/engine/action/transaction.hpp>
#include <ptspec/engine/action/transfer.hpp>
#include <ptspec/engine/action/value.hpp>
#include <ptspec/engine/action/vmx_smm.hpp>
#include <ptspec/x86/instruction.hpp>
#include <ptspec/base/attribute.hpp>

/// From an instruction that an emulator executed to the action of a trace unit.
namespace ptspec::simulate {

using cpu::code_width;
using x86::instruction;
using x86::instruction_class;

/// An executed instruction.
struct execution {
    x86::instruction instruction{};     ///< what executed
    uint64_t at = 0;                    ///< the address of the instruction
    uint64_t to = 0;                    ///< the address of the next instruction that executes
    engine::execution_context after{};  ///< the context of that one
    uint64_t operand = 0;               ///< of PTWRITE, MOV CR3 and VMPTRLD

    /// The address after this instruction.
    [[nodiscard]] constexpr auto next() const noexcept -> uint64_t {
        uint64_t const following = at + instruction.length;
        return after.width == code_width::bits_64 ? following : following & low_bits(32);
    }
};

/// True if the instruction leads to the next one. Otherwise an interrupt, an exception or another
/// event came between, whose action follows that of the instruction.
[[nodiscard]] constexpr auto leads_on(execution const& executed) noexcept -> bool {
    using enum x86::instruction_class;
    switch (executed.instruction.kind) {
        case other:
        case ptwrite:
        case mov_to_cr3:
        case wrmsr:
        case xsaves:
        case xrstors:
        case xbegin:
        case xend:
        case hlt:
        case mwait:
        case vmxon:
        case vmxoff:
        case vmptrld:
        case vmclear:
        case interrupt_flag:
            return executed.to == executed.next() ||
                   (executed.instruction.repeats && executed.to == executed.at);
        case conditional:
            return executed.to == executed.next() ||
                   executed.to ==
                       target_of(executed.instruction, executed.at, executed.after.width);
        case direct_jump:
        case direct_call:
        case absolute_jump:
            return executed.to ==
                   target_of(executed.instruction, executed.at, executed.after.width);
        default: return true;
    }
}

/// Calls `take` with the action of an executed instruction. For some it is `action::sequential`:
/// WRMSR, XSAVES and XRSTORS are functions of a trace unit, MWAIT has operands that are not here,
/// and VMCLEAR is an action only if its VMCS is current.
///
/// Source: GEN-110, GEN-111, GEN-113, GEN-240, GEN-250, GEN-300, GEN-305.
template <class Take>
constexpr void take_action(execution const& executed, Take&& take) noexcept {
    namespace action = engine::action;
    using enum x86::instruction_class;
    using action::far_kind;
    auto const far_transfer = [&](far_kind kind) {
        take(action::far_transfer{executed.at, executed.to, executed.after, kind});
    };
    bool const is_elsewhere = executed.to != executed.next();
    switch (executed.instruction.kind) {
        case conditional: return take(action::conditional{executed.to, is_elsewhere});
        case direct_jump: return take(action::direct_jump{executed.to});
        case direct_call: return take(action::direct_call{executed.next(), executed.to});
        case indirect_jump:
        case absolute_jump: return take(action::indirect_jump{executed.to});
        case indirect_call: return take(action::indirect_call{executed.next(), executed.to});
        case near_return: return take(action::near_return{executed.to});
        case far_jump:
        case far_call:
        case far_return: return far_transfer(far_kind::plain);
        case sysret:
        case sysexit: return far_transfer(far_kind::sysret);
        case eret: return far_transfer(far_kind::eret);
        case iret: return far_transfer(far_kind::iret);
        case uiret: return far_transfer(far_kind::uiret);
        case syscall:
        case sysenter: return far_transfer(far_kind::syscall);
        case software_interrupt:
            return take(action::software_interrupt{executed.at, executed.to, executed.after,
                                                   executed.instruction.vector});
        case vm_entry:
            return take(
                action::vm_entry{.at = executed.at, .to = executed.to, .after = executed.after});
        case vm_call:
            if (!is_elsewhere) { break; }
            return take(
                action::vm_exit{.from = executed.at, .to = executed.to, .after = executed.after});
        case vmxon: return take(action::vmxon{executed.at, executed.to});
        case vmxoff: return take(action::vmxoff{executed.to});
        case vmptrld: return take(action::vmptrld{executed.to, executed.operand});
        case rsm: return take(action::rsm{executed.to, executed.after});
        case enclave:
            if (!is_elsewhere) { break; }
            return take(action::enclave_transfer{executed.at, executed.to, executed.after});
        case ptwrite:
            return take(action::ptwrite{executed.at, executed.to, executed.operand,
                                        executed.instruction.operand_is_64_bits});
        case mov_to_cr3: return take(action::mov_cr3{executed.at, executed.to, executed.operand});
        case xbegin: return take(action::transaction_begin{executed.at, executed.to});
        case xend: return take(action::transaction_end{executed.at, executed.to});
        case xabort:
            if (!is_elsewhere) { break; }
            return take(action::transaction_abort{executed.at, executed.to});
        case hlt: return take(action::halt{executed.at, executed.to});
        case interrupt_flag: return take(action::interrupt_flag{executed.to, executed.after.IF});
        case other:
        case getsec:
        case wrmsr:
        case xsaves:
        case xrstors:
        case vmclear:
        case mwait: break;
    }
    take(action::sequential{executed.to});
}

/// The successors of an instruction at an address: what `take_near_action` compares, computed once.
struct successors {
    uint64_t next = 0;                                  ///< the instruction after it
    uint64_t target = 0;                                ///< of a direct branch
    instruction_class kind = instruction_class::other;  ///< of the instruction
};
[[nodiscard]] constexpr auto successors_of(x86::instruction const& instruction, uint64_t at,
                                           code_width width = code_width::bits_64) noexcept
    -> successors {
    execution const one{.instruction = instruction, .at = at, .after = {.width = width}};
    return {one.next(), is_direct(instruction) ? target_of(instruction, at, width) : 0,
            instruction.kind};
}

/// The fast path of an emulator that executes blocks of code. Calls `take` with the action of a
/// near branch at the end of a block, after which the code at `to` executes. Returns true if it
/// did, and for an instruction without action that led to the next one. Returns false, and takes
/// nothing, otherwise: then ask `leads_on`, and call `take_action`.
///
/// Source: as `take_action`.
///
/// always_inline: a call for each block costs 30 % (gzip, g++ 12).
template <class Take>
PTSPEC_ATTRIBUTE(always_inline) [[nodiscard]]
constexpr auto take_near_action(successors const& successors, uint64_t to, Take&& take) noexcept
    -> bool {
    namespace action = engine::action;
    using enum x86::instruction_class;
    if (successors.kind == conditional) {
        bool const taken = to == successors.target;
        if (!taken && to != successors.next) { return false; }
        take(action::conditional{to, taken});
        return true;
    }
    switch (successors.kind) {
        case other: return to == successors.next;
        case direct_jump:
            if (to != successors.target) { return false; }
            take(action::direct_jump{to});
            return true;
        case direct_call:
            if (to != successors.target) { return false; }
            take(action::direct_call{successors.next, to});
            return true;
        case near_return: take(action::near_return{to}); return true;
        case indirect_jump: take(action::indirect_jump{to}); return true;
        case indirect_call: take(action::indirect_call{successors.next, to}); return true;
        default: return false;
    }
}

}  // namespace ptspec::simulate

#undef PTSPEC_ATTRIBUTE
