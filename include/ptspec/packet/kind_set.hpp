// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/list.hpp>

namespace ptspec::packet {

/// A set of kinds of packets.
struct kind_set {
    uint32_t bits = 0;  ///< a bit for each kind

    [[nodiscard]] constexpr auto has(kind which) const noexcept -> bool {
        return (bits >> underlying(which) & 1) != 0;
    }
    constexpr void add(kind which) noexcept { bits |= uint32_t{1} << underlying(which); }

    friend constexpr auto operator==(kind_set, kind_set) noexcept -> bool = default;
};

/// The kinds of these packets.
template <class... Packets>
inline constexpr kind_set kinds_of{((uint32_t{1} << underlying(Packets::about.id)) | ...)};

/// The kinds of packets whose facts satisfy `holds`.
template <class... Packets>
[[nodiscard]] constexpr auto kinds_where(auto const& holds, type_list<Packets...>) noexcept
    -> kind_set {
    return {((uint32_t{holds(Packets::about)} << underlying(Packets::about.id)) | ...)};
}

/// Packets that belong to no other and to no IP.
///
/// Source: PKT-272.
inline constexpr kind_set unbound_kinds = kinds_where(
    [](facts const& one) {
        return one.binds_to_ip == binding::no && one.id != kind::psb && one.id != kind::psbend;
    },
    all{});
/// Packets that may stand between PSB and PSBEND.
///
/// Source: PKT-134, PKT-138.
inline constexpr kind_set psb_plus_kinds = kinds_where(
    [](facts const& one) { return one.in_psb_plus; }, all{});
/// Packets that do not end a block of PEBS items.
///
/// Source: PKT-205.
inline constexpr kind_set block_kinds = kinds_where(
    [](facts const& one) { return one.keeps_block; }, all{});
/// Packets before which a CYC gives their cycle. Source: GEN-213.
inline constexpr kind_set cyc_kinds = kinds_where(
    [](facts const& one) { return one.cyc_eligible == cyc_rule::yes; }, all{});

}  // namespace ptspec::packet
