// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/table.hpp>
#include <ptspec/topa/walk.hpp>

/// Checks ToPA tables in memory, of a guest or of a driver, against the rules. Reports every broken
/// rule, not only the first that tracing would hit.
namespace ptspec::topa {

/// Calls `found(violation)` with every rule that the entries of a table break, from the first to
/// the first END or STOP, by entry and then by number.
///
/// Units:  `max_entries` is the number of entries that the table has room for: 512 in a page.
/// Errors: OUT-061, OUT-063 the table's own address, reported for entry 0; OUT-056 neither END nor
///         STOP in the table, reported for the entry after it; OUT-071 an entry beyond MAXPHYADDR;
///         OUT-091 one in restricted memory; the rules of entries. When the port fails, the result
///         is `unreadable` and nothing after that entry is reported.
/// Source: SDM vol. 3, "ToPA Errors", "Restricted Memory Access"; OUT-056, OUT-060..072, OUT-091,
///         OUT-112.
template <memory_port Memory, callable<violation> Found>
[[nodiscard]] constexpr auto validate(Memory& memory, phys_addr table, limits limits, Found&& found,
                                      uint64_t max_entries = chain_bounds{}.max_entries,
                                      restricted_memory const& restricted = {}) noexcept
    -> table_walk {
    auto const report = [&](position at) {
        return [&found, at](rule broken) { found(violation{broken, at}); };
    };
    find_broken_rules_of_base(link_to(table), table, limits.width, report({table, 0}));
    auto const visit = [&](position at, entry active) {
        find_broken_rules(active, at, limits, report(at));
        // An entry beyond MAXPHYADDR in a table that starts below it.
        phys_addr const address = table_pointer(at);
        if (!limits.width.contains(address) && limits.width.contains(table)) {
            report(at)(rule::OUT_071);
        }
        if (restricted.touches(address, sizeof(entry))) { report(at)(rule::OUT_091); }
    };
    auto const entries = for_each_entry(memory, table, max_entries, visit);
    if (entries.ended_by == table_end::limit_reached) { report(entries.last)(rule::OUT_056); }
    return entries;
}

/// The result of validating a chain.
struct chain_walk {
    uint64_t tables = 0;  ///< the number of validated tables
    table_walk last{};    ///< the walk over the last one
};

/// Validates each table of a chain once, in the order of the links. Calls `found(violation)` with
/// every broken rule. Ends at `bounds`, and at a table that the port cannot read.
///
/// Errors: as `validate`.
/// Source: OUT-047, OUT-072.
template <memory_port Memory, callable<violation> Found>
[[nodiscard]] constexpr auto validate_chain(Memory& memory, phys_addr first, limits limits,
                                            Found&& found, chain_bounds bounds = {},
                                            restricted_memory const& restricted = {}) noexcept
    -> chain_walk {
    auto const shape = shape_of_chain(memory, first, bounds);
    chain_walk result;
    for (phys_addr table = first; result.tables < shape.tables; table = result.last.next_table) {
        result.last = validate(memory, table, limits, found, bounds.max_entries, restricted);
        ++result.tables;
        if (result.last.ended_by != table_end::link) { break; }
    }
    return result;
}

/// The memory that output must avoid: restricted memory and the page of the local APIC.
struct output_hazards {
    restricted_memory restricted{};
    reg::ia32_apic_base apic{};
};

/// Calls `found` with every warning about a region: legal, but likely a mistake. In the order of
/// the rules' numbers.
///
/// Errors: OUT-070 the region starts at 0, or covers the page of its entry; OUT-111 it overlaps
///         restricted memory; OUT-113 it overlaps the page of the local APIC.
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-070, OUT-111, OUT-113.
template <callable<rule> Found>
constexpr void find_warnings(entry word, position at, output_hazards const& hazards,
                             Found&& found) noexcept {
    if (word.get<entry::END>()) { return; }
    phys_addr const base = word.get<entry::Base>();
    uint64_t const size = bytes_in(word.get<entry::Size>());
    phys_addr const page = align_down(table_pointer(at), 4096);
    bool const covers = base <= page && page - base < size;
    if (base == 0 || covers) { found(rule::OUT_070); }
    if (hazards.restricted.touches(base, size)) { found(rule::OUT_111); }
    if (touches(hazards.apic, base, size)) { found(rule::OUT_113); }
}

}  // namespace ptspec::topa
