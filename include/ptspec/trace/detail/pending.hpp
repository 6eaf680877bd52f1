// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec::trace::detail {

/// What is pending in a binder: what earlier packets require of later ones. PacketEn and losses are
/// flags, too: if no flag is set, TNT and TIP belong to branches.
struct pending {
    enum flags : uint32_t {
        psb_open = 1U << 0,  ///< PSBEND follows
        overflow = 1U << 1,  ///< OVF, and no packet since has shown PacketEn
        // A FUP follows. It belongs to:
        transaction = 1U << 2,   ///< MODE.TSX without TXAbort
        abort = 1U << 3,         ///< MODE.TSX with TXAbort
        ptwrite = 1U << 4,       ///< PTW
        exstop = 1U << 5,        ///< EXSTOP
        pebs = 1U << 6,          ///< BEP
        control_flow = 1U << 7,  ///< CFE
        trigger = 1U << 8,       ///< TRIG
        // Other packets follow.
        mode = 1U << 9,         ///< MODE.Exec: TIP, TIP.PGE or FUP follows
        event = 1U << 10,       ///< FUP of an asynchronous event: TIP or TIP.PGD follows
        aborting = 1U << 11,    ///< FUP of a TSX abort: TIP or TIP.PGD follows
        event_data = 1U << 12,  ///< EVD: CFE follows
        block = 1U << 13,       ///< BBP: BEP ends the PEBS record
        asleep = 1U << 14,      ///< PWRE: PWRX follows
        // PacketEn, and what is lost.
        off = 1U << 15,            ///< PacketEn is 0
        after_pgd = 1U << 16,      ///< `off` since a TIP.PGD, without a CBR
        entering = 1U << 17,       ///< `tracing::entering`
        needs_tip_pge = 1U << 18,  ///< PacketEn was 0, then a PSB+ had an IP: TIP.PGE follows
        at_start = 1U << 19,       ///< no packet has shown PacketEn
        stopped = 1U << 20,        ///< TraceStop: no packet follows before TSC or CBR
        lost = 1U << 21,           ///< the IP is unknown until a packet has one
        // Where tracing resumes after an OVF is not certain.
        psb_resumes = 1U << 22,  ///< OVF, then PSB+ with an IP: perhaps at that IP
        fup_resumes = 1U << 23,  ///< APL12: the FUP may be spurious
        shared_fup = 1U << 24,   ///< SKD010: the FUP is that of the OVF, or of an event

        doubts = psb_resumes | fup_resumes | shared_fup,
        owners_of_fup = transaction | abort | ptwrite | exstop | pebs | control_flow | trigger,
        waiting = owners_of_fup | mode | event | aborting | event_data,
    };
};

}  // namespace ptspec::trace::detail
