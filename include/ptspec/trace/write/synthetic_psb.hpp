// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/reader.hpp>
#include <ptspec/trace/write/writer.hpp>

/// A PSB+ to put before a trace that begins without one.
namespace ptspec::trace {

/// The bytes of `synthetic_psb`.
struct synthetic_prefix {
    /// The length of the longest: a PSB+ with every packet, and three packets that set LastIP.
    static constexpr size_t capacity = 96;

    rule broken = rule::none;  ///< PKT-135: TMA without TSC; nothing is written
    byte_array<capacity> bytes{};
    size_t size = 0;

    [[nodiscard]] constexpr auto view() const noexcept -> byte_view { return {bytes.data(), size}; }
    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

/// The state of the traced processor where a trace begins.
struct prefix_state {
    psb_status status{};  ///< `fup` if PacketEn is 1 there: it also is LastIP
    /// LastIP, if PacketEn is 0 there. The processor keeps it while TraceEn is 0, so the IP of the
    /// first TIP.PGE may be compressed against it. Source: GEN-107.
    psb_status::optional<uint64_t> last_ip{};
};

/// A PSB+ with the state of the processor, to put before a trace that begins without one: the trace
/// of a restored context, whose PacketByteCnt was not 0, or a trace that was cut.
///
/// With `last_ip`, the empty trace TIP.PGE, FUP, TIP.PGD at this IP follows. It sets LastIP of a
/// decoder, and no instruction is executed in it.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-060, PKT-134, GEN-107, GEN-170,
///         PRG-031, PRG-102.
template <class Packets = packet::all>  // a plain function doubles the cost of including trace.hpp
[[nodiscard]] constexpr auto synthetic_psb(prefix_state const& from) noexcept -> synthetic_prefix {
    synthetic_prefix made;
    byte_buffer out{made.bytes.bytes};
    writer<byte_buffer, Packets> output{out};
    made.broken = output.put(from.status);
    if (made && from.last_ip.has_value && !from.status.fup.has_value) {
        using packet::ip_bytes;
        uint64_t const ip = from.last_ip.value;
        made.broken = output.put(packet::tip_pge::of(ip_bytes::full, ip));
        if (made) { made.broken = output.put(packet::fup::of(ip_bytes::full, ip)); }
        if (made) { made.broken = output.put(packet::tip_pgd{}); }
    }
    made.size = made ? out.size() : 0;
    return made;
}

namespace detail {

/// Finds the first packet with an IP. Source: PKT-053..056.
struct first_ip_form {
    bool is_relative = false;

    constexpr auto operator()(packet::psb const&, packet_place) noexcept -> bool { return false; }
    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    constexpr auto operator()(Packet const& packet, packet_place) noexcept -> bool {
        auto const form = packet.template get<typename Packet::IPBytes>();
        is_relative = form == packet::ip_bytes::update_16 || form == packet::ip_bytes::update_32 ||
                      form == packet::ip_bytes::update_48;
        return form == packet::ip_bytes::suppressed;
    }
};

}  // namespace detail

/// True if the first packet with an IP is compressed against LastIP, before any PSB: `last_ip` or
/// `fup` is then needed.
///
/// Source: PKT-051, PKT-060.
template <class Found = detail::first_ip_form>  // as above
[[nodiscard]] constexpr auto needs_last_ip(borrowed_bytes trace) noexcept -> bool {
    reader from{trace, {.sync = false}};
    Found found;
    using namespace packet;
    (void)from.for_each<psb, tip, tip_pge, tip_pgd, fup>(found);
    return found.is_relative;
}

}  // namespace ptspec::trace
