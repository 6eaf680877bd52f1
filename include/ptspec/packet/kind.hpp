// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/rule.hpp>

namespace ptspec::packet {

/// The packet types.
///
/// Source: PKT-007.
enum class kind : uint8_t {
    pad,
    tnt_short,
    tnt_long,
    tip,
    tip_pge,
    tip_pgd,
    fup,
    pip,
    mode_exec,
    mode_tsx,
    tracestop,
    cbr,
    tsc,
    mtc,
    tma,
    cyc,
    vmcs,
    ovf,
    psb,
    psbend,
    mnt,
    ptw,
    exstop,
    mwait,
    pwre,
    pwrx,
    bbp,
    bip,
    bep,
    cfe,
    evd,
    trig,
    none = 0xFF,  ///< no packet: the kind of damage, and of events without a packet
};

/// Whether a CYC precedes a packet. The catalogue leaves some packets unconfirmed.
enum class cyc_rule : uint8_t { no, yes, unconfirmed };

/// Whether a packet binds to the address of an instruction.
enum class ip_binding : uint8_t { no, yes, conditional };

/// The properties of a packet type other than its bits.
struct facts {
    kind id;
    text name;  ///< as the manual spells it
    ip_binding binds_to_ip = ip_binding::no;
    bool in_psb_plus = false;  ///< may appear between PSB and PSBEND
    cyc_rule cyc_eligible = cyc_rule::no;
    bool keeps_block = false;  ///< does not end a block of BIPs
};

/// The item size of the open block: the only context that decoding a packet needs.
///
/// Source: PKT-006, PKT-203.
enum class block : uint8_t {
    none = 0,
    items_of_4 = 4,
    items_of_8 = 8,
};

/// The reason why a decode failed.
///
/// Source: PKT-004, in its order of checks.
enum class error : uint8_t {
    none,
    truncated,   ///< valid so far, but more bytes are needed: append some and retry
    bad_opcode,  ///< no packet has this opcode: continue at the next PSB
    reserved,    ///< the packet's header holds a reserved value: continue at the next PSB
    /// the packet is complete, but its payload violates a rule: continue at the next PSB
    bad_packet,
};

}  // namespace ptspec::packet
