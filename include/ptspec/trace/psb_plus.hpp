// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/any_packet.hpp>
#include <ptspec/packet/kind_set.hpp>
#include <ptspec/trace/item.hpp>

namespace ptspec::trace {

/// What a PSB+ reports: its status packets, up to now or up to its PSBEND.
///
/// Shape:  a plain value of fixed size.
/// Source: PKT-134, PKT-136, PKT-140, GEN-170.
struct psb_plus {
    uint64_t offset = 0;  ///< of the PSB, in bytes from the start of the trace
    packet::kind_set kinds{};
    bool has_ip = false;  ///< of a FUP: PacketEn is 1
    uint64_t ip = 0;
    uint64_t fup_offset = 0;
    packet::fup fup{};
    packet::tsc tsc{};
    packet::tma tma{};
    packet::cbr cbr{};
    packet::pip pip{};
    packet::vmcs vmcs{};
    packet::mode_exec mode_exec{};
    packet::mode_tsx mode_tsx{};

    /// Begins a new PSB+. The values of packets that it lacks stay those of the last PSB+.
    constexpr void begin(uint64_t at) noexcept {
        offset = at;
        kinds = {};
        has_ip = false;
    }
    /// True if the PSB+ has a packet of this kind. A FUP counts only if it has an IP.
    [[nodiscard]] constexpr auto has(packet::kind kind) const noexcept -> bool {
        return kinds.has(kind);
    }
    /// Begins a new PSB+, and adds all packets of another one.
    constexpr void take(psb_plus const& read) noexcept {
        using packet::kind;
        begin(read.offset);
        kinds = read.kinds;
        has_ip = read.has_ip;
        if (has(kind::fup)) { ip = read.ip, fup_offset = read.fup_offset, fup = read.fup; }
        if (has(kind::tsc)) { tsc = read.tsc; }
        if (has(kind::tma)) { tma = read.tma; }
        if (has(kind::cbr)) { cbr = read.cbr; }
        if (has(kind::pip)) { pip = read.pip; }
        if (has(kind::vmcs)) { vmcs = read.vmcs; }
        if (has(kind::mode_exec)) { mode_exec = read.mode_exec; }
        if (has(kind::mode_tsx)) { mode_tsx = read.mode_tsx; }
    }
    /// Adds a packet after the PSB. A packet that is no status packet changes nothing.
    constexpr void add(packet::any_packet const& packet, packet_place place) noexcept {
        using packet::kind;
        switch (packet.kind()) {
            case kind::fup: {
                auto const one = packet.as<packet::fup>();
                if (!one.has_ip()) { return; }
                has_ip = true;
                ip = place.ip;
                fup_offset = place.offset;
                fup = one;
                break;
            }
            case kind::tsc: tsc = packet.as<packet::tsc>(); break;
            case kind::tma: tma = packet.as<packet::tma>(); break;
            case kind::cbr: cbr = packet.as<packet::cbr>(); break;
            case kind::pip: pip = packet.as<packet::pip>(); break;
            case kind::vmcs: vmcs = packet.as<packet::vmcs>(); break;
            case kind::mode_exec: mode_exec = packet.as<packet::mode_exec>(); break;
            case kind::mode_tsx: mode_tsx = packet.as<packet::mode_tsx>(); break;
            default: return;
        }
        kinds.add(packet.kind());
    }
};

}  // namespace ptspec::trace
