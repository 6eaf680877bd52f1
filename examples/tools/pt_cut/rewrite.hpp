// SPDX-License-Identifier: BSL-1.0
#pragma once

// What pt_cut replaces, and by what.

#include "maps.hpp"
#include "segments.hpp"

#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>

namespace pt_cut {

/// TSC ticks in crystal clock ticks, as CPUID leaf 15H gives them: `EBX` / `EAX`.
struct clock_ratio {
    std::uint32_t ebx;
    std::uint32_t eax;
};

struct changes {
    edit::value_changes values{};
    bool offsets = false;  ///< map the offsets in pages, too
    std::optional<clock_ratio> ratio{};
};

template <class Packet>
concept has_ip_field = derived_from<Packet, packet::ip_packet<Packet>>;

/// Values of the original that the output must not have.
struct originals {
    value_set pages{};  ///< IP >> 12
    value_set cr3s{};
    value_set vmcss{};
    std::optional<std::uint64_t> first_tsc{};
    std::int64_t earliest = 0;  ///< the earliest TSC, relative to the first

    originals(byte_view trace, segments selected, edit::value_changes const& changes) {
        for_each_packet(trace, selected, [&](trace::item const& item) {
            packet::visit([&](auto const& packet) { add(packet, item.ip, changes); }, item.packet);
        });
        pages.sort();
        cr3s.sort();
        vmcss.sort();
    }

private:
    template <class Packet>
    void add(Packet const& packet, std::uint64_t ip, edit::value_changes const& changes) {
        if constexpr (has_ip_field<Packet>) {
            if (packet.has_ip()) { pages.add(ip >> ip_map::page_bits); }
        } else if constexpr (same_as<Packet, packet::pip>) {
            cr3s.add(packet.template get<packet::pip::CR3>());
        } else if constexpr (same_as<Packet, packet::vmcs>) {
            if (!edit::is_no_vmcs(packet)) { vmcss.add(packet.template get<packet::vmcs::base>()); }
        } else if constexpr (same_as<Packet, packet::evd>) {
            using evd = packet::evd;
            if (changes.evd == value_change::map &&
                packet.template get<evd::type>() == evd_type::PFA) {
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
inline auto tsc_base(originals const& values, std::optional<clock_ratio> const& ratio)
    -> std::uint64_t {
    if (!values.first_tsc) { return 0; }
    auto const earliest = (*values.first_tsc + static_cast<std::uint64_t>(values.earliest)) &
                          low_bits(56);
    if (!ratio) { return earliest; }
    std::uint64_t const ticks = std::uint64_t{ratio->ebx} << 23;
    return earliest - earliest % (ticks / std::gcd(ticks, std::uint64_t{ratio->eax}));
}

/// The values that replace those of the original.
class replacements {
public:
    replacements(originals const& values, changes const& changes)
        : offsets_{changes.offsets},
          rebases_{changes.values.tsc == value_change::map},
          ips_{values.pages, changes.offsets},
          cr3s_{values.cr3s},
          vmcss_{values.vmcss},
          tsc_base_{tsc_base(values, changes.ratio)} {}

    auto ip(std::uint64_t value) -> std::uint64_t { return ips_(value); }
    auto cr3(std::uint64_t value) -> std::uint64_t { return cr3s_(value); }
    auto vmcs(std::uint64_t value) -> std::uint64_t { return vmcss_(value); }
    [[nodiscard]] auto tsc(std::uint64_t value) const -> std::uint64_t { return value - tsc_base_; }

    /// All replacements, one a line: what, original, replacement.
    [[nodiscard]] auto table() const -> std::string {
        std::string out;
        auto const line = [&](char const* name, std::uint64_t original, std::uint64_t replacement) {
            char text[80];
            std::snprintf(text, sizeof text, "%s 0x%llx 0x%llx\n", name,
                          static_cast<unsigned long long>(original),
                          static_cast<unsigned long long>(replacement));
            out += text;
        };
        unsigned const shift = offsets_ ? 0 : ip_map::page_bits;
        char const* const unit = offsets_ ? "ip" : "page";
        for (auto const& [ip, mapped] : ips_.all()) { line(unit, ip << shift, mapped << shift); }
        for (auto const& [cr3, mapped] : cr3s_.all()) { line("cr3", cr3, mapped); }
        for (auto const& [vmcs, mapped] : vmcss_.all()) { line("vmcs", vmcs, mapped); }
        if (rebases_) { line("tsc", tsc_base_, 0); }
        return out;
    }

private:
    bool offsets_;
    bool rebases_;
    ip_map ips_;
    page_map cr3s_;
    page_map vmcss_;
    std::uint64_t tsc_base_;
};

}  // namespace pt_cut
