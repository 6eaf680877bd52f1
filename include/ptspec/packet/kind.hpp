// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/rule.hpp>

namespace ptspec::packet {

/// The packets.
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
};

/// An answer of the catalogue that may be missing.
enum class cyc_rule : uint8_t { no, yes, unconfirmed };

/// Whether a packet belongs to an instruction's address.
enum class binding : uint8_t { no, yes, conditional };

/// What is to be said of a packet beside its bits.
struct facts {
    kind id;
    text name;  ///< as the manual spells it
    binding binds_to_ip = binding::no;
    bool in_psb_plus = false;  ///< it may stand between PSB and PSBEND
    cyc_rule cyc_eligible = cyc_rule::no;
    bool keeps_block = false;  ///< a block of BIPs goes on behind it
};

/// The item size of the open block, the one piece of context that reading a packet needs.
///
/// Source: PKT-006, PKT-203.
enum class block : uint8_t {
    none = 0,
    items_of_4 = 4,
    items_of_8 = 8,
};

/// What is wrong with the bytes at hand.
///
/// Source: PKT-004, in its order of checks.
enum class error : uint8_t {
    none,
    truncated,   ///< legal so far, and more bytes are needed: append some and try again
    bad_opcode,  ///< no packet begins like this: go on at the next PSB
    reserved,    ///< the packet's header holds a value without a meaning: go on at the next PSB
    bad_packet,  ///< the packet is whole and its payload breaks a rule: go on at the next PSB
};

}  // namespace ptspec::packet
