// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/named_member.hpp>
#include <ptspec/trace/item.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::trace {

/// The visitor accepts this packet type.
template <class Visitor, class Packet>
concept takes = callable<Visitor&, Packet const&, packet_place>;

/// The visitor accepts runs of PADs: `visitor.pads(count, place)`. It is not `operator()`, because
/// a run of PADs is no packet type and must not reach a visitor that accepts every type.
template <class Visitor>
concept accepts_pad_runs = requires(Visitor& visitor, unsigned count, packet_place place) {
    visitor.pads(count, place);
};

namespace detail {

struct skip_name {
    int skip;
    template <class Type>
    static auto find() -> decltype(&Type::skip);
    template <class Type>
    using ignored = typename Type::ignores_skip;
};

}  // namespace detail

/// The packets that a visitor skips.
struct skipped_packets {
    size_t size = 0;       ///< in bytes; 0: none
    uint64_t last_ip = 0;  ///< LastIP after them
};
/// The visitor may read the next packets itself. `visitor.skip(bytes, room, offset, last_ip)` is
/// called first, and after each packet other than PAD, TNT and CYC. `bytes` points to the next
/// packets, at `offset` of the trace; `last_ip` is LastIP. The skipped packets must begin in the
/// first `room` bytes. From each of these bytes on, 16 bytes are readable. A visitor that passes
/// this on to another one may say `using ignores_skip = my_visitor;` in `my_visitor`.
template <class Visitor>
concept skips_packets = !ignores<Visitor, detail::skip_name> &&
                        requires(Visitor& visitor, uint8_t const* bytes) {
                            {
                                visitor.skip(bytes, size_t{}, uint64_t{}, uint64_t{})
                            } -> same_as<skipped_packets>;
                        };

namespace detail {

/// A PSB+ that a visitor took whole.
struct taken_psb_plus {
    size_t size = 0;        ///< in bytes; 0: the visitor needs the packets, or stops before them
    uint64_t last_ip = 0;   ///< LastIP after it
    bool continues = true;  ///< the visitor does not stop
};
/// The visitor may take a whole PSB+ in place of its packets.
template <class Visitor>
concept takes_whole_psb_plus = requires { requires Visitor::takes_whole_psb_plus; };

struct pads_name {
    int pads;
    template <class Type>
    static auto find() -> decltype(&Type::pads);
};

/// The visitor takes a packet type or, if `Kind` is `item`, the items that are no packets.
template <class Visitor, class Kind>
inline constexpr bool takes_kind = takes<Visitor, Kind>;
template <class Visitor>
inline constexpr bool takes_kind<Visitor, packet::pad> = takes<Visitor, packet::pad> ||
                                                         accepts_pad_runs<Visitor>;
template <class Visitor>
inline constexpr bool takes_kind<Visitor, item> = callable<Visitor&, item const&>;

template <class Kind, class Named>
inline constexpr bool is_named = same_as<Kind, Named>;
template <class Kind, class... Named>
inline constexpr bool is_named<Kind, type_list<Named...>> = one_of<Kind, Named...>;

/// The visitor takes all kinds, or, if kinds are named, these and no others.
template <class Kind, class... Named>
inline constexpr bool is_wanted = sizeof...(Named) == 0 || (is_named<Kind, Named> || ...);

/// The first kind that a visitor takes and should not, or the other way round.
template <class Visitor, class... Named>
struct first_wrong_kind {
    static constexpr auto of(type_list<>) noexcept -> type_list<> { return {}; }
    template <class Kind, class... Kinds>
    static constexpr auto of(type_list<Kind, Kinds...>) noexcept {
        if constexpr (takes_kind<Visitor, Kind> == is_wanted<Kind, Named...>) {
            return of(type_list<Kinds...>{});
        } else {
            return type_list<Kind>{};
        }
    }
};
/// A kind that can come, or a list of kinds.
template <class Named, class Packets>
inline constexpr bool can_come = same_as<Named, item>;
template <class Named, class... Packets>
inline constexpr bool can_come<Named, type_list<Packets...>> = one_of<Named, item, Packets...>;
template <class... Named, class... Packets>
inline constexpr bool can_come<type_list<Named...>, type_list<Packets...>> =
    (one_of<Named, item, Packets...> && ...);

template <class... Packets>
auto kinds_of(type_list<Packets...>) noexcept -> type_list<Packets..., item>;
template <class Visitor, class Packets, class... Named>
using wrong_kind = decltype(first_wrong_kind<Visitor, Named...>::of(kinds_of(Packets{})));

template <class Visitor, class Wrong, class... Named>
struct visitor_kinds {};
template <class Visitor, class Kind, class... Named>
struct visitor_kinds<Visitor, type_list<Kind>, Named...> {
    static constexpr bool is_taken = takes_kind<Visitor, Kind>;
    static_assert(is_taken || sizeof...(Named) != 0,
                  "this visitor does not take all packets and items: for_each<packet::tip, "
                  "trace::item>(visitor) names those that it takes. It is called with (packet "
                  "const&, trace::packet_place) or (trace::item const&)");
    static_assert(is_taken || sizeof...(Named) == 0,
                  "the visitor does not take what for_each<...> names: it is called with (packet "
                  "const&, trace::packet_place) or (trace::item const&)");
    static_assert(!is_taken, "the visitor takes a packet or item that for_each<...> does not name");
};

template <class Visitor>
struct visitor_members {
    static_assert(
        accepts_pad_runs<Visitor> || !has_member<Visitor, pads_name>,
        "the pads of a visitor are `void pads(unsigned count, ptspec::trace::packet_place)`, or "
        "return bool");
    static_assert(skips_packets<Visitor> || ignores<Visitor, skip_name> ||
                      !has_member<Visitor, skip_name>,
                  "the skip of a visitor is `auto skip(uint8_t const* bytes, size_t room, uint64_t "
                  "offset, uint64_t last_ip) -> ptspec::trace::skipped_packets`");
};

/// Passes a run of PADs to the visitor. Returns false when the visitor stops.
template <class Visitor>
constexpr auto call_pads(Visitor& visitor, unsigned count, packet_place place) -> bool {
    if constexpr (same_as<decltype(visitor.pads(count, place)), void>) {
        visitor.pads(count, place);
        return true;
    } else {
        return visitor.pads(count, place);
    }
}

/// Calls the visitor if it accepts this packet type. Returns false when the visitor stops.
///
/// always_inline: else clang keeps the visitor in memory, and events with times take 1.4 times as
/// long (clang 19).
template <class Visitor, class Packet>
#if defined(__clang__)
PTSPEC_ATTRIBUTE(always_inline)
#endif
constexpr auto call(Visitor& visitor, Packet const& packet, packet_place place) -> bool {
    if constexpr (same_as<Packet, packet::pad> && accepts_pad_runs<Visitor>) {
        return call_pads(visitor, 1, place);
    } else if constexpr (!takes<Visitor, Packet>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, Packet const&, packet_place>, void>) {
        visitor(packet, place);
        return true;
    } else {
        return visitor(packet, place);
    }
}

/// Calls the visitor if it accepts items. Returns false when the visitor stops.
template <class Visitor>
constexpr auto call([[maybe_unused]] Visitor& visitor, [[maybe_unused]] item const& one) -> bool {
    if constexpr (!callable<Visitor&, item const&>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, item const&>, void>) {
        visitor(one);
        return true;
    } else {
        return visitor(one);
    }
}

/// Calls the visitor with a packet of any kind. Returns false when the visitor stops.
///
/// noinline: inlined twice, with a decoder for each visitor, pt_dump takes a fifth longer to build.
template <class Packets, class Visitor>
PTSPEC_ATTRIBUTE(noinline)
constexpr auto call_any(Visitor& visitor, packet::any_packet const& packet, packet_place place)
    -> bool {
    return packet::visit<Packets>(
        [&](auto const& one) { return detail::call(visitor, one, place); }, packet);
}

/// A small visitor is copied before the decode loop and written back after it. The address of the
/// copy does not escape, so that its members can stay in registers.
template <class Visitor>
inline constexpr bool is_copied = sizeof(Visitor) <= 64 && __is_trivially_copyable(Visitor) &&
                                  __is_assignable(Visitor&, Visitor const&);
template <class Visitor>
using copy_or_reference = choose_t<is_copied<Visitor>, Visitor, Visitor&>;

}  // namespace detail

/// A visitor of packets: `visitor(packet, place)` for packet types, and `visitor(item)` for the
/// items that are no packets, such as damage. It returns nothing, or false to stop. It may have
/// `visitor.pads(count, place)`, too, which then gets all PADs, in order, in runs of any length.
///
/// It takes all packets and items, or `for_each` names those that it takes; the others are dropped.
///
/// The fastest visitor is a struct of at most 64 bytes that contains its sums. A trivially
/// copyable visitor may be called as a copy. The copy is written back when decoding stops, but not
/// when the visitor throws.
template <class Visitor, class Packets = packet::all, class... Named>
concept packet_visitor = (detail::can_come<Named, Packets> && ...) &&
                         same_as<detail::wrong_kind<Visitor, Packets, Named...>, type_list<>>;

/// Stops the build for a visitor that is wrong, with a sentence that says why.
template <class Visitor, class Packets, class... Named>
constexpr void check_visitor() noexcept {
    static_assert(
        (detail::can_come<Named, Packets> && ...),
        "for_each<...> names what is no packet that the reader knows, and not trace::item");
    using wrong = detail::wrong_kind<Visitor, Packets, Named...>;
    (void)detail::visitor_kinds<Visitor, wrong, Named...>{};
    (void)detail::visitor_members<bare_t<Visitor>>{};
}

}  // namespace ptspec::trace

#undef PTSPEC_ATTRIBUTE
