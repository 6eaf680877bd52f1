// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <intel-pt.h>

#include <cstdint>
#include <cstdlib>

/// State that libipt leaves to its callers.
namespace ptspec::test {

/// The last IP after a packet that carries an IP.
inline auto libipt_ip_after(pt_packet_ip const& packet, std::uint64_t last) -> std::uint64_t {
    auto const upper = [&](unsigned bits) { return last >> bits << bits; };
    switch (packet.ipc) {
        case pt_ipc_suppressed: return last;
        case pt_ipc_update_16: return upper(16) | packet.ip;
        case pt_ipc_update_32: return upper(32) | packet.ip;
        case pt_ipc_update_48: return upper(48) | packet.ip;
        case pt_ipc_sext_48:
            return (packet.ip >> 47 & 1) != 0 ? packet.ip | 0xFFFF'0000'0000'0000 : packet.ip;
        case pt_ipc_full: return packet.ip;
    }
    std::abort();
}

}  // namespace ptspec::test
