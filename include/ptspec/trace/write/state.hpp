// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/encode.hpp>

namespace ptspec::trace {

/// How a writer selects the IPBytes form of an IP.
///
/// Source: PKT-064, GEN-174, GEN-229.
enum class ip_choice : uint8_t {
    as_processors,  ///< the first IP after a PSB or OVF not by the last IP, others the shortest
    shortest,       ///< the first that fits of 16, 32, 48 and 64 bits
};

/// The choices that the manual leaves to the processor, and settings from its control registers.
struct writer_options {
    ip_choice ips = ip_choice::as_processors;
    bool long_tnt = false;      ///< up to 47 branches in a TNT, not 6
    bool defers_tips = false;   ///< TIPs are deferred until after the current TNT (GEN-145)
    bool pads = false;          ///< PADs keep packets from crossing a multiple of 8 bytes
    bool cyc = false;           ///< IA32_RTIT_CTL.CYCEn
    uint8_t cyc_threshold = 0;  ///< IA32_RTIT_CTL.CycThresh: 2^(n-1) cycles, or 1 if it is 0

    [[nodiscard]] constexpr auto max_branches() const noexcept -> unsigned {
        return long_tnt ? packet::tnt_long::max_branches : packet::tnt_short::max_branches;
    }
};

/// The state of a writer between two packets.
struct writer_state {
    static constexpr unsigned max_deferred = 8;
    /// The size of a PSB+ in which each packet has a CYC and PADs, after a TNT and deferred TIPs.
    static constexpr size_t max_bytes = 384;

    uint64_t last_ip = 0;
    bool has_last_ip = false;  ///< an IP was written after the last PSB or OVF
    packet::block items = packet::block::none;
    packet::branches tnt{};  ///< the TNT buffer: branches that are in no packet yet
    uint64_t cycles = 0;     ///< since the last CYC
    uint64_t bytes = 0;      ///< written so far
    unsigned deferred_count = 0;
    uint64_t deferred[max_deferred] = {};  ///< the IPs of deferred TIPs, oldest first

    /// Adds a branch to the TNT buffer, as its youngest.
    constexpr void add_branch(bool taken) noexcept {
        tnt = {tnt.count + 1, tnt.bits << 1 | uint64_t{taken}};
    }
    /// Updates the state after a packet was written.
    template <packet::packet_type Packet>
    constexpr void record(Packet const& which, unsigned length) noexcept {
        last_ip = packet::last_ip_after(which, last_ip);
        items = packet::block_after(which, items);
        if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
            has_last_ip |= which.has_ip();
        } else if constexpr (same_as<Packet, packet::psb> || same_as<Packet, packet::ovf>) {
            has_last_ip = false;
        }
        bytes += length;
    }
    /// The form for the next IP.
    [[nodiscard]] constexpr auto form_of(uint64_t ip, ip_choice how) const noexcept
        -> packet::ip_bytes {
        if (how == ip_choice::shortest || has_last_ip) {
            return packet::shortest_form(ip, last_ip);
        }
        return sign_extended(ip, 48) == ip ? packet::ip_bytes::sign_48 : packet::ip_bytes::full;
    }
    /// True when the next CYC-eligible packet must have a CYC.
    [[nodiscard]] constexpr auto cyc_is_due(writer_options const& how) const noexcept -> bool {
        unsigned const doublings = how.cyc_threshold > 1 ? how.cyc_threshold - 1U : 0;
        return how.cyc && cycles >= uint64_t{1} << (doublings < 63 ? doublings : 63);
    }
};

/// The status packets of a PSB+. TMA requires TSC.
///
/// Source: PKT-134, PKT-135, GEN-170, GEN-171.
struct psb_status {
    /// An optional value.
    template <class Value>
    struct optional {
        bool has_value = false;
        Value value{};

        constexpr optional() noexcept = default;
        constexpr optional(Value given) noexcept : has_value{true}, value{given} {}
    };

    optional<packet::tsc> tsc{};
    optional<packet::tma> tma{};
    optional<packet::cbr> cbr{};
    optional<packet::pip> pip{};
    optional<packet::vmcs> vmcs{};
    optional<packet::mode_tsx> mode_tsx{};
    optional<packet::mode_exec> mode_exec{};
    optional<uint64_t> fup{};  ///< the IP, when PacketEn is 1
};

}  // namespace ptspec::trace
