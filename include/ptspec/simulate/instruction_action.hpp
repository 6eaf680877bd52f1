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
    instruction what{};
    uint64_t at = 0;                    ///< the address of the instruction
    uint64_t to = 0;                    ///< the address of the next instruction that executes
    engine::execution_context after{};  ///< the context of that one
    uint64_t operand = 0;               ///< of PTWRITE, MOV CR3 and VMPTRLD

    /// The address after this instruction.
    [[nodiscard]] constexpr auto next() const noexcept -> uint64_t {
        uint64_t const following = at + what.length;
        return after.width == code_width::bits_64 ? following : following & low_bits(32);
    }
};

/// True if the instruction leads to the next one. Otherwise an interrupt, an exception or another
/// event came between, whose action follows that of the instruction.
[[nodiscard]] constexpr auto leads_on(execution const& of) noexcept -> bool {
    using enum x86::instruction_class;
    switch (of.what.which) {
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
        case interrupt_flag: return of.to == of.next() || (of.what.repeats && of.to == of.at);
        case conditional:
            return of.to == of.next() || of.to == target_of(of.what, of.at, of.after.width);
        case direct_jump:
        case direct_call:
        case absolute_jump: return of.to == target_of(of.what, of.at, of.after.width);
        default: return true;
    }
}

/// Calls `take` with the event of an executed instruction. For some it is `action::sequential`:
/// WRMSR, XSAVES and XRSTORS are functions of a trace unit, MWAIT has operands that are not here,
/// and VMCLEAR is an action only if its VMCS is current.
///
/// Source: GEN-110, GEN-111, GEN-113, GEN-240, GEN-250, GEN-300, GEN-305.
template <class Take>
constexpr void take_action(execution const& of, Take&& take) noexcept {
    namespace action = engine::action;
    using enum x86::instruction_class;
    using action::far_kind;
    auto const far_transfer = [&](far_kind kind) {
        take(action::far_transfer{of.at, of.to, of.after, kind});
    };
    bool const is_elsewhere = of.to != of.next();
    switch (of.what.which) {
        case conditional: return take(action::conditional{of.to, is_elsewhere});
        case direct_jump: return take(action::direct_jump{of.to});
        case direct_call: return take(action::direct_call{of.next(), of.to});
        case indirect_jump:
        case absolute_jump: return take(action::indirect_jump{of.to});
        case indirect_call: return take(action::indirect_call{of.next(), of.to});
        case near_return: return take(action::near_return{of.to});
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
            return take(action::software_interrupt{of.at, of.to, of.after, of.what.vector});
        case vm_entry: return take(action::vm_entry{.at = of.at, .to = of.to, .after = of.after});
        case vm_call:
            if (!is_elsewhere) { break; }
            return take(action::vm_exit{.from = of.at, .to = of.to, .after = of.after});
        case vmxon: return take(action::vmxon{of.at, of.to});
        case vmxoff: return take(action::vmxoff{of.to});
        case vmptrld: return take(action::vmptrld{of.to, of.operand});
        case rsm: return take(action::rsm{of.to, of.after});
        case enclave:
            if (!is_elsewhere) { break; }
            return take(action::enclave_transfer{of.at, of.to, of.after});
        case ptwrite:
            return take(action::ptwrite{of.at, of.to, of.operand, of.what.operand_is_64_bits});
        case mov_to_cr3: return take(action::mov_cr3{of.at, of.to, of.operand});
        case xbegin: return take(action::transaction_begin{of.at, of.to});
        case xend: return take(action::transaction_end{of.at, of.to});
        case xabort:
            if (!is_elsewhere) { break; }
            return take(action::transaction_abort{of.at, of.to});
        case hlt: return take(action::halt{of.at, of.to});
        case interrupt_flag: return take(action::interrupt_flag{of.to, of.after.IF});
        case other:
        case getsec:
        case wrmsr:
        case xsaves:
        case xrstors:
        case vmclear:
        case mwait: break;
    }
    take(action::sequential{of.to});
}

/// The successors of an instruction at an address: what `take_near_action` compares, computed once.
struct successors {
    uint64_t next = 0;    ///< the instruction after it
    uint64_t target = 0;  ///< of a direct branch
    instruction_class which = instruction_class::other;
};
[[nodiscard]] constexpr auto successors_of(instruction const& of, uint64_t at,
                                           code_width width = code_width::bits_64) noexcept
    -> successors {
    execution const one{.what = of, .at = at, .after = {.width = width}};
    return {one.next(), is_direct(of) ? target_of(of, at, width) : 0, of.which};
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
constexpr auto take_near_action(successors const& of, uint64_t to, Take&& take) noexcept -> bool {
    namespace action = engine::action;
    using enum x86::instruction_class;
    if (of.which == conditional) {
        bool const taken = to == of.target;
        if (!taken && to != of.next) { return false; }
        take(action::conditional{to, taken});
        return true;
    }
    switch (of.which) {
        case other: return to == of.next;
        case direct_jump:
            if (to != of.target) { return false; }
            take(action::direct_jump{to});
            return true;
        case direct_call:
            if (to != of.target) { return false; }
            take(action::direct_call{of.next, to});
            return true;
        case near_return: take(action::near_return{to}); return true;
        case indirect_jump: take(action::indirect_jump{to}); return true;
        case indirect_call: take(action::indirect_call{of.next, to}); return true;
        default: return false;
    }
}

}  // namespace ptspec::simulate

#undef PTSPEC_ATTRIBUTE
