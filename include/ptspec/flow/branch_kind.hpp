// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/x86/instruction.hpp>

namespace ptspec::flow {

/// How the next IP after an instruction is found: from a packet, or from the code.
///
/// Source: GEN-110..114.
enum class branch_kind : uint8_t {
    none,         ///< the instruction that follows, without a packet
    direct,       ///< the target in the instruction, without a packet
    conditional,  ///< a TNT bit has the outcome
    near_return,  ///< a TNT bit, or a TIP with the target
    indirect,     ///< a TIP has the target: indirect branches, far transfers
    interrupt,    ///< INT n: a FUP and a TIP
};

[[nodiscard]] constexpr auto branch_kind_of(x86::instruction const& instruction) noexcept
    -> branch_kind {
    using enum x86::instruction_class;
    switch (instruction.kind) {
        case conditional: return branch_kind::conditional;
        case direct_jump:
        case direct_call: return branch_kind::direct;
        case near_return: return branch_kind::near_return;
        case indirect_jump:
        case indirect_call:
        case absolute_jump:
        case far_jump:
        case far_call:
        case far_return:
        case iret:
        case syscall:
        case sysret:
        case sysenter:
        case sysexit:
        case uiret:
        case eret:
        case vm_entry:
        case rsm: return branch_kind::indirect;
        // INTO has vector 4. It causes an interrupt only if OF is 1.
        case software_interrupt:
            return instruction.vector == 4 ? branch_kind::none : branch_kind::interrupt;
        default: return branch_kind::none;
    }
}

}  // namespace ptspec::flow
