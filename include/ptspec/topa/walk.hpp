// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/ports.hpp>
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/restricted.hpp>

/// Walks over chains of tables in memory, for the trace unit and for readers of a trace.
///
/// The tables are untrusted: every walk is bounded.
namespace ptspec::topa {

/// The result of loading an entry: the position of the trace unit after END entries.
struct loaded_entry {
    position where{};  ///< after following END; on an error the position of the invalid entry
    entry active{};    ///< the entry at that position, if it was read
    rule broken = rule::none;  ///< the rule of the operational error
    port_fault fault{};        ///< the load failed: retry it

    /// True when the entry is a valid output region.
    constexpr explicit operator bool() const noexcept {
        return broken == rule::none && !fault.happened;
    }
};

/// Loads the entry at a position. An END is followed to the first entry of the next table. An END
/// in entry 0 is an error, so at most two entries are read, each once.
///
/// Errors: OUT-061 table not at a multiple of 4 KB; OUT-071 entry beyond MAXPHYADDR; OUT-091 entry
///         in restricted memory; the rules that the entry breaks at its position.
/// Source: SDM vol. 3, "ToPA Errors", "Restricted Memory Access"; OUT-047, OUT-050, OUT-054,
///         OUT-057, OUT-060..068, OUT-071, OUT-091, OUT-112.
template <memory_port Memory>
[[nodiscard]] constexpr auto load_entry(Memory& memory, position where, limits limits,
                                        restricted_memory const& restricted = {}) noexcept
    -> loaded_entry {
    for (;;) {
        phys_addr const address = table_pointer(where);
        // `is_empty` first, without a call of `touches`: a walk takes a quarter less (g++ 12).
        bool const is_restricted = !restricted.is_empty() &&
                                   restricted.touches(address, sizeof(entry));
        rule const misplaced = !is_aligned(where.table, 4096) ? rule::OUT_061
                               : !limits.width.contains(where.table.value | address.value)
                                   ? rule::OUT_071
                               : is_restricted ? rule::OUT_091
                                               : rule::none;
        if (misplaced != rule::none) { return {.where = where, .broken = misplaced}; }
        auto const loaded = memory.load(address.value);
        if (!loaded) { return {.where = where, .fault = {true, address}}; }
        entry const active{loaded.value};
        rule const broken = broken_rule(active, where, limits);
        if (broken != rule::none || !active.get<entry::END>()) {
            return {.where = where, .active = active, .broken = broken};
        }
        where = follow_end(active);
    }
}

/// Loads the entry at which tracing is enabled. The offset must be inside the region, unless an END
/// was followed: then it is 0.
///
/// Errors: as `load_entry`; OUT-064 offset outside the region.
/// Source: OUT-006, OUT-057, OUT-058, OUT-064.
template <memory_port Memory>
[[nodiscard]] constexpr auto load_first_entry(Memory& memory, position where, limits limits,
                                              restricted_memory const& restricted = {}) noexcept
    -> loaded_entry {
    auto first = load_entry(memory, where, limits, restricted);
    if (first && bytes_left(first.where, first.active) == 0) { first.broken = rule::OUT_064; }
    return first;
}

// ------------------------------------------------------------------------------------ distances

/// The number of bytes from one position to another.
struct distance {
    bool reached = false;
    uint64_t bytes = 0;        ///< the distance; if not reached, the bytes walked over
    rule broken = rule::none;  ///< the rule that an entry on the way breaks
    port_fault fault{};

    constexpr explicit operator bool() const noexcept { return reached; }
};

/// Counts the bytes of trace between two positions in a chain of tables: the bytes written since
/// `from` when the trace unit is at `to` and has wrapped at most once. Equal positions have
/// distance 0, not a whole ring.
///
/// Units:  `max_regions` bounds the walk.
/// Errors: not reached: the rule of an entry on the way, OUT-064 `to` after the end of its region,
///         a failing port, or none of these when the bound was reached.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-053..055, PRG-129, PRG-143.
template <memory_port Memory>
[[nodiscard]] constexpr auto bytes_between(Memory& memory, position from, position to,
                                           limits limits, uint64_t max_regions = 0x1'0000) noexcept
    -> distance {
    distance walked;
    for (uint64_t i = 0; i <= max_regions; ++i) {
        auto const loaded = load_entry(memory, from, limits);
        if (!loaded) { return {false, walked.bytes, loaded.broken, loaded.fault}; }
        from = loaded.where;
        if (from.table == to.table && from.index == to.index && from.offset <= to.offset) {
            entry const active = loaded.active;
            if (to.offset > bytes_in(active.get<entry::Size>())) {
                return {false, walked.bytes, rule::OUT_064, {}};
            }
            return {true, walked.bytes + (to.offset - from.offset), rule::none, {}};
        }
        walked.bytes += bytes_left(from, loaded.active);
        from = next_entry(from);
    }
    return walked;
}

// ------------------------------------------------------------------------------------ tables

/// How the entries of a table end.
enum class table_end : uint8_t {
    link,           ///< END: a link to another table or to the same
    stop,           ///< STOP: tracing stops
    wraps,          ///< the last possible entry: the first entry follows
    limit_reached,  ///< the bound of the walk was reached before an END or STOP
    unreadable,     ///< the memory port failed
};

/// How a walk over the entries of a table ended.
struct table_walk {
    table_end ended_by = table_end::link;
    position last{};         ///< the entry at which it ended
    phys_addr next_table{};  ///< for a link
};

/// Calls `visit(position, entry)` for the entries of a table, from the first to the first END or
/// STOP. Other errors in entries are ignored. At most `max_entries` are read, each once; 512 fill a
/// page.
///
/// Source: OUT-045, OUT-055, OUT-056.
template <memory_port Memory, callable<position, entry> Visit>
[[nodiscard]] constexpr auto for_each_entry(Memory& memory, phys_addr table, uint64_t max_entries,
                                            Visit&& visit) -> table_walk {
    position at{table, 0};
    for (uint64_t i = 0; i < max_entries; ++i, ++at.index) {
        auto const loaded = memory.load(address_math::table_pointer(table.value, i));
        if (!loaded) { return {table_end::unreadable, at, 0}; }
        entry const active{loaded.value};
        visit(at, active);
        if (active.get<entry::END>()) { return {table_end::link, at, follow_end(active).table}; }
        if (active.get<entry::STOP>()) { return {table_end::stop, at, 0}; }
        if (i == last_index) { return {table_end::wraps, at, 0}; }
    }
    return {table_end::limit_reached, at, 0};
}

/// The shape of a chain of tables.
struct chain_shape {
    uint64_t tables = 0;   ///< the number of distinct tables, up to the bound
    bool closes = false;   ///< the last links to an earlier one, or to itself
    uint64_t back_to = 0;  ///< the number of that table, from 0
};

/// The bounds of a walk over a chain of tables.
struct chain_bounds {
    uint64_t max_entries = 512;  ///< for which each table has room; 512 fill a page
    uint64_t max_tables = 0x1'0000;
};

/// Finds how many tables a chain has, and where it closes. For a chain of more than `max_tables`
/// tables only `tables` = `max_tables` is returned. Up to 8 * `max_tables` tables are walked; one
/// table may be walked many times.
///
/// Source: OUT-047.
template <memory_port Memory>
[[nodiscard]] constexpr auto shape_of_chain(Memory& memory, phys_addr first,
                                            chain_bounds bounds = {}) noexcept -> chain_shape {
    uint64_t const max_tables = bounds.max_tables;
    auto const next = [&](phys_addr& table) {
        auto const walk = for_each_entry(memory, table, bounds.max_entries, [](position, entry) {});
        if (walk.ended_by == table_end::wraps) { return true; }
        table = walk.next_table;
        return walk.ended_by == table_end::link;
    };
    // Brent's algorithm: `hare` advances until it meets `tortoise` again.
    phys_addr tortoise = first;
    phys_addr hare = first;
    uint64_t loop_length = 0;
    uint64_t power = 1;
    for (uint64_t tables = 1;; ++tables) {
        if (!next(hare)) { return {tables < max_tables ? tables : max_tables, false, 0}; }
        ++loop_length;
        if (hare == tortoise) { break; }
        // A loop of up to `max_tables` tables is found within three times as many steps.
        if (tables / 3 >= max_tables) { return {max_tables, false, 0}; }
        if (loop_length == power) {
            tortoise = hare;
            power *= 2;
            loop_length = 0;
        }
    }
    // Two pointers that are `loop_length` tables apart meet at the start of the loop.
    uint64_t tail_length = 0;
    tortoise = first;
    hare = first;
    for (uint64_t i = 0; i < loop_length; ++i) { (void)next(hare); }
    for (; tortoise != hare && tail_length < max_tables; ++tail_length) {
        (void)next(tortoise);
        (void)next(hare);
    }
    uint64_t const tables = tail_length + loop_length;
    return tables <= max_tables ? chain_shape{tables, true, tail_length}
                                : chain_shape{max_tables, false, 0};
}

}  // namespace ptspec::topa
