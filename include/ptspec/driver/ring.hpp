// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/guards.hpp>
#include <ptspec/driver/plan.hpp>
#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/validate.hpp>
#include <ptspec/base/attribute.hpp>

/// Buffers of many regions: their tables, and positions in them as byte offsets.
namespace ptspec::driver {

/// What happens when a buffer is full.
///
/// Source: PRG-128.
enum class buffer_recipe : uint8_t {
    circular,            ///< the oldest bytes are overwritten; no interrupt
    stop_on_full,        ///< tracing stops: the oldest bytes are kept
    interrupt_on_full,   ///< circular, with an interrupt one region before the end
    interrupt_and_stop,  ///< an interrupt one region before the end, and STOP at the end
    streaming,           ///< circular, read while it is filled: INT and STOP move with `set_marks`
};

/// A page for a ToPA table: its address, and its entries in this program's memory.
struct table_page {
    phys_addr base{};
    topa::entry* entries = nullptr;
};

/// A buffer of several regions, filled in their order, and the tables that describe it. The lists
/// are borrowed and must outlive it.
///
/// Shape:  all tables but the last have `regions_per_table` regions. Offsets count bytes from the
///         start of the first region.
struct ring {
    topa::region const* regions = nullptr;
    size_t region_count = 0;
    table_page const* tables = nullptr;
    size_t table_count = 0;
    size_t regions_per_table = 0;
    uint64_t bytes = 0;  ///< of all regions
    buffer_recipe recipe = buffer_recipe::circular;
    bool has_link = true;  ///< the last table links to the first
    /// Each table has one region and links to itself: software moves on to the next table, as
    /// `drain` does. For processors whose tables have one region.
    bool is_stepped = false;
};

/// A ring, or why it cannot be built.
struct [[nodiscard]] built_ring {
    rule broken = rule::none;
    size_t region = 0;  ///< the number of the region that breaks the rule
    driver::ring ring{};

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

namespace detail {

[[nodiscard]] constexpr auto interrupts(buffer_recipe recipe) noexcept -> bool {
    return recipe == buffer_recipe::interrupt_on_full ||
           recipe == buffer_recipe::interrupt_and_stop;
}
[[nodiscard]] constexpr auto stops(buffer_recipe recipe) noexcept -> bool {
    return recipe == buffer_recipe::stop_on_full || recipe == buffer_recipe::interrupt_and_stop;
}
/// True for recipes whose buffer software reads while it is filled.
[[nodiscard]] constexpr auto is_read_while_filled(buffer_recipe recipe) noexcept -> bool {
    return interrupts(recipe) || recipe == buffer_recipe::streaming;
}
/// Region `i` of `count`, with the marks of the recipe.
[[nodiscard]] constexpr auto marked(buffer_recipe recipe, topa::region region, size_t i,
                                    size_t count) noexcept -> topa::region {
    bool const is_last = i + 1 == count;
    bool const is_before_last = i + 2 == count || count == 1;
    region.stop = stops(recipe) && is_last;
    region.interrupt = interrupts(recipe) && (is_before_last || region.stop);
    return region;
}

}  // namespace detail

/// What decides where a streaming ring has INT and STOP.
struct ring_marks {
    uint64_t head = 0;           ///< the offset of the next byte of trace
    uint64_t unread = 0;         ///< the number of bytes before it that are not read
    uint64_t wake_up_bytes = 0;  ///< the bytes of trace from `head` on that cause the next PMI
};
[[nodiscard]] constexpr auto set_marks(ring const& in, ring_marks const& wanted) noexcept -> bool;

/// Writes the tables of a buffer: `entries_per_table` - 1 regions and a link each, the last link to
/// the first table. INT and STOP of the given regions are ignored: the recipe places them. Those of
/// a streaming ring are for a trace that begins at its start, and wake up after half of the ring.
///
/// On a processor whose tables have one region, a buffer of several regions that is read while it
/// is filled becomes one table a region, each with INT and STOP: see `is_stepped`. It needs a page
/// for each region.
///
/// To add regions at the end, build it again with the longer list while TraceEn is 0 (see
/// `while_disabled`): positions stay valid. STOP and INT are then those of a new ring.
///
/// Errors: PRG-128 too few pages for the tables; OUT-066 no region; OUT-093 an interrupt with fewer
///         than two regions on a processor of many entries; those of `topa::write_table`; OUT-111,
///         OUT-113 a region that overlaps restricted memory or the page of the local APIC; OUT-091
///         a table in restricted memory. Tables before the one with the error are written.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; PRG-089, PRG-090, PRG-091, PRG-095,
///         PRG-096, PRG-124, PRG-126, PRG-128.
[[nodiscard]] constexpr auto build_ring(buffer_recipe recipe, topa::region const* regions,
                                        size_t count, table_page const* pages, size_t page_count,
                                        topa::limits limits,
                                        topa::output_hazards const& hazards = {},
                                        size_t entries_per_table = 512) noexcept -> built_ring {
    if (count == 0) { return {.broken = rule::OUT_066}; }
    if (detail::interrupts(recipe) && count < 2 && limits.many_entries) {
        return {.broken = rule::OUT_093};
    }
    bool const is_stepped = !limits.many_entries && detail::is_read_while_filled(recipe);
    size_t const per_table = entries_per_table < 2 || is_stepped ? 1 : entries_per_table - 1;
    size_t const tables = (count + per_table - 1) / per_table;
    if (entries_per_table < 2 || tables > page_count) { return {.broken = rule::PRG_128}; }
    built_ring result{.ring = {.regions = regions,
                               .region_count = count,
                               .tables = pages,
                               .table_count = tables,
                               .regions_per_table = per_table,
                               .recipe = recipe,
                               .has_link = !detail::stops(recipe) || !limits.many_entries,
                               .is_stepped = is_stepped}};
    for (size_t table = 0, first = 0; table < tables; ++table, first += per_table) {
        size_t const here = count - first < per_table ? count - first : per_table;
        bool const is_last = table + 1 == tables;
        phys_addr const base = pages[table].base;
        auto const region_at = [&](size_t i) {
            return is_stepped
                       ? detail::marked(buffer_recipe::interrupt_and_stop, regions[first], 0, 1)
                       : detail::marked(recipe, regions[first + i], first + i, count);
        };
        size_t const next = is_stepped ? table : is_last ? 0 : table + 1;
        auto const end = is_last && !result.ring.has_link ? topa::no_link
                                                          : topa::link(pages[next].base);
        auto const written = topa::write_table(limits, base, here, region_at, end,
                                               pages[table].entries);
        if (written.broken != rule::none) {
            return {.broken = written.broken, .region = first + written.at.index};
        }
        if (hazards.restricted.touches(base, (here + 1) * sizeof(topa::entry))) {
            return {.broken = rule::OUT_091, .region = first};
        }
        for (size_t i = 0; i < here; ++i) {
            uint64_t const size = topa::bytes_in(regions[first + i].size);
            rule const broken = restricted_check(hazards, regions[first + i].base, size);
            if (broken != rule::none) { return {.broken = broken, .region = first + i}; }
            result.ring.bytes += size;
        }
    }
    if (recipe == buffer_recipe::streaming) {
        (void)set_marks(result.ring, {.wake_up_bytes = result.ring.bytes / 2});
    }
    return result;
}

/// The output MSRs for a ring from its start.
///
/// Source: PRG-128.
[[nodiscard]] constexpr auto output_at_start(ring const& in) noexcept -> output_registers {
    return in_topa({.table = in.tables[0].base});
}

// ------------------------------------------------------------------------------------ positions

/// A position in a ring as an offset.
struct [[nodiscard]] ring_offset {
    bool found = false;
    uint64_t offset = 0;         ///< in bytes: at most that of the ring
    size_t region = 0;           ///< the number of the current region
    bool at_region_end = false;  ///< the region is full, and the next not begun: after STOP

    constexpr explicit operator bool() const noexcept { return found; }
};

namespace detail {

/// The offset of the start of a region.
[[nodiscard]] constexpr auto start_of_region(ring const& in, size_t region) noexcept -> uint64_t {
    uint64_t offset = 0;
    for (size_t i = 0; i < region; ++i) { offset += topa::bytes_in(in.regions[i].size); }
    return offset;
}

}  // namespace detail

/// A place in a ring: a region, and an offset in it.
struct region_offset {
    size_t region = 0;
    uint64_t offset = 0;
};

/// The place at an offset from the start of the ring, modulo its size.
///
/// noinline: inlined, a driver has 0.2 KB more (g++ 12, clang 19).
PTSPEC_ATTRIBUTE(noinline) [[nodiscard]]
constexpr auto region_at(ring const& in, uint64_t offset) noexcept -> region_offset {
    region_offset place{0, offset % in.bytes};
    while (place.offset >= topa::bytes_in(in.regions[place.region].size)) {
        place.offset -= topa::bytes_in(in.regions[place.region].size);
        ++place.region;
    }
    return place;
}

/// The region after another.
[[nodiscard]] constexpr auto region_after(ring const& in, size_t region) noexcept -> size_t {
    return region + 1 == in.region_count ? 0 : region + 1;
}
[[nodiscard]] constexpr auto region_before(ring const& in, size_t region) noexcept -> size_t {
    return (region == 0 ? in.region_count : region) - 1;
}

/// The offset of a position that the output MSRs held after TraceEn was cleared.
///
/// noinline: inlined, a driver has 0.3 KB more (g++ 12).
/// Errors: not found: the position is in no table of the ring, or beyond the end of its region.
/// Source: PRG-086, PRG-129, PRG-143.
PTSPEC_ATTRIBUTE(noinline) [[nodiscard]]
constexpr auto offset_of(ring const& in, output_registers const& output) noexcept -> ring_offset {
    auto const where = topa::position_in(output.base, output.mask_ptrs);
    size_t table = 0;
    while (table < in.table_count && in.tables[table].base != where.table) { ++table; }
    if (table == in.table_count) { return {}; }
    size_t const first = table * in.regions_per_table;
    size_t const left = in.region_count - first;
    size_t const here = left < in.regions_per_table ? left : in.regions_per_table;
    ring_offset result{.found = true, .region = first + where.index};
    if (where.index > here || (where.index == here && where.offset != 0)) { return {}; }
    if (where.index == here && in.is_stepped) { result.region = first; }
    if (result.region >= in.region_count) { result.region = 0; }  // at the last link
    uint64_t const size = topa::bytes_in(in.regions[result.region].size);
    if (where.offset > size) { return {}; }
    result.offset = detail::start_of_region(in, result.region) + where.offset;
    result.at_region_end = where.offset == size;
    return result;
}

/// The output MSRs for an offset in a ring, from which tracing continues. The offset is taken
/// modulo the size of the ring.
///
/// Source: PRG-086, PRG-129.
[[nodiscard]] constexpr auto output_at(ring const& in, uint64_t offset) noexcept
    -> output_registers {
    auto const place = region_at(in, offset);
    return in_topa({.table = in.tables[place.region / in.regions_per_table].base,
                    .index = static_cast<uint32_t>(place.region % in.regions_per_table),
                    .offset = static_cast<uint32_t>(place.offset)});
}

/// The entry of a region.
[[nodiscard]] constexpr auto entry_of(ring const& in, size_t region) noexcept -> topa::entry& {
    return in.tables[region / in.regions_per_table].entries[region % in.regions_per_table];
}

/// Places INT and STOP of a streaming ring while TraceEn is 0: STOP and INT on the region before
/// the one with the oldest unread byte; INT on the region in which the next `wake_up_bytes` bytes
/// from `head` on end, or at the latest on the one before STOP.
///
/// The entries of a stepped ring all have INT and STOP, and are not changed.
///
/// Errors: false, and no change, if unread bytes follow `head` in its region: tracing would
///         overwrite them.
/// Source: OUT-093, OUT-094, PRG-121, PRG-126, PRG-128.
[[nodiscard]] constexpr auto set_marks(ring const& in, ring_marks const& wanted) noexcept -> bool {
    auto const [head, unread, wake_up_bytes] = wanted;
    if (unread > in.bytes) { return false; }
    auto const active = region_at(in, head);
    auto const oldest = region_at(in, head % in.bytes + in.bytes - unread);
    bool const follows = oldest.region == active.region && oldest.offset >= active.offset;
    if (unread != 0 && follows) { return false; }
    if (in.is_stepped) { return true; }
    size_t const stop = region_before(in, unread == 0 ? active.region : oldest.region);
    size_t wake_up = active.region;
    uint64_t room = topa::bytes_in(in.regions[wake_up].size) - active.offset;
    while (room < wake_up_bytes && wake_up != stop) {
        wake_up = region_after(in, wake_up);
        room += topa::bytes_in(in.regions[wake_up].size);
    }
    if (wake_up == stop && wake_up != active.region) { wake_up = region_before(in, wake_up); }
    using topa::entry;
    for (size_t i = 0; i < in.region_count; ++i) {
        bool const stops = i == stop;
        entry& one = entry_of(in, i);
        one = one.with(entry::STOP{stops}, entry::INT{stops || i == wake_up});
    }
    return true;
}

/// Makes the entry of a region a link to another table, where tracing continues after the regions
/// before it. The handler of a PMI may do so for a context whose MSRs are saved, and for the
/// running one while TraceEn is 0. The regions from here on are no longer part of the ring.
///
/// Errors: OUT-066 the first entry of a table; OUT-061 a table that is not at a multiple of 4 KB;
///         OUT-068 a ring of one region a table; OUT-093 the region at `output`, whose entry is in
///         use. Nothing is changed.
/// Source: SDM vol. 3, "ToPA PMI"; PRG-091, PRG-115, PRG-124, OUT-093.
[[nodiscard]] constexpr auto link_instead(ring const& in, size_t region, phys_addr table,
                                          output_registers const& output) noexcept -> rule {
    if (in.is_stepped) { return rule::OUT_068; }
    if (region % in.regions_per_table == 0) { return rule::OUT_066; }
    if (!is_aligned(table, 4096)) { return rule::OUT_061; }
    auto const at = offset_of(in, output);
    if (at && at.region == region) { return rule::OUT_093; }
    entry_of(in, region) = topa::link_to(table);
    return rule::none;
}

}  // namespace ptspec::driver

#undef PTSPEC_ATTRIBUTE
