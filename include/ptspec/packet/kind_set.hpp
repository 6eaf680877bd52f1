// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/list.hpp>

namespace ptspec::packet {

/// A set of kinds of packets.
struct kind_set {
    using mask = uint32_t;
    mask bits = 0;  ///< bit n: the n-th kind; none for `kind::none`

    [[nodiscard]] constexpr auto has(kind one) const noexcept -> bool {
        return (uint64_t{bits} >> (underlying(one) & 63) & 1) != 0;
    }
    constexpr void add(kind one) noexcept {
        bits |= static_cast<mask>(uint64_t{1} << (underlying(one) & 63));
    }

    friend constexpr auto operator==(kind_set, kind_set) noexcept -> bool = default;
};
static_assert(kind_count <= 8 * sizeof(kind_set::mask),
              "the last kind has no bit: widen kind_set::mask, and give kind::none none there");

/// The set of these kinds.
[[nodiscard]] constexpr auto kinds_of(same_as<kind> auto... kinds) noexcept -> kind_set {
    return {((kind_set::mask{1} << static_cast<unsigned>(kinds)) | ...)};
}

namespace detail {

/// The kinds with certain facts.
struct kinds_by_fact {
    kind_set unbound{};
    kind_set in_psb_plus{};
    kind_set keeps_block{};
    kind_set cyc_eligible{};
};

template <class... Packets>
constexpr auto sorted_by_fact(type_list<Packets...>) noexcept -> kinds_by_fact {
    kinds_by_fact sets;
    facts const* const every[] = {&Packets::about...};
    for (facts const* const each : every) {
        facts const& one = *each;
        bool const is_psb = one.id == kind::psb || one.id == kind::psbend;
        if (one.binds_to_ip == ip_binding::no && !is_psb) { sets.unbound.add(one.id); }
        if (one.in_psb_plus) { sets.in_psb_plus.add(one.id); }
        if (one.keeps_block) { sets.keeps_block.add(one.id); }
        if (one.cyc_eligible == cyc_rule::yes) { sets.cyc_eligible.add(one.id); }
    }
    return sets;
}
inline constexpr kinds_by_fact by_fact = sorted_by_fact(all{});

}  // namespace detail

/// Packets that belong to no other packet and to no IP.
///
/// Source: PKT-272.
inline constexpr kind_set unbound_kinds = detail::by_fact.unbound;
/// Packets that may stand between PSB and PSBEND.
///
/// Source: PKT-134, PKT-138.
inline constexpr kind_set psb_plus_kinds = detail::by_fact.in_psb_plus;
/// Packets that do not end a block of PEBS items.
///
/// Source: PKT-205.
inline constexpr kind_set block_kinds = detail::by_fact.keeps_block;
/// CYC-eligible packets: a CYC directly before the packet gives its cycle.
///
/// Source: GEN-213.
inline constexpr kind_set cyc_kinds = detail::by_fact.cyc_eligible;

}  // namespace ptspec::packet
