// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports.hpp>
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/restricted.hpp>

/// Going along a chain of tables in memory, as the trace unit does and as readers of a trace do.
///
/// The tables may be anybody's: every walk has a bound of its own.
namespace ptspec::topa {

/// Where the trace unit is when it has come to an entry.
struct loaded_entry {
    position where{};          ///< END entries followed; or the entry that cannot be taken
    entry current{};           ///< the entry there, where it was read
    rule broken = rule::none;  ///< what makes it an operational error
    port_fault fault{};        ///< it could not be read: nothing is decided yet

    /// True when the entry is a region into which trace can go.
    constexpr explicit operator bool() const noexcept { return broken == rule::none && !fault; }
};

/// Comes to an entry, and through an END to the first entry of the next table. No END leads to
/// another, so at most two entries are read, each once.
///
/// Errors: OUT-061 table not at a multiple of 4 KB; OUT-071 entry beyond MAXPHYADDR; OUT-091 entry
///         in restricted memory; the rules that the entry breaks at its place.
/// Source: SDM vol. 3, "ToPA Errors", "Restricted Memory Access"; OUT-047, OUT-050, OUT-054,
///         OUT-057, OUT-060..068, OUT-071, OUT-091, OUT-112.
template <memory_port Memory>
[[gnu::always_inline]]  // so that what was found need not go through memory
[[nodiscard]] constexpr auto
load_entry(Memory& memory, position where, limits of, restricted_memory const& around = {}) noexcept
    -> loaded_entry {
    for (;;) {
        uint64_t const address = table_pointer(where);
        rule const misplaced = !is_aligned(where.table, 4096)             ? rule::OUT_061
                               : !of.width.reaches(where.table | address) ? rule::OUT_071
                               : around.touches(address, sizeof(entry))   ? rule::OUT_091
                                                                          : rule::none;
        if (misplaced != rule::none) { return {.where = where, .broken = misplaced}; }
        auto const word = memory.load(address);
        if (!word) { return {.where = where, .fault = {true, address}}; }
        entry const current{word.value};
        rule const broken = broken_rule(current, {where.table, where.index}, of);
        if (broken != rule::none || !current.get<entry::END>()) {
            return {.where = where, .current = current, .broken = broken};
        }
        where = follow_end(current);
    }
}

/// Comes to the position from which tracing is enabled. The offset has to lie in the region, unless
/// an END was followed: then it is 0.
///
/// Errors: as `arrive`; OUT-064 offset outside the region.
/// Source: OUT-006, OUT-057, OUT-058, OUT-064.
template <memory_port Memory>
[[gnu::always_inline]]  // as above
[[nodiscard]] constexpr auto
enter(Memory& memory, position where, limits of, restricted_memory const& around = {}) noexcept
    -> loaded_entry {
    auto at = load_entry(memory, where, of, around);
    if (at && bytes_left(at.where, at.current) == 0) { at.broken = rule::OUT_064; }
    return at;
}

// ------------------------------------------------------------------------------------ distances

/// How far it is from one position to another.
struct distance {
    bool reached = false;
    uint64_t bytes = 0;        ///< between them; what was walked over where it was not reached
    rule broken = rule::none;  ///< an entry on the way that cannot be taken
    port_fault fault{};

    constexpr explicit operator bool() const noexcept { return reached; }
};

/// The bytes of trace between two positions along a chain of tables: how much was written since
/// `from`, when the trace unit stands at `to` and came there without wrapping more than once. The
/// two being equal is no distance, not a whole ring.
///
/// Units:  `most_regions` bounds the walk.
/// Errors: not reached: the rule of an entry on the way, OUT-064 `to` behind the end of its region,
///         a failing port, or none of these where the bound came first.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-053..055, PRG-129, PRG-143.
template <memory_port Memory>
[[nodiscard]] constexpr auto bytes_between(Memory& memory, position from, position to, limits of,
                                           uint64_t most_regions = 0x1'0000) noexcept -> distance {
    distance gone;
    for (uint64_t i = 0; i <= most_regions; ++i) {
        auto const at = load_entry(memory, from, of);
        if (!at) { return {false, gone.bytes, at.broken, at.fault}; }
        from = at.where;
        if (from.table == to.table && from.index == to.index && from.offset <= to.offset) {
            entry const current = at.current;
            if (to.offset > bytes_in(current.get<entry::Size>())) {
                return {false, gone.bytes, rule::OUT_064, {}};
            }
            return {true, gone.bytes + (to.offset - from.offset), rule::none, {}};
        }
        gone.bytes += bytes_left(from, at.current);
        from = next_entry(from);
    }
    return gone;
}

// ------------------------------------------------------------------------------------ tables

/// What comes after the entries of a table.
enum class table_end : uint8_t {
    link,        ///< END: another table, or the same
    stop,        ///< STOP: no more trace
    wraps,       ///< the last entry that a table can have: the first follows
    too_far,     ///< the bound of the walk: no END and no STOP before it
    unreadable,  ///< the memory port failed
};

/// How a walk over the entries of a table ended.
struct table_walk {
    table_end how = table_end::link;
    place last{};             ///< the entry at which it ended
    uint64_t next_table = 0;  ///< of a link
};

/// Calls `visit(place, entry)` for the entries of a table, from the first to the first END or STOP,
/// whatever else is wrong with them. At most `most_entries` are read, each once; 512 fill a page.
///
/// Source: OUT-045, OUT-055, OUT-056.
template <memory_port Memory, class Visit>
[[nodiscard]] constexpr auto for_each_entry(Memory& memory, uint64_t table, uint64_t most_entries,
                                            Visit&& visit) noexcept -> table_walk {
    place at{table, 0};
    for (uint64_t i = 0; i < most_entries; ++i, ++at.index) {
        auto const word = memory.load(address_math::table_pointer(table, i));
        if (!word) { return {table_end::unreadable, at, 0}; }
        entry const current{word.value};
        visit(at, current);
        if (current.get<entry::END>()) { return {table_end::link, at, follow_end(current).table}; }
        if (current.get<entry::STOP>()) { return {table_end::stop, at, 0}; }
        if (i == last_index) { return {table_end::wraps, at, 0}; }
    }
    return {table_end::too_far, at, 0};
}

/// The shape of a chain of tables.
struct chain_shape {
    uint64_t tables = 0;   ///< how many different ones there are, as far as was looked
    bool closes = false;   ///< the last links to an earlier one, or to itself
    uint64_t back_to = 0;  ///< the number of that table, from 0
};

/// How many tables a chain has, and where it closes. Of one that has more than `most_tables` only
/// that is told. Tables are looked at up to eight times as often as that, some of them very often.
///
/// Source: OUT-047.
template <memory_port Memory>
[[nodiscard]] constexpr auto shape_of_chain(Memory& memory, uint64_t first,
                                            uint64_t most_entries = 512,
                                            uint64_t most_tables = 0x1'0000) noexcept
    -> chain_shape {
    auto const next = [&](uint64_t& table) {
        auto const walk = for_each_entry(memory, table, most_entries, [](place, entry) {});
        if (walk.how == table_end::wraps) { return true; }
        table = walk.next_table;
        return walk.how == table_end::link;
    };
    // Brent's algorithm: `far` walks on, and meets `kept` once it has gone round.
    uint64_t kept = first;
    uint64_t far = first;
    uint64_t around = 0;
    uint64_t limit = 1;
    for (uint64_t tables = 1;; ++tables) {
        if (!next(far)) { return {tables < most_tables ? tables : most_tables, false, 0}; }
        ++around;
        if (far == kept) { break; }
        // A loop that so many tables have shows after three times as many.
        if (tables / 3 >= most_tables) { return {most_tables, false, 0}; }
        if (around == limit) {
            kept = far;
            limit *= 2;
            around = 0;
        }
    }
    // Two that are `around` tables apart meet where the loop begins.
    uint64_t before = 0;
    uint64_t near_one = first;
    far = first;
    for (uint64_t i = 0; i < around; ++i) { (void)next(far); }
    for (; near_one != far && before < most_tables; ++before) {
        (void)next(near_one);
        (void)next(far);
    }
    uint64_t const tables = before + around;
    return tables <= most_tables ? chain_shape{tables, true, before}
                                 : chain_shape{most_tables, false, 0};
}

}  // namespace ptspec::topa
