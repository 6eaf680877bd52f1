// SPDX-License-Identifier: BSL-1.0
#pragma once

// What pt_cut replaces in packets. A packet keeps its kind, its length and its other fields.

#include "maps.hpp"
#include "segments.hpp"

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

namespace pt_cut {

enum class change : std::uint8_t { keep, zero, map };

/// TSC ticks in crystal clock ticks, as CPUID leaf 15H gives them: `EBX` / `EAX`.
struct clock_ratio {
    std::uint32_t ebx;
    std::uint32_t eax;
};

struct changes {
    change ip = change::keep;
    bool offsets = false;  ///< map the offsets in pages, too
    change cr3 = change::keep;
    change vmcs = change::keep;
    change tsc = change::keep;  ///< map: rebase
    std::optional<clock_ratio> ratio{};
    change ptw = change::keep;
    change evd = change::keep;
    change bip = change::keep;
    change mnt = change::keep;
    change mwait = change::keep;
};

/// A VMCS pointer that means "no VMCS is loaded". It is never replaced.
inline constexpr std::uint64_t no_vmcs = low_bits(52) & ~low_bits(12);

/// Values of the original that the output must not have.
struct originals {
    value_set pages{};  ///< IP >> 12
    value_set cr3s{};
    value_set vmcss{};
    std::optional<std::uint64_t> first_tsc{};
    std::int64_t earliest = 0;  ///< the earliest TSC, relative to the first

    originals(byte_view trace, segments which, changes const& how) {
        for_each_packet(trace, which, [&](trace::item const& one) {
            packet::visit([&](auto const& packet) { add(packet, one.ip, how); }, one.packet);
        });
        pages.sort();
        cr3s.sort();
        vmcss.sort();
    }

private:
    template <class Packet>
    void add(Packet const& packet, std::uint64_t ip, changes const& how) {
        if constexpr (has_ip_field<Packet>) {
            if (packet.has_ip()) { pages.add(ip >> ip_map::page_bits); }
        } else if constexpr (same_as<Packet, packet::pip>) {
            cr3s.add(page_of(packet));
        } else if constexpr (same_as<Packet, packet::vmcs>) {
            if (page_of(packet) != no_vmcs) { vmcss.add(page_of(packet)); }
        } else if constexpr (same_as<Packet, packet::evd>) {
            using evd = packet::evd;
            if (how.evd == change::map && packet.template get<evd::type>() == evd_type::PFA) {
                pages.add(packet.template get<evd::payload>() >> ip_map::page_bits);
            }
        } else if constexpr (same_as<Packet, packet::tsc>) {
            auto const tsc = packet.template get<packet::tsc::TSC>();
            if (!first_tsc) { first_tsc = tsc; }
            // TSC packets carry 56 bits: the difference is signed, modulo 2^56.
            auto const later = sign_extended(tsc - *first_tsc, 56);
            earliest = std::min(earliest, static_cast<std::int64_t>(later));
        }
    }

    using evd_type = packet::evd_type;
};

/// The number that `--tsc rebase` subtracts. Without a ratio it is the earliest TSC. With a ratio
/// it is the next lower multiple of 2^23 crystal clock ticks, which is a whole number of TSC ticks:
/// then TSC - FC and CTC of a TMA, and the CTC of an MTC with any MTCFreq, keep their relation
/// (PKT-300), because CTC fields have no bits of the crystal clock above bit 22.
inline auto tsc_base(originals const& of, std::optional<clock_ratio> const& ratio)
    -> std::uint64_t {
    if (!of.first_tsc) { return 0; }
    auto const earliest = (*of.first_tsc + static_cast<std::uint64_t>(of.earliest)) & low_bits(56);
    if (!ratio) { return earliest; }
    std::uint64_t const ticks = std::uint64_t{ratio->ebx} << 23;
    return earliest - earliest % (ticks / std::gcd(ticks, std::uint64_t{ratio->eax}));
}

/// Replaces the fields of packets.
class rewriter {
public:
    rewriter(originals const& of, changes const& how)
        : how_{how},
          ips_{of.pages, how.offsets},
          cr3s_{of.cr3s},
          vmcss_{of.vmcss},
          tsc_base_{tsc_base(of, how.ratio)} {}

    /// The packet of an item, changed.
    auto operator()(trace::item const& one) -> packet::any_packet {
        return packet::visit(visitor{*this, one}, one.packet);
    }

    /// The IP that replaces an IP.
    auto new_ip(std::uint64_t ip) -> std::uint64_t {
        return how_.ip == change::keep ? ip : how_.ip == change::zero ? 0 : ips_(ip);
    }

    /// All replacements, one a line: what, original, replacement.
    [[nodiscard]] auto table() const -> std::string {
        std::string out;
        auto const line = [&](char const* what, std::uint64_t from, std::uint64_t to) {
            char text[80];
            std::snprintf(text, sizeof text, "%s 0x%llx 0x%llx\n", what,
                          static_cast<unsigned long long>(from),
                          static_cast<unsigned long long>(to));
            out += text;
        };
        unsigned const shift = how_.offsets ? 0 : ip_map::page_bits;
        char const* const unit = how_.offsets ? "ip" : "page";
        for (auto const& [from, to] : ips_.all()) { line(unit, from << shift, to << shift); }
        for (auto const& [from, to] : cr3s_.all()) { line("cr3", from, to); }
        for (auto const& [from, to] : vmcss_.all()) { line("vmcs", from, to); }
        if (how_.tsc == change::map) { line("tsc", tsc_base_, 0); }
        return out;
    }

private:
    struct visitor {
        rewriter& by;
        trace::item const& one;

        template <class Packet>
        auto operator()(Packet const& packet) const -> packet::any_packet {
            return {by.changed(packet, one.ip), one.length};
        }
    };

    template <class Packet>
    auto changed(Packet const& packet, std::uint64_t /*ip*/) -> Packet {
        return packet;
    }
    template <has_ip_field Packet>
    auto changed(Packet const& packet, std::uint64_t ip) -> Packet {
        if (!packet.has_ip() || how_.ip == change::keep) { return packet; }
        return Packet::of(packet.template get<typename Packet::IPBytes>(), new_ip(ip));
    }
    auto changed(packet::pip const& packet, std::uint64_t /*ip*/) -> packet::pip {
        return packet.with(packet::pip::CR3{wrapped{new_page(how_.cr3, cr3s_, page_of(packet))}});
    }
    auto changed(packet::vmcs const& packet, std::uint64_t /*ip*/) -> packet::vmcs {
        if (page_of(packet) == no_vmcs) { return packet; }
        return packet.with(
            packet::vmcs::base{wrapped{new_page(how_.vmcs, vmcss_, page_of(packet))}});
    }
    auto changed(packet::tsc const& packet, std::uint64_t /*ip*/) -> packet::tsc {
        using tsc = packet::tsc;
        if (how_.tsc == change::keep) { return packet; }
        std::uint64_t const rebased = packet.get<tsc::TSC>() - tsc_base_;
        return packet.with(tsc::TSC{wrapped{how_.tsc == change::zero ? 0 : rebased}});
    }
    auto changed(packet::ptw const& packet, std::uint64_t /*ip*/) -> packet::ptw {
        return how_.ptw == change::keep ? packet : packet.with_payload(0);
    }
    auto changed(packet::bip const& packet, std::uint64_t /*ip*/) -> packet::bip {
        return how_.bip == change::keep ? packet : packet.with_payload(0);
    }
    auto changed(packet::mnt const& packet, std::uint64_t /*ip*/) -> packet::mnt {
        return how_.mnt == change::keep ? packet : packet.with(packet::mnt::payload{0});
    }
    auto changed(packet::mwait const& packet, std::uint64_t /*ip*/) -> packet::mwait {
        using mwait = packet::mwait;
        return how_.mwait == change::keep ? packet : packet.with(mwait::hints{0}, mwait::ext{0});
    }
    auto changed(packet::evd const& packet, std::uint64_t /*ip*/) -> packet::evd {
        using evd = packet::evd;
        auto const type = packet.get<evd::type>();
        if (how_.evd == change::keep) { return packet; }
        bool const is_mapped = how_.evd == change::map && type == packet::evd_type::PFA;
        std::uint64_t const payload = is_mapped ? ips_(packet.get<evd::payload>()) : 0;
        return packet.with(evd::payload{wrapped{payload}});
    }

    static auto new_page(change how, page_map& map, std::uint64_t page) -> std::uint64_t {
        return how == change::keep ? page : how == change::zero ? 0 : map(page);
    }

    changes how_;
    ip_map ips_;
    page_map cr3s_;
    page_map vmcss_;
    std::uint64_t tsc_base_;
};

}  // namespace pt_cut
