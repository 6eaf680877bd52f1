// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/x86/instruction.hpp>

namespace ptspec::flow {

/// How control leaves an instruction.
///
/// Source: GEN-110..114.
enum class passage : uint8_t {
    falls,        ///< to the next one, without a packet
    jumps,        ///< to a known target, without a packet
    conditional,  ///< a TNT bit tells
    returns,      ///< a TNT bit, or a TIP
    targets,      ///< a TIP has the target
    interrupts,   ///< a FUP and a TIP: INT n
};

[[nodiscard]] constexpr auto passage_of(x86::instruction const& of) noexcept -> passage {
    using enum x86::instruction_class;
    switch (of.which) {
        case conditional: return passage::conditional;
        case direct_jump:
        case direct_call: return passage::jumps;
        case near_return: return passage::returns;
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
        case rsm: return passage::targets;
        case software_interrupt: return of.vector == 4 ? passage::falls : passage::interrupts;
        default: return passage::falls;
    }
}

}  // namespace ptspec::flow
