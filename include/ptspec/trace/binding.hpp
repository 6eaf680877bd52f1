// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/list.hpp>

/// What packets belong to, and the state of the processor after each.
namespace ptspec::trace {

/// What is known about PacketEn.
enum class tracing : uint8_t {
    unknown,   ///< at the start, after an OVF and after damage
    off,       ///< control flow is not traced; its next packet is a TIP.PGE
    entering,  ///< 1 according to the last PSB+; a TIP.PGE may follow: BDM70, PKT-140
    on,        ///< control flow is traced
};

/// What a packet belongs to.
///
/// Source: PKT-270..278, GEN-246.
enum class owner : uint8_t {
    none,               ///< PAD, TSC, TMA, MTC, CYC, CBR, MNT, PSB, PSBEND
    status,             ///< a packet of a PSB+, which reports the state: PKT-136
    branch,             ///< TNT, TIP, TIP.PGD: the next branches of the code
    far_transfer,       ///< MODE.Exec and TIP without a FUP
    asynchronous,       ///< FUP, PIP, VMCS, MODE.Exec, and the TIP or TIP.PGD that ends the event
    enable,             ///< MODE.Exec and TIP.PGE: PacketEn becomes 1
    paging,             ///< PIP, VMCS without a FUP: the next MOV CR3, far transfer, VM entry ..
    interrupt_flag,     ///< MODE.Exec and FUP, with event trace: PKT-092
    transaction,        ///< MODE.TSX and FUP
    transaction_abort,  ///< MODE.TSX, FUP, and TIP or TIP.PGD
    overflow,           ///< OVF, and the FUP with the IP at which tracing resumes
    ptwrite,            ///< PTW and FUP
    power,              ///< MWAIT, PWRE, EXSTOP and FUP; PWRX
    pebs,               ///< BBP, BIP, BEP and FUP
    control_flow,       ///< EVD, CFE and FUP
    trigger,            ///< TRIG and FUP
    trace_stop,         ///< TraceStop
};

/// What a packet says about an IP at which tracing may have resumed after an OVF.
///
/// Source: GEN-228, GEN-343.
enum class resumption : uint8_t {
    none,
    possible,   ///< tracing may have resumed at the IP of the PSB+ that ends here
    confirmed,  ///< tracing resumed at the last such IP
    withdrawn,  ///< tracing did not resume at the last such IP
    refuted,    ///< tracing resumed at none of them
    at_fup,     ///< `withdrawn`: it resumed at the last FUP, whose owner was `asynchronous`
};

/// A packet that violates a rule.
struct violation {
    uint64_t offset = 0;  ///< where the packet begins, in bytes from the start of the trace
    rule broken = rule::none;
    packet::kind kind = packet::kind::none;  ///< of damage to the bytes: none
    /// Perhaps no error. The trace ends inside of a packet: PKT-255. Or a PSB+ has another CR3 than
    /// the last PIP: an SMI or a VM exit without PIP changed it, or packets are lost: GEN-344.
    bool is_note = false;

    friend constexpr auto operator==(violation const&, violation const&) -> bool = default;
};

/// What a packet belongs to, and whether the packet completes it.
///
/// MODE.Exec has the owner `far_transfer` until the packet that completes it: TIP, TIP.PGE or FUP.
/// Does not convert to bool: a packet that breaks a rule belongs to something, too.
struct binding {
    owner to = owner::none;
    bool completes = true;     ///< no packet of the same owner has to follow
    rule broken = rule::none;  ///< a violated rule, whose place is `binder::violated()`
    bool in_psb_plus = false;  ///< between PSB and PSBEND
    bool is_note = false;      ///< `violation::is_note`
    resumption resumed = resumption::none;
};

/// The state of the processor that is known from the packets.
struct execution_state {
    tracing enabled = tracing::unknown;
    uint8_t code_bits = 0;     ///< 16, 32 or 64; 0: unknown
    bool has_cr3 = false;      ///< `cr3` and `non_root` are known
    bool has_vmcs = false;     ///< `vmcs` is known
    bool non_root = false;     ///< PIP.NR
    bool interrupts = false;   ///< RFLAGS.IF, with event trace
    bool transaction = false;  ///< InTX
    uint64_t cr3 = 0;
    uint64_t vmcs = 0;  ///< the base address of the current VMCS; all ones: none

    /// Takes the value of a packet.
    constexpr void take(packet::pip packet) noexcept {
        has_cr3 = true;
        cr3 = packet.get<packet::pip::CR3>();
        non_root = packet.get<packet::pip::NR>();
    }
    constexpr void take(packet::vmcs packet) noexcept {
        has_vmcs = true;
        vmcs = packet.get<packet::vmcs::base>();
    }
    constexpr void take(packet::mode_exec packet) noexcept {
        code_bits = static_cast<uint8_t>(packet.code_bits());
        interrupts = packet.get<packet::mode_exec::IF>();
    }
    constexpr void take(packet::mode_tsx packet) noexcept {
        transaction = packet.get<packet::mode_tsx::InTX>();
    }

    friend constexpr auto operator==(execution_state const&, execution_state const&)
        -> bool = default;
};

}  // namespace ptspec::trace
