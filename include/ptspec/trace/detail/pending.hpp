// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec::trace::detail {

/// What is pending in a binder. PacketEn and losses are flags, too: if no flag is set, TNT and TIP
/// belong to branches.
struct pending {
    enum flags : uint32_t {
        psb_open = 1U << 0,
        overflow = 1U << 1,     ///< a FUP or TIP.PGE ends the overflow
        transaction = 1U << 2,  ///< up to `trigger`: the owner of the next FUP
        abort = 1U << 3,
        ptwrite = 1U << 4,
        exstop = 1U << 5,
        pebs = 1U << 6,
        control_flow = 1U << 7,
        trigger = 1U << 8,
        mode = 1U << 9,         ///< TIP, TIP.PGE or FUP follows
        event = 1U << 10,       ///< TIP or TIP.PGD follows
        aborting = 1U << 11,    ///< the same, of a TSX abort
        event_data = 1U << 12,  ///< a CFE follows
        block = 1U << 13,       ///< BEP ends it
        asleep = 1U << 14,      ///< PWRX follows
        off = 1U << 15,
        after_pgd = 1U << 16,  ///< `off` since a TIP.PGD
        entering = 1U << 17,
        must_be_entered = 1U << 18,  ///< off, PSB+ with IP: TIP.PGE follows
        at_start = 1U << 19,         ///< no packet has shown PacketEn
        stopped = 1U << 20,          ///< the last packet is a TraceStop
        lost = 1U << 21,
        psb_resumes = 1U << 22,  ///< OVF, PSB+ with IP: tracing may have resumed there
        fup_resumes = 1U << 23,  ///< APL12: the FUP may be spurious
        shared_fup = 1U << 24,   ///< SKD010: of the OVF, or of an event
        doubts = psb_resumes | fup_resumes | shared_fup,
        owners_of_fup = transaction | abort | ptwrite | exstop | pebs | control_flow | trigger,
        waiting = owners_of_fup | mode | event | aborting | event_data,
    };
};

}  // namespace ptspec::trace::detail
