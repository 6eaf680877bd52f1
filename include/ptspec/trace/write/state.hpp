// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/encode.hpp>

namespace ptspec::trace {

/// How a writer selects the IPBytes form of an IP.
///
/// Source: PKT-064, GEN-011, GEN-174, GEN-229.
enum class ip_choice : uint8_t {
    /// The first IP after a PSB or OVF does not use the last IP; others have the shortest form.
    as_processors,
    shortest,   ///< the first of 16, 32, 48 and 64 bits that fits
    broadwell,  ///< 48 bits always
    skylake,    ///< 48 bits in a FUP and in the first IP of a context, else `shortest`
    icelake,    ///< 64 bits where `skylake` has 48
};

/// Where a writer inserts PADs before packets.
///
/// Source: GEN-008, GEN-010.
enum class pad_policy : uint8_t {
    none,
    within_words,  ///< a packet that would cross a multiple of 8 bytes begins at one
    broadwell,     ///< each packet begins at a multiple of 8; CBR, MODE.TSX, MODE.Exec share a word
    skylake,       ///< wide payloads begin at a multiple of 8, shorter packets do not cross one
};

/// The order of the status packets in a PSB+, CBR and PSBEND included.
///
/// Source: GEN-171.
enum class psb_order : uint8_t {
    manual,   ///< TSC, TMA, CBR, PIP, VMCS, MODE.TSX, MODE.Exec, FUP
    skylake,  ///< MODE.TSX, MODE.Exec, FUP, PIP, VMCS, TSC, TMA, CBR
    atom,     ///< as `manual`, with FUP before MODE.Exec
};

/// The choices that the manual leaves to the processor, and the settings in IA32_RTIT_CTL.
struct writer_options {
    ip_choice ips = ip_choice::as_processors;
    uint8_t tnt_capacity = packet::tnt_short::max_branches;  ///< branches in a TNT: 6 to 47
    bool defers_tips = false;  ///< TIPs are deferred until after the current TNT (GEN-145)
    pad_policy pads = pad_policy::none;
    psb_order in_psb = psb_order::manual;
    bool cyc = false;           ///< IA32_RTIT_CTL.CYCEn
    uint8_t cyc_threshold = 0;  ///< IA32_RTIT_CTL.CycThresh: 2^(n-1) cycles, or 1 if it is 0

    [[nodiscard]] constexpr auto max_branches() const noexcept -> unsigned { return tnt_capacity; }
    /// True if the writer adds no CYCs and no PADs, and no kind of processor selects the IP forms.
    [[nodiscard]] constexpr auto is_plain() const noexcept -> bool {
        return !cyc && pads == pad_policy::none && ips <= ip_choice::shortest;
    }
};

/// The state of a writer between two packets.
struct writer_state {
    static constexpr unsigned max_deferred = 8;
    /// The size of the largest batch: a TNT, deferred TIPs, and a PSB+ in which each packet has a
    /// CYC and PADs.
    static constexpr size_t max_bytes = 384;

    uint64_t last_ip = 0;
    bool has_last_ip = false;  ///< an IP was written after the last PSB or OVF
    /// An IP was written after the last PSB, OVF, PIP, VMCS, TSC or MODE.Exec. Source: GEN-011.
    bool has_context_ip = false;
    /// The last packet ended with a wide payload: `pad_policy::skylake` inserts PADs after it.
    bool ends_in_payload = false;
    packet::block items = packet::block::none;
    packet::branches tnt{};  ///< the TNT buffer: branches that are in no packet yet
    uint64_t cycles = 0;     ///< since the last CYC
    /// `cycles` when the last packet was written, if it was a full TNT; else 0. While `cycles` has
    /// this value, `pad_policy::skylake` does not align the CYC of the next TNT. Source: GEN-010.
    uint64_t cycles_at_tnt = 0;
    uint64_t bytes = 0;  ///< written so far
    unsigned deferred_count = 0;
    uint64_t deferred[max_deferred] = {};  ///< the IPs of deferred TIPs, oldest first

    /// Adds a branch to the TNT buffer, as the youngest branch.
    constexpr void add_branch(bool taken) noexcept {
        tnt = {tnt.count + 1, tnt.bits << 1 | uint64_t{taken}};
    }
    /// Updates the state after a packet was written.
    template <packet::packet_type Packet>
    constexpr void record(Packet const& packet, unsigned length) noexcept {
        last_ip = packet::last_ip_after(packet, last_ip);
        items = packet::block_after(packet, items);
        if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
            has_last_ip |= packet.has_ip();
            has_context_ip |= packet.has_ip();
        } else if constexpr (same_as<Packet, packet::psb> || same_as<Packet, packet::ovf>) {
            has_last_ip = has_context_ip = false;
        } else if constexpr (same_as<Packet, packet::pip> || same_as<Packet, packet::vmcs> ||
                             same_as<Packet, packet::tsc> || same_as<Packet, packet::mode_exec>) {
            has_context_ip = false;
        }
        bytes += length;
    }
    /// Selects the IPBytes form of the next IP. `is_fup` is true if the packet is a FUP.
    [[nodiscard]] constexpr auto form_of(uint64_t ip, ip_choice choice,
                                         bool is_fup = false) const noexcept -> packet::ip_bytes {
        return choice > ip_choice::shortest ? form_by_kind(ip, choice, is_fup)
                                            : form_of_any_kind(ip, choice);
    }
    /// The same for `ip_choice::as_processors` and `ip_choice::shortest`.
    [[nodiscard]] constexpr auto form_of_any_kind(uint64_t ip, ip_choice choice) const noexcept
        -> packet::ip_bytes {
        if (choice == ip_choice::shortest || has_last_ip) {
            return packet::shortest_form(ip, last_ip);
        }
        return wide_form(ip);
    }
    /// True when the next CYC-eligible packet must have a CYC.
    [[nodiscard]] constexpr auto cyc_is_due(writer_options const& options) const noexcept -> bool {
        unsigned const doublings = options.cyc_threshold > 1 ? options.cyc_threshold - 1U : 0;
        return options.cyc && cycles >= uint64_t{1} << (doublings < 63 ? doublings : 63);
    }

private:
    [[nodiscard]] static constexpr auto wide_form(uint64_t ip) noexcept -> packet::ip_bytes {
        return sign_extended(ip, 48) == ip ? packet::ip_bytes::sign_48 : packet::ip_bytes::full;
    }
    [[nodiscard]] constexpr auto form_by_kind(uint64_t ip, ip_choice choice,
                                              bool is_fup) const noexcept -> packet::ip_bytes {
        auto const wide = choice == ip_choice::icelake ? packet::ip_bytes::full : wide_form(ip);
        if (choice == ip_choice::broadwell || is_fup || !has_context_ip) { return wide; }
        auto const form = packet::shortest_form(ip, last_ip);
        bool const is_short = form == packet::ip_bytes::update_16 ||
                              form == packet::ip_bytes::update_32;
        return is_short ? form : wide;
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
