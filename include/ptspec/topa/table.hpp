// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/entry.hpp>

/// Tables of Physical Addresses, built and checked at compile time or at run time.
namespace ptspec {

namespace build_error {
void a_table_must_begin_at_a_multiple_of_4_KB();
void a_region_must_be_aligned_to_its_own_size();
void an_address_must_lie_below_the_physical_width();
void a_table_must_have_an_output_region();
void this_processor_takes_one_region_so_use_single_entry();
void a_run_time_table_needs_try_ring_or_its_like();
void an_interrupt_must_come_before_the_last_region();
}  // namespace build_error

namespace topa {

/// A request for an output region.
struct region {
    phys_addr base{};  ///< a multiple of the size
    region_size size = region_size::size_4K;
    bool interrupt = false;  ///< INT: a PMI when the region is full
    bool stop = false;       ///< STOP: stop tracing when the region is full

    friend constexpr auto operator==(region const&, region const&) -> bool = default;
};

/// The entry for a region. Address bits 11:0 are dropped.
[[nodiscard]] constexpr auto entry_for(region wanted) noexcept -> entry {
    return entry{}.with(entry::INT{wanted.interrupt}, entry::STOP{wanted.stop},
                        entry::Size{wanted.size}, entry::Base{wrapped{wanted.base.value}});
}

/// A table as in memory. It must be placed at the physical address that it was built for, a
/// multiple of 4096.
template <size_t Entries>
struct table {
    entry entries[Entries];

    [[nodiscard]] static constexpr auto size() noexcept -> size_t { return Entries; }
    friend constexpr auto operator==(table const&, table const&) -> bool = default;
};

/// A broken rule, and the entry that breaks it.
struct violation {
    rule broken = rule::none;
    position at{};

    friend constexpr auto operator==(violation, violation) -> bool = default;
};

/// A table, or the first broken rule. The table is all zero on an error.
template <size_t Entries>
struct built {
    topa::violation violated{};
    topa::table<Entries> table{};

    constexpr explicit operator bool() const noexcept { return violated.broken == rule::none; }
};

/// What follows the last region of a table.
struct ending {
    bool is_link = false;
    phys_addr next_table{};  ///< for a link
};

/// The table ends without a link: its last region has STOP.
inline constexpr ending no_link{};
[[nodiscard]] constexpr auto link(phys_addr next_table) noexcept -> ending {
    return {true, next_table};
}

/// The rule that the address of a table breaks, or `none`.
///
/// Errors: OUT-061 not a multiple of 4 KB; OUT-063 beyond the width.
/// Source: OUT-061, OUT-063.
[[nodiscard]] constexpr auto check_table_base(phys_addr base, max_phys_addr width) noexcept
    -> rule {
    return !is_aligned(base, 4096) ? rule::OUT_061
           : !width.contains(base) ? rule::OUT_063
                                   : rule::none;
}

namespace detail {

/// The rule that a region breaks. Checks the base bits 11:0, too, which an entry does not hold.
constexpr auto check_region(region wanted, position at, limits limits) noexcept -> rule {
    return !is_aligned(wanted.base, 4096) ? rule::OUT_062
                                          : broken_rule(entry_for(wanted), at, limits);
}

/// The rule that the end of a table breaks.
constexpr auto check_ending(ending end, bool stops, position at, limits limits) noexcept -> rule {
    if (!end.is_link) {
        return !stops ? rule::OUT_056 : !limits.many_entries ? rule::OUT_067 : rule::none;
    }
    rule const broken = check_table_base(end.next_table, limits.width);
    return broken != rule::none ? broken : broken_rule(link_to(end.next_table), at, limits);
}

}  // namespace detail

/// Writes a table of `count` regions, `region_at(0)` and so on, and a link if `end` is one, into
/// `entries`, which has room for `count` entries and one more for a link. All builders use it. Call
/// it directly when the number of regions is known only at run time.
///
/// Units:  `base` is the address of the table.
/// Errors: OUT-061 a table's address not a multiple of 4 KB; OUT-062 region not aligned to its
///         size; OUT-063 an address beyond the width; OUT-066 no region; OUT-046 too many regions;
///         OUT-071 an entry beyond the width, reported for the last entry; OUT-056 no link, and the
///         last region has no STOP. Without MENTRY also OUT-067 more than one region, or no link;
///         OUT-068 a link to another table. Nothing is then written.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-043, OUT-045..047, OUT-056,
///         OUT-060..068, OUT-071, OUT-072.
template <class RegionAt>
[[nodiscard]] constexpr auto write_table(limits limits, phys_addr base, size_t count,
                                         RegionAt const& region_at, ending end,
                                         entry* entries) noexcept -> violation {
    constexpr uint64_t max_entries = address_math::max_entries;
    if (count > max_entries - (end.is_link ? 1 : 0)) {
        return {rule::OUT_046, {base, max_entries - 1}};
    }
    position at{base, static_cast<uint32_t>(count)};
    if (rule const broken = check_table_base(base, limits.width); broken != rule::none) {
        return {broken, at};
    }
    if (count == 0) { return {rule::OUT_066, at}; }
    position const last{base, end.is_link ? at.index : at.index - 1};
    if (!limits.width.contains(address_math::table_pointer(base.value, uint64_t{last.index}))) {
        return {rule::OUT_071, last};
    }
    for (at.index = 0; at.index < count; ++at.index) {
        rule const broken = detail::check_region(region_at(at.index), at, limits);
        if (broken != rule::none) { return {broken, at}; }
    }
    rule const broken = detail::check_ending(end, region_at(count - 1).stop, at, limits);
    if (broken != rule::none) { return {broken, at}; }
    for (size_t i = 0; i < count; ++i) { entries[i] = entry_for(region_at(i)); }
    if (end.is_link) { entries[count] = link_to(end.next_table); }
    return {};
}
[[nodiscard]] constexpr auto write_table(limits limits, phys_addr base, region const* regions,
                                         size_t count, ending end, entry* entries) noexcept
    -> violation {
    return write_table(limits, base, count, [=](size_t i) { return regions[i]; }, end, entries);
}

}  // namespace topa

}  // namespace ptspec
