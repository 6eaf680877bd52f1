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

    /// A new PSB+ begins. The values of packets that it does not have are undefined.
    constexpr void begin(uint64_t at) noexcept {
        offset = at;
        kinds = {};
        has_ip = false;
    }
    /// A FUP counts only if it has an IP.
    [[nodiscard]] constexpr auto has(packet::kind which) const noexcept -> bool {
        return kinds.has(which);
    }
    /// Adds a status packet.
    constexpr void add(packet::fup which, at where) noexcept {
        if (!which.has_ip()) { return; }
        has_ip = true;
        ip = where.ip;
        fup_offset = where.offset;
        fup = which;
        kinds.add(packet::kind::fup);
    }
    constexpr void add(packet::tsc which) noexcept {
        tsc = which;
        kinds.add(packet::kind::tsc);
    }
    constexpr void add(packet::tma which) noexcept {
        tma = which;
        kinds.add(packet::kind::tma);
    }
    constexpr void add(packet::cbr which) noexcept {
        cbr = which;
        kinds.add(packet::kind::cbr);
    }
    constexpr void add(packet::pip which) noexcept {
        pip = which;
        kinds.add(packet::kind::pip);
    }
    constexpr void add(packet::vmcs which) noexcept {
        vmcs = which;
        kinds.add(packet::kind::vmcs);
    }
    constexpr void add(packet::mode_exec which) noexcept {
        mode_exec = which;
        kinds.add(packet::kind::mode_exec);
    }
    constexpr void add(packet::mode_tsx which) noexcept {
        mode_tsx = which;
        kinds.add(packet::kind::mode_tsx);
    }
    /// Adds a packet after the PSB. Returns false, and changes nothing, if it is no status packet.
    [[nodiscard]] constexpr auto add(packet::any_packet const& which, at where) noexcept -> bool {
        using packet::kind;
        switch (which.kind()) {
            case kind::fup: add(which.as<packet::fup>(), where); return true;
            case kind::tsc: add(which.as<packet::tsc>()); return true;
            case kind::tma: add(which.as<packet::tma>()); return true;
            case kind::cbr: add(which.as<packet::cbr>()); return true;
            case kind::pip: add(which.as<packet::pip>()); return true;
            case kind::vmcs: add(which.as<packet::vmcs>()); return true;
            case kind::mode_exec: add(which.as<packet::mode_exec>()); return true;
            case kind::mode_tsx: add(which.as<packet::mode_tsx>()); return true;
            default: return false;
        }
    }
};

}  // namespace ptspec::trace
