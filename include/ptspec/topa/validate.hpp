// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/table.hpp>
#include <ptspec/topa/walk.hpp>

/// The rules of the builders, for tables that stand in memory: those of a guest, or of a driver at
/// run time. Every finding is told, not only the first that tracing would meet.
namespace ptspec::topa {

/// Calls `found(finding)` with every rule that the entries of a table break, from the first to the
/// first END or STOP, by entry and then by number.
///
/// Units:  `most_entries` is how many the table has room for: 512 in a page.
/// Errors: OUT-061, OUT-063 the table's own address, told of entry 0; OUT-056 neither END nor STOP
///         in the room, told of the entry behind it; OUT-071 an entry beyond MAXPHYADDR; OUT-091
///         one in restricted memory; the rules of entries. Where the port fails the result says so,
///         and nothing is told of what follows.
/// Source: SDM vol. 3, "ToPA Errors", "Restricted Memory Access"; OUT-056, OUT-060..072, OUT-091,
///         OUT-112.
template <memory_port Memory, class Found>
[[nodiscard]] constexpr auto validate(Memory& memory, uint64_t table, limits of, Found&& found,
                                      uint64_t most_entries = 512,
                                      restricted_memory const& around = {}) noexcept -> table_walk {
    auto const tell = [&](place at) {
        return [&found, at](rule broken) { found(finding{broken, at}); };
    };
    find_broken_rules_of_base(link_to(table), table, of.width, tell({table, 0}));
    auto const visit = [&](place at, entry current) {
        find_broken_rules(current, at, of, tell(at));
        // An entry beyond the width in a table that begins below it.
        uint64_t const address = table_pointer({table, at.index, 0});
        if (!of.width.reaches(address) && of.width.reaches(table)) { tell(at)(rule::OUT_071); }
        if (around.touches(address, sizeof(entry))) { tell(at)(rule::OUT_091); }
    };
    auto const walk = for_each_entry(memory, table, most_entries, visit);
    if (walk.how == table_end::too_far) { tell(walk.last)(rule::OUT_056); }
    return walk;
}

/// How the validation of a chain ended.
struct chain_walk {
    uint64_t tables = 0;  ///< how many were looked at
    table_walk last{};    ///< the last of them
};

/// Calls `found(finding)` with every rule that the tables of a chain break, each table once, in the
/// order of the links.
///
/// Units:  `most_entries` is how many each table has room for; `most_tables` bounds the chain, and
///         so does a table that the port cannot read.
/// Errors: as `validate`.
/// Source: OUT-047, OUT-072.
template <memory_port Memory, class Found>
[[nodiscard]] constexpr auto validate_chain(Memory& memory, uint64_t first, limits of,
                                            Found&& found, uint64_t most_entries = 512,
                                            uint64_t most_tables = 0x1'0000,
                                            restricted_memory const& around = {}) noexcept
    -> chain_walk {
    auto const shape = shape_of_chain(memory, first, most_entries, most_tables);
    chain_walk gone;
    for (uint64_t table = first; gone.tables < shape.tables; table = gone.last.next_table) {
        gone.last = validate(memory, table, of, found, most_entries, around);
        ++gone.tables;
        if (gone.last.how != table_end::link) { break; }
    }
    return gone;
}

/// What output can hit next to the table that names it.
struct surroundings {
    restricted_memory restricted{};
    reg::ia32_apic_base apic{};
};

/// Calls `found` with what a region does that is no error, and yet no good, in the order of the
/// rules' numbers.
///
/// Errors: OUT-070 the region begins at 0, or covers some of the page of its entry; OUT-111 it
///         overlaps restricted memory; OUT-113 it overlaps the page of the local APIC.
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-070, OUT-111, OUT-113.
template <class Found>
constexpr void find_warnings(entry which, place at, surroundings const& around,
                             Found&& found) noexcept {
    if (which.get<entry::END>()) { return; }
    uint64_t const base = which.get<entry::Base>();
    uint64_t const size = bytes_in(which.get<entry::Size>());
    uint64_t const page = align_down(table_pointer({at.table, at.index, 0}), 4096);
    bool const covers = base <= page && page - base < size;
    if (base == 0 || covers) { found(rule::OUT_070); }
    if (around.restricted.touches(base, size)) { found(rule::OUT_111); }
    if (touches(around.apic, base, size)) { found(rule::OUT_113); }
}

}  // namespace ptspec::topa
