// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

/// Actions: what a logical processor does, as far as its trace depends on it.
///
/// IPs are offsets from the CS base, as software sees them. `at` is the address of the instruction,
/// the manual's CLIP; `next` the address after it, NLIP; `to` the target, BLIP. `after` is the
/// context after the action.
namespace ptspec::engine::action {

/// Jcc, JCXZ, JECXZ, JRCXZ, LOOP, LOOPE, LOOPNE. Source: GEN-110, GEN-121.
struct conditional {
    uint64_t to = 0;  ///< the target if taken, else the next instruction
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
/// The processor loses all entries of its return stack, without a packet: the next RETs to them are
/// not compressed. Recorded traces show this for no known reason.
/// Source: GEN-130.
struct return_stack_lost {};
/// Instructions without packets executed up to `next`. Source: GEN-083, GEN-084.
struct sequential {
    uint64_t next = 0;
};

}  // namespace ptspec::engine::action
