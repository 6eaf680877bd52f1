// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// How the IP is rebuilt from the payload and the last IP.
///
/// Source: PKT-051. 5 and 7 are reserved.
enum class ip_bytes : uint8_t {
    suppressed = 0,  ///< no payload: no IP
    update_16 = 1,   ///< 2 bytes replace bits 15:0
    update_32 = 2,   ///< 4 bytes replace bits 31:0
    sign_48 = 3,     ///< 6 bytes, sign-extended
    update_48 = 4,   ///< 6 bytes replace bits 47:0
    full = 6,        ///< 8 bytes
};

/// The last IP after an IP packet. `last_ip` is unchanged if the packet has no IP.
///
/// Errors: none; for reserved values of IPBytes it is `last_ip`.
/// Source: PKT-053..059.
[[nodiscard]] constexpr auto rebuilt_ip(ip_bytes form, uint64_t payload, uint64_t last_ip) noexcept
    -> uint64_t {
    switch (form) {
        case ip_bytes::update_16: return (last_ip & ~low_bits(16)) | (payload & low_bits(16));
        case ip_bytes::update_32: return (last_ip & ~low_bits(32)) | (payload & low_bits(32));
        case ip_bytes::sign_48: return sign_extended(payload, 48);
        case ip_bytes::update_48: return (last_ip & ~low_bits(48)) | (payload & low_bits(48));
        case ip_bytes::full: return payload;
        case ip_bytes::suppressed: break;
    }
    return last_ip;
}

/// The shortest form that compresses `ip`, given the last IP.
///
/// Source: PKT-064: the first that fits of 1, 2, 3, 4, 6.
[[nodiscard]] constexpr auto shortest_form(uint64_t ip, uint64_t last_ip) noexcept -> ip_bytes {
    return (ip ^ last_ip) >> 16 == 0     ? ip_bytes::update_16
           : (ip ^ last_ip) >> 32 == 0   ? ip_bytes::update_32
           : sign_extended(ip, 48) == ip ? ip_bytes::sign_48
           : (ip ^ last_ip) >> 48 == 0   ? ip_bytes::update_48
                                         : ip_bytes::full;
}

/// The common part of TIP, TIP.PGE, TIP.PGD and FUP.
///
/// Shape:  1 byte: the opcode in bits 4:0 and IPBytes in bits 7:5; then 0, 2, 4, 6 or 8 bytes of
///         IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "IP Compression"; PKT-050..062.
template <class Derived>
struct ip_packet
    : packet_word<Derived, 1, payload_of<0, 2, 4, 6, 6, undefined_size, 8, undefined_size>> {
    using base =
        packet_word<Derived, 1, payload_of<0, 2, 4, 6, 6, undefined_size, 8, undefined_size>>;
    using base::base;

    struct IPBytes : selects_payload<enumerated<7, 5, ip_bytes>> {};

    /// False if the IP is suppressed; the last IP is then unchanged.
    [[nodiscard]] constexpr auto has_ip() const noexcept -> bool {
        return this->template get<IPBytes>() != ip_bytes::suppressed;
    }
    /// The IP of this packet, which is the next last IP; if the IP is suppressed, `last_ip`.
    /// The last IP is 0 after a PSB. Source: PKT-059, PKT-060.
    [[nodiscard]] constexpr auto ip(uint64_t last_ip = 0) const noexcept -> uint64_t {
        return rebuilt_ip(this->template get<IPBytes>(), this->payload(), last_ip);
    }
    /// A packet in the given form. IP bits that the form does not carry are dropped.
    [[nodiscard]] static constexpr auto of(ip_bytes form, uint64_t ip) noexcept -> Derived {
        return Derived{}.with(IPBytes{form}).with_payload(ip & low_bits(8 * payload_bytes(form)));
    }
    /// A packet that carries `ip` in the shortest form, given the last IP.
    [[nodiscard]] static constexpr auto compressed(uint64_t ip, uint64_t last_ip) noexcept
        -> Derived {
        return of(shortest_form(ip, last_ip), ip);
    }
    [[nodiscard]] static constexpr auto broken_header(wide_bits raw) noexcept -> rule {
        return base::selected_size(raw) == undefined_size ? rule::PKT_052 : rule::none;
    }

private:
    static constexpr auto payload_bytes(ip_bytes form) noexcept -> unsigned {
        unsigned const size = base::payload_type::size(underlying(form) & 7U);
        return size == undefined_size ? 0 : size;
    }
};

/// TIP, the target of an indirect branch, uncompressed return, far transfer or event.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 0DH with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Target IP (TIP) Packet"; PKT-050, PKT-070, PKT-071.
struct tip : ip_packet<tip> {
    static constexpr facts about{.id = kind::tip,
                                 .name = "TIP",
                                 .binds_to_ip = ip_binding::yes,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<4, 0, 0x0D> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// TIP.PGE, the IP where packet generation was enabled.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 11H with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Packet Generation Enable (TIP.PGE) Packet"; PKT-050, PKT-076.
struct tip_pge : ip_packet<tip_pge> {
    static constexpr facts about{.id = kind::tip_pge,
                                 .name = "TIP.PGE",
                                 .binds_to_ip = ip_binding::yes,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<4, 0, 0x11> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// TIP.PGD, the IP where packet generation was disabled.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 01H with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Packet Generation Disable (TIP.PGD) Packet"; PKT-050, PKT-073..075.
struct tip_pgd : ip_packet<tip_pgd> {
    static constexpr facts about{.id = kind::tip_pgd,
                                 .name = "TIP.PGD",
                                 .binds_to_ip = ip_binding::yes,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<4, 0, 0x01> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// FUP, the source IP of an event. It always belongs to another packet, which consumes it.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 1DH with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Flow Update Packet (FUP)"; PKT-050, PKT-065, PKT-077.
struct fup : ip_packet<fup> {
    static constexpr facts about{.id = kind::fup,
                                 .name = "FUP",
                                 .binds_to_ip = ip_binding::yes,
                                 .in_psb_plus = true,
                                 .keeps_block = true};

    struct Opcode : fixed<4, 0, 0x1D> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

}  // namespace ptspec::packet
