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
    /// Adds a packet after the PSB. A packet that is no status packet changes nothing.
    constexpr void add(packet::any_packet const& packet, packet_place place) noexcept {
        using packet::kind;
        uint64_t const raw = packet.raw().low;  // `as` would make this header dearer to include
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
            case kind::tsc: tsc.raw = raw; break;
            case kind::tma: tma.raw = raw; break;
            case kind::cbr: cbr.raw = raw; break;
            case kind::pip: pip.raw = raw; break;
            case kind::vmcs: vmcs.raw = raw; break;
            case kind::mode_exec: mode_exec.raw = raw; break;
            case kind::mode_tsx: mode_tsx.raw = raw; break;
            default: return;
        }
        kinds.add(packet.kind());
    }
};

}  // namespace ptspec::trace
