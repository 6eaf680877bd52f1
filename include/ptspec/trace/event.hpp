// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/any_packet.hpp>
#include <ptspec/trace/binding.hpp>
#include <ptspec/trace/time.hpp>

/// What an event reader returns.
namespace ptspec::trace {

/// The type of an event, and the members of `event` that it has. All have `offset` and `when`;
/// `packet` is the packet with the values of the event.
///
/// Damage to the order of packets has the offset of the packet at fault. If that is an earlier one,
/// `packet` has only its kind, and `when` is the time of the packet that shows the damage.
enum class event_type : uint8_t {
    /// Outcomes of conditional branches and compressed returns: `branches()`. At unknown IPs if
    /// `enabled` is `unknown`.
    branches,
    indirect_branch,  ///< an indirect branch, an uncompressed return, a far transfer: `to`
    enabled,          ///< tracing starts at `ip`
    disabled,         ///< a branch or MOV CR3 ends tracing; `to` is its target, where it is known
    async_branch,     ///< an interrupt, an exception, a VM exit ..: from `ip` to `to`
    async_disabled,   ///< tracing ends at `ip`; `to` is the next IP, where it is known
    paging,           ///< CR3, and VMX root or non-root operation: PIP. With `ip` after an event
    vmcs,             ///< the current VMCS: VMCS
    exec_mode,        ///< the size of code at `ip`, and with event trace RFLAGS.IF: MODE.Exec
    transaction,      ///< begin, end or abort at `ip`: MODE.TSX
    overflow,         ///< packets before it are lost: OVF
    resumed,          ///< after an overflow or a loss of packets, control flow continues at `ip`
    trace_stop,       ///< TraceStop; `ip` is the IP of the TIP.PGD before it, if known
    ptwrite,          ///< PTW
    exstop,           ///< execution stops: EXSTOP
    mwait,            ///< MWAIT
    pwre,             ///< entry of a C-state: PWRE
    pwrx,             ///< exit from a C-state: PWRX; `ip` is that of the entry
    pebs_group,       ///< BBP, without `ip`: `pebs_end` has the IP of the record
    pebs_item,        ///< BIP, also without `ip`
    pebs_end,         ///< BEP
    event_data,       ///< EVD: of the `control_flow` event that follows
    control_flow,     ///< an event of event trace: CFE
    trigger,          ///< TRIG
    frequency,        ///< the ratio of the core clock to the bus clock: CBR
    maintenance,      ///< MNT
    psb,              ///< a PSB+ ends; `ip` is the current IP, unless tracing is off
    damage,           ///< bytes that are no packet, or a packet that violates `broken`
    note,             ///< a packet that violates `broken`, perhaps without an error: `is_note`
    synced,           ///< the first PSB: `skipped` bytes before it
    resynced,         ///< reading resumes at a PSB, `skipped` bytes after the damage
    lost,             ///< no PSB follows: the last `skipped` bytes are not decoded
    unknown,          ///< bytes that only the caller's hook can decode
    need_input,       ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    end,              ///< the end of the trace
};

/// One event of a trace.
///
/// Units:  `when` in TSC ticks; `when.is_absent()` without a clock.
struct event {
    event_type what = event_type::end;
    /// PacketEn after the packets of the event. `unknown` also after an OVF, until a packet shows
    /// whether tracing resumes.
    tracing enabled = tracing::unknown;
    bool is_status = false;  ///< reported by a PSB+: not a change
    bool has_ip = false;
    bool has_to = false;
    packet::error error = packet::error::none;  ///< of damage to the bytes
    rule broken = rule::none;                   ///< of damage and notes
    uint32_t skipped = 0;                       ///< in bytes
    uint64_t offset = 0;  ///< of `packet`, in bytes from the start of the trace
    uint64_t ip = 0;
    uint64_t to = 0;
    packet::any_packet packet{};
    time when{};

    /// False at the end of the trace and at the end of a chunk.
    constexpr explicit operator bool() const noexcept {
        return what != event_type::need_input && what != event_type::end;
    }
    constexpr void set_ip(uint64_t value) noexcept {
        has_ip = true;
        ip = value;
    }
    /// The outcomes of `event_type::branches`, the oldest first.
    [[nodiscard]] constexpr auto branches() const noexcept -> packet::branches {
        return packet.is<packet::tnt_short>() ? packet.as<packet::tnt_short>().taken()
                                              : packet.as<packet::tnt_long>().taken();
    }
};

namespace detail {

/// The event type of a packet that has the same one always; else `end`.
constexpr auto type_of(packet::kind packet_kind) noexcept -> event_type {
    using packet::kind;
    switch (packet_kind) {
        case kind::pip: return event_type::paging;
        case kind::vmcs: return event_type::vmcs;
        case kind::mode_exec: return event_type::exec_mode;
        case kind::mode_tsx: return event_type::transaction;
        case kind::tracestop: return event_type::trace_stop;
        case kind::ptw: return event_type::ptwrite;
        case kind::exstop: return event_type::exstop;
        case kind::mwait: return event_type::mwait;
        case kind::pwre: return event_type::pwre;
        case kind::pwrx: return event_type::pwrx;
        case kind::bbp: return event_type::pebs_group;
        case kind::bip: return event_type::pebs_item;
        case kind::bep: return event_type::pebs_end;
        case kind::evd: return event_type::event_data;
        case kind::cfe: return event_type::control_flow;
        case kind::trig: return event_type::trigger;
        case kind::cbr: return event_type::frequency;
        case kind::mnt: return event_type::maintenance;
        // Their events depend on what they belong to, and on PacketEn.
        case kind::tnt_short:
        case kind::tnt_long:
        case kind::tip:
        case kind::tip_pge:
        case kind::tip_pgd:
        case kind::fup:
        case kind::ovf:
        case kind::psb:
        case kind::psbend:
        // They have no event.
        case kind::pad:
        case kind::tsc:
        case kind::tma:
        case kind::mtc:
        case kind::cyc:
        case kind::none: break;
    }
    return event_type::end;
}

}  // namespace detail

}  // namespace ptspec::trace
