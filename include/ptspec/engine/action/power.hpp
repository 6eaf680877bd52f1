// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/time.hpp>

/// C-states and clock stops.
namespace ptspec::engine::action {

/// A C-state as packets encode it. Source: GEN-310.
struct c_state {
    uint8_t state = 0;
    uint8_t substate = 0;
};

/// MWAIT, or an I/O instruction that acts as one. C-state 0 means that none is entered.
/// Source: GEN-310, GEN-312.
struct mwait {
    uint64_t at = 0;
    uint64_t next = 0;
    uint8_t hints = 0;
    uint8_t ext = 0;
    c_state thread{};         ///< the resolved thread C-state
    bool is_io = false;       ///< an I/O instruction: no MWAIT packet
    bool is_pending = false;  ///< an event is already pending: GEN-314
};
/// HLT, shutdown, a VMX abort, INIT, and other entries into C1. Source: GEN-311.
struct halt {
    uint64_t from = 0;  ///< the instruction; for INIT the one after it
    uint64_t next = 0;
    bool is_shutdown = false;
};
/// Why a C-state ends. Source: GEN-313.
enum class wake_reason : uint8_t { other = 0, interrupt = 1, store = 4, hardware = 8 };
/// A C-state ends. The event that ended it follows. Source: GEN-200, GEN-205, GEN-313, GEN-318.
struct wake {
    uint8_t last = 0;     ///< core C-state
    uint8_t deepest = 0;  ///< core C-state
    wake_reason reason = wake_reason::other;
};
/// Hardware duty cycling begins; `wake` ends it. Source: GEN-315.
struct duty_cycle {
    uint64_t next = 0;
    uint8_t state = 6;
};
/// The clock stops while code executes: a new P-state, thermal throttling, STPCLK. Source: GEN-316.
struct clock_stop {
    uint64_t next = 0;
};
/// The clock resumes. Source: GEN-202, GEN-205, GEN-316.
struct clock_resume {};

}  // namespace ptspec::engine::action
