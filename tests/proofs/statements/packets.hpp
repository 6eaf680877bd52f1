// SPDX-License-Identifier: BSL-1.0
#pragma once

// clang-format off

/// `X(name)` for each packet with fields, and for each packet.
#define PACKETS_WITH_FIELDS(X) \
    X(tnt_short) X(tnt_long) X(tip) X(tip_pge) X(tip_pgd) X(fup) X(pip) X(mode_exec) \
    X(mode_tsx) X(cbr) X(tsc) X(mtc) X(tma) X(cyc) X(vmcs) X(mnt) X(ptw) X(exstop) X(mwait) \
    X(pwre) X(pwrx) X(bbp) X(bip) X(bep) X(cfe) X(evd) X(trig)
#define PACKETS(X) \
    PACKETS_WITH_FIELDS(X) X(pad) X(tracestop) X(ovf) X(psb) X(psbend)
