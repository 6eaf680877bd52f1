// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/table_site.hpp>

/// Builders of the usual ToPA tables. Each has two forms: `try_ring` works at run time and in
/// templates and returns an error; `ring` is checked at compile time, and a mistake stops the build
/// with its name and the numbers of the table and the entry.
///
/// Regions are given in the order in which they are filled. Tracing starts with
/// IA32_RTIT_OUTPUT_BASE = the address of the table and IA32_RTIT_OUTPUT_MASK_PTRS = 7FH.
namespace ptspec::topa {

namespace detail {

/// Stops the build with the mistake's name.
constexpr void check_entry([[maybe_unused]] size_t table, [[maybe_unused]] size_t index,
                           rule broken) {
    switch (broken) {
        case rule::none: return;
        case rule::OUT_061: return build_error::a_table_must_begin_at_a_multiple_of_4_KB();
        case rule::OUT_062: return build_error::a_region_must_be_aligned_to_its_own_size();
        case rule::OUT_063:
        case rule::OUT_071: return build_error::an_address_must_lie_below_the_physical_width();
        case rule::OUT_067:
        case rule::OUT_068:
            return build_error::this_processor_takes_one_region_so_use_single_entry();
        case rule::OUT_093: return build_error::an_interrupt_must_come_before_the_last_region();
        default: return build_error::a_table_must_have_an_output_region();
    }
}

/// Calls `check_entry` for each entry, so that the back-trace of the compiler has the index of the
/// wrong one. g++ prints arguments as the source has them, so the index is a template argument;
/// clang 14 and 16 print no template arguments, so it is a number, too.
template <size_t Table, size_t... Index>
constexpr void check_entries(index_list<Index...>, violation violated) {
    (check_entry(Table, Index, violated.at.index == Index ? violated.broken : rule::none), ...);
}

template <size_t Entries>
constexpr auto checked(built<Entries> const& result) -> table<Entries> {
    check_entries<0>(make_index_list<Entries + 1>{}, result.violated);
    return result.table;
}

/// Builds a table of all regions of the array except the last, a dummy that keeps the array from
/// being empty.
template <size_t Entries, size_t Room>
constexpr auto build(table_site at, region const (&regions)[Room], ending end) noexcept
    -> built<Entries> {
    built<Entries> result;
    result.violated = write_table(at.limits, at.base, regions, Room - 1, end, result.table.entries);
    return result;
}

}  // namespace detail

// ------------------------------------------------------------------------------------ links

/// A table with the regions in order, then a link to the table at `next`. For chains that grow or
/// change at run time.
///
/// Errors: OUT-061, OUT-062, OUT-063, OUT-066; without MENTRY OUT-067, OUT-068.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-043, OUT-045, OUT-047.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_linked(table_site at, phys_addr next, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    return detail::build<sizeof...(Regions) + 1>(at, {regions..., region{}}, link(next));
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto linked(At const& at, uint64_t const& next, Regions const&... regions) {
    detail::require_constants(at, next, regions...);
    return detail::checked(try_linked(at, next, regions...));
}

/// A ring: the regions in order, then a link back to the table itself. It keeps the newest bytes.
///
/// Errors: as `try_linked`.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-047, OUT-056, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_ring(table_site at, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    return try_linked(at, at.base, regions...);
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto ring(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_ring(at, regions...));
}

/// A ring of one region, which every processor with ToPA accepts. On processors with one region per
/// table, `interrupt` raises the PMI before the region is full, and `stop` stops at its end.
///
/// Errors: OUT-061, OUT-062, OUT-063.
/// Source: OUT-100..103.
[[nodiscard]] constexpr auto try_single_entry(table_site at, region wanted) noexcept -> built<2> {
    return try_ring(at, wanted);
}
template <detail::table_site_like At = table_site>
[[nodiscard]] consteval auto single_entry(At const& at, region const& wanted) {
    detail::require_constants(at, wanted);
    return detail::checked(try_single_entry(at, wanted));
}

// ------------------------------------------------------------------------------------ when full

/// The regions in order, STOP on the last, no link. It keeps the oldest bytes; the trace may end
/// inside a packet.
///
/// Errors: OUT-061, OUT-062, OUT-063, OUT-066; OUT-067 without MENTRY, where STOP also needs a
///         link: see `try_single_entry`.
/// Source: OUT-045, OUT-080, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_stop_on_full(table_site at, Regions... regions) noexcept {
    constexpr size_t count = sizeof...(Regions);
    region wanted[count + 1] = {regions..., region{}};
    if (count != 0) { wanted[count - 1].stop = true; }
    constexpr size_t entries = count == 0 ? 1 : count;
    return detail::build<entries>(at, wanted, no_link);
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto stop_on_full(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_stop_on_full(at, regions...));
}

/// A ring with INT on the region before the last: while the interrupt is handled, the trace goes
/// into the last region. Bytes are overwritten if the handler takes longer than this region lasts.
///
/// Errors: as `try_ring`; OUT-093 fewer than two regions.
/// Source: OUT-093, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_interrupt_on_full(table_site at, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    constexpr size_t count = sizeof...(Regions);
    if constexpr (count < 2) {
        return {.violated = {rule::OUT_093, {at.base, count}}};
    } else {
        region wanted[count + 1] = {regions..., region{}};
        wanted[count - 2].interrupt = true;
        return detail::build<count + 1>(at, wanted, link(at.base));
    }
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto interrupt_on_full(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_interrupt_on_full(at, regions...));
}

/// INT on the region before the last, INT and STOP on the last, no link: nothing is overwritten
/// when the handler is late.
///
/// Errors: as `try_stop_on_full`; OUT-093 fewer than two regions.
/// Source: OUT-083, OUT-093, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_interrupt_and_stop(table_site at, Regions... regions) noexcept
    -> built<sizeof...(Regions) == 0 ? 1 : sizeof...(Regions)> {
    constexpr size_t count = sizeof...(Regions);
    if constexpr (count < 2) {
        return {.violated = {rule::OUT_093, {at.base, count}}};
    } else {
        region wanted[count + 1] = {regions..., region{}};
        wanted[count - 2].interrupt = true;
        wanted[count - 1].interrupt = true;
        wanted[count - 1].stop = true;
        return detail::build<count>(at, wanted, no_link);
    }
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto interrupt_and_stop(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_interrupt_and_stop(at, regions...));
}

// ------------------------------------------------------------------------------------ chains

/// A request for one table of a chain.
template <size_t Count>
struct chain_table {
    table_site at;
    region regions[Count];
};
template <same_as<region>... Regions>
    requires(sizeof...(Regions) != 0)
[[nodiscard]] constexpr auto table_at(table_site at, Regions... regions) noexcept
    -> chain_table<sizeof...(Regions)> {
    return {at, {regions...}};
}

namespace detail {

template <size_t Number, size_t Entries>
struct numbered_table {
    topa::table<Entries> table{};

    friend constexpr auto operator==(numbered_table const&, numbered_table const&)
        -> bool = default;
};
template <size_t Number, size_t Entries>
constexpr auto table_of(numbered_table<Number, Entries>& one) noexcept -> table<Entries>& {
    return one.table;
}
template <size_t Number, size_t Entries>
constexpr auto table_of(numbered_table<Number, Entries> const& one) noexcept
    -> table<Entries> const& {
    return one.table;
}

template <class Numbers, size_t... Entries>
struct numbered_tables;
template <size_t... Number, size_t... Entries>
struct numbered_tables<index_list<Number...>, Entries...> : numbered_table<Number, Entries>... {
    friend constexpr auto operator==(numbered_tables const&, numbered_tables const&)
        -> bool = default;
};

}  // namespace detail

/// The tables of a chain. Each must be placed at the physical address that it was built for.
template <size_t... Entries>
struct tables : detail::numbered_tables<make_index_list<sizeof...(Entries)>, Entries...> {
    /// The table with a number, starting at 0.
    template <size_t Number>
    [[nodiscard]] constexpr auto get() const noexcept -> auto const& {
        return detail::table_of<Number>(*this);
    }
    friend constexpr auto operator==(tables const&, tables const&) -> bool = default;
};

/// A chain of tables, or the first broken rule.
template <size_t... Entries>
struct built_chain {
    topa::violation violated{};
    size_t number = 0;  ///< the number of the invalid table
    topa::tables<Entries...> tables{};

    constexpr explicit operator bool() const noexcept { return violated.broken == rule::none; }
};

namespace detail {

template <size_t... Number, size_t... Count>
constexpr auto build_chain(index_list<Number...>, chain_table<Count> const&... requests) noexcept
    -> built_chain<(Count + 1)...> {
    constexpr size_t last = sizeof...(Count) - 1;
    phys_addr const bases[] = {requests.at.base...};
    built_chain<(Count + 1)...> result;
    auto const write = [&](size_t number, auto const& wanted, size_t count, entry* entries) {
        if (!result) { return; }
        phys_addr const next = bases[number == last ? 0 : number + 1];
        result.violated = write_table(wanted.at.limits, wanted.at.base, wanted.regions, count,
                                      link(next), entries);
        result.number = number;
    };
    (write(Number, requests, Count, table_of<Number>(result.tables).entries), ...);
    return result
               ? result
               : built_chain<(Count + 1)...>{.violated = result.violated, .number = result.number};
}

template <size_t... Number, size_t... Entries>
constexpr auto checked(index_list<Number...>, built_chain<Entries...> const& result)
    -> tables<Entries...> {
    (check_entries<Number>(make_index_list<Entries>{},
                           result.number == Number ? result.violated : violation{}),
     ...);
    return result.tables;
}

}  // namespace detail

/// A chain of tables, each linked to the next and the last to the first:
/// `try_chain(table_at(0x1000, one, two), table_at(0x2000, three))`.
///
/// Errors: as `try_linked`, for the first invalid table.
/// Source: OUT-047, OUT-142, PRG-128.
template <size_t... Count>
    requires(sizeof...(Count) != 0)
[[nodiscard]] constexpr auto try_chain(chain_table<Count> const&... requests) noexcept
    -> built_chain<(Count + 1)...> {
    return detail::build_chain(make_index_list<sizeof...(Count)>{}, requests...);
}
template <size_t... Count>
    requires(sizeof...(Count) != 0)
[[nodiscard]] consteval auto chain(chain_table<Count> const&... requests) {
    detail::require_constants(requests.at...);
    return detail::checked(make_index_list<sizeof...(Count)>{}, try_chain(requests...));
}

}  // namespace ptspec::topa
