// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/position.hpp>

#include <support/check_twice.hpp>

#include <cstdint>
#include <type_traits>

using namespace ptspec;
using topa::violation;
using topa::limits;
using topa::region;
using topa::region_size;
using topa::table_site;

// The compile-time errors of mistakes are tested in tests/fail/topa.cpp.

namespace {

constexpr limits narrow{.many_entries = false};
constexpr limits bits_39{.width = {39}};

/// The regions of these tests, and their entries as words.
constexpr region at_64K{.base = 0x10'0000, .size = region_size::size_64K};
constexpr region at_4K{.base = 0x20'0000};
constexpr region at_1M{.base = 0x30'0000, .size = region_size::size_1M};
constexpr uint64_t word_64K = 0x10'0100;
constexpr uint64_t word_4K = 0x20'0000;
constexpr uint64_t word_1M = 0x30'0200;
constexpr uint64_t INT = 4;
constexpr uint64_t STOP = 16;

constexpr region askew{.base = 0x10'8000, .size = region_size::size_64K};
constexpr region beyond{.base = 0x80'0000'0000};  // bit 39

/// True when the table has exactly these words.
template <size_t Entries, class... Words>
constexpr auto holds(topa::table<Entries> const& table, Words... words) -> bool {
    static_assert(sizeof...(Words) == Entries);
    size_t at = 0;
    return (... && (table.entries[at++].raw == words));
}
template <size_t Entries, class... Words>
constexpr auto holds(topa::built<Entries> const& made, Words... words) -> bool {
    return made && made.violated == violation{} && holds(made.table, words...);
}

/// True when building failed with this rule at this place, and the table is zero.
template <size_t Entries>
constexpr auto refused(topa::built<Entries> const& made, rule broken, uint64_t table,
                       uint32_t index) -> bool {
    return !made && made.violated == violation{broken, {table, index}} &&
           made.table == topa::table<Entries>{};
}
template <size_t... Entries>
constexpr auto refused(topa::built_chain<Entries...> const& made, size_t number, rule broken,
                       uint64_t table, uint32_t index) -> bool {
    return !made && made.number == number && made.violated == violation{broken, {table, index}} &&
           made.tables == topa::tables<Entries...>{};
}

}  // namespace

TEST_CASE("a site is an address; the default processor has 52 address bits and MENTRY") {
    CHECK_TWICE([](auto value) {
        table_site const plain = value(uint64_t{0x5'F000});
        table_site const narrow_site{value(uint64_t{0x5'F000}), {{39}, false}};
        return plain.base == 0x5'F000 && plain.limits == limits{{52}, true} &&
               narrow_site.base == 0x5'F000 && narrow_site.limits == limits{{39}, false};
    });
}

// ------------------------------------------------------------------------------------ ring

namespace {

constexpr auto two_regions = topa::ring(
    0x1'0000'0000, region{.base = 0x1'0010'0000, .size = region_size::size_1M},
    region{.base = 0x1'0020'0000, .size = region_size::size_64K, .interrupt = true});

alignas(4096) constinit auto placed = two_regions;

}  // namespace

TEST_CASE("a ring is its regions and a link back to itself (OUT-043,045,047,056, PRG-128)") {
    static_assert(two_regions.size() == 3 && sizeof(two_regions) == 24);
    static_assert(two_regions.entries[0].raw == (0x1'0010'0000 | 8 << 6));
    static_assert(two_regions.entries[1].raw == (0x1'0020'0000 | 4 << 6 | 1 << 2));
    static_assert(two_regions.entries[2].raw == (0x1'0000'0000 | 1));
    CHECK_TWICE([](auto value) {
        auto const made = topa::try_ring(
            value(uint64_t{0x1'0000'0000}),
            region{.base = value(uint64_t{0x1'0010'0000}), .size = region_size::size_1M},
            region{.base = value(uint64_t{0x1'0020'0000}),
                   .size = region_size::size_64K,
                   .interrupt = value(true)});
        return made && made.table == two_regions && made.violated == violation{};
    });
    CHECK_TWICE([](auto value) {
        return holds(topa::try_ring(0x5'F000, value(at_64K), value(at_4K), value(at_1M)), word_64K,
                     word_4K, word_1M, 0x5'F001U);
    });
}

TEST_CASE("a ring can be placed in aligned memory") {
    CHECK(reinterpret_cast<std::uintptr_t>(&placed) % 4096 == 0);
    CHECK(placed.entries[0].raw == 0x1'0010'0200);
    static_assert(std::is_trivially_copyable_v<decltype(placed)>);
}

TEST_CASE("a ring of one region is valid without MENTRY (OUT-100, PRG-128)") {
    CHECK_TWICE([](auto value) {
        return holds(topa::try_ring(value(uint64_t{0x1000}), value(at_64K)), word_64K, 0x1001U) &&
               holds(topa::try_ring({value(uint64_t{0x1000}), narrow}, value(at_64K)), word_64K,
                     0x1001U);
    });
}

TEST_CASE("try_ring() reports the broken rule and its place (OUT-061..063,066,067)") {
    CHECK_TWICE([](auto value) {
        uint64_t const base = value(uint64_t{0x1'0000});
        return refused(topa::try_ring(base | 0x80, at_1M, at_64K), rule::OUT_061, 0x1'0080, 2) &&
               refused(topa::try_ring(base, at_1M, askew), rule::OUT_062, 0x1'0000, 1) &&
               refused(topa::try_ring({base, bits_39}, beyond), rule::OUT_063, 0x1'0000, 0) &&
               refused(topa::try_ring(base), rule::OUT_066, 0x1'0000, 0) &&
               refused(topa::try_ring({base, narrow}, at_1M, at_64K), rule::OUT_067, 0x1'0000, 1);
    });
    CHECK_TWICE([](auto value) {
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return refused(topa::try_ring({high, bits_39}, at_1M), rule::OUT_063, high, 1) &&
               holds(topa::try_ring({high, {{40}}}, at_1M), word_1M, 0x80'0000'0001U);
    });
}

TEST_CASE("a ring for a narrower processor is checked against its limits") {
    constexpr auto made = topa::ring({0xF'FFFF'F000, {{36}, false}}, at_1M);
    static_assert(holds(made, word_1M, 0xF'FFFF'F001U));
    CHECK(made.entries[0].raw == word_1M);
}

// ------------------------------------------------------------------------------------ linked

TEST_CASE("a linked table links to another (OUT-043,045,047)") {
    CHECK_TWICE([](auto value) {
        return holds(topa::try_linked(value(uint64_t{0x5'F000}), value(uint64_t{0x6'0000}),
                                      value(at_64K), value(at_4K)),
                     word_64K, word_4K, 0x6'0001U) &&
               holds(topa::try_linked(value(uint64_t{0x5'F000}), value(uint64_t{0}), value(at_64K)),
                     word_64K, 1U);
    });
    static_assert(holds(topa::linked(0x5'F000, 0x6'0000, at_64K), word_64K, 0x6'0001U));
}

// ------------------------------------------------------------------------------------ single entry

TEST_CASE("single_entry is one region and a link to itself (OUT-100)") {
    CHECK_TWICE([](auto value) {  // OC-37, OC-42
        region const plain{.base = value(uint64_t{0x80'0000}), .size = region_size::size_16K};
        auto interrupts = plain;
        interrupts.interrupt = true;
        auto stops = interrupts;
        stops.stop = true;
        return holds(topa::try_single_entry(0x1'0000, plain), 0x80'0080U, 0x1'0001U) &&
               holds(topa::try_single_entry(0x1'0000, interrupts), 0x80'0084U, 0x1'0001U) &&
               holds(topa::try_single_entry({0x1'0000, narrow}, stops), 0x80'0094U, 0x1'0001U);
    });
    CHECK_TWICE([](auto value) {  // the largest
        region const largest{.base = value(uint64_t{0x800'0000}), .size = region_size::size_128M};
        return holds(topa::try_single_entry(0x1'0000, largest), 0x800'03C0U, 0x1'0001U);
    });
    static_assert(holds(topa::single_entry(0x5'F000, at_64K), word_64K, 0x5'F001U));
}

TEST_CASE("after a single region is full, output continues at its start (OUT-103)") {
    CHECK_TWICE([](auto value) {  // OC-39
        auto const made = topa::try_single_entry(0x1'0000, value(at_64K));
        auto const full = topa::advanced({0x1'0000, 0, 0xFFFF}, made.table.entries[0], 1);
        return full == topa::position{0x1'0000, 1, 0} &&
               topa::follow_end(made.table.entries[full.index]) == topa::position{0x1'0000, 0, 0};
    });
}

// ------------------------------------------------------------------------------------ stop on full

TEST_CASE("stop on full: the last region has STOP, and no entry follows (OUT-045,056, PRG-128)") {
    CHECK_TWICE([](auto value) {
        return holds(topa::try_stop_on_full(value(uint64_t{0x5'F000}), value(at_64K), value(at_4K),
                                            value(at_1M)),
                     word_64K, word_4K, word_1M | STOP) &&
               holds(topa::try_stop_on_full(value(uint64_t{0x5'F000}), value(at_4K)),
                     word_4K | STOP);
    });
    static_assert(holds(topa::stop_on_full(0x5'F000, at_64K, at_4K), word_64K, word_4K | STOP));
    static_assert(std::is_same_v<decltype(topa::try_stop_on_full(0)), topa::built<1>>);
}

// ------------------------------------------------------------------------------------ interrupts

TEST_CASE("interrupt on full: INT on the region before the last, and a ring (OUT-093, PRG-128)") {
    CHECK_TWICE([](auto value) {
        return holds(topa::try_interrupt_on_full(value(uint64_t{0x5'F000}), value(at_64K),
                                                 value(at_4K), value(at_1M)),
                     word_64K, word_4K | INT, word_1M, 0x5'F001U) &&
               holds(topa::try_interrupt_on_full(value(uint64_t{0x5'F000}), value(at_64K),
                                                 value(at_4K)),
                     word_64K | INT, word_4K, 0x5'F001U);
    });
    static_assert(holds(topa::interrupt_on_full(0x5'F000, at_64K, at_4K), word_64K | INT, word_4K,
                        0x5'F001U));
}

TEST_CASE("interrupt and stop: INT before the last region, INT and STOP on it (OUT-093, PRG-128)") {
    CHECK_TWICE([](auto value) {
        return holds(topa::try_interrupt_and_stop(value(uint64_t{0x5'F000}), value(at_64K),
                                                  value(at_4K), value(at_1M)),
                     word_64K, word_4K | INT, word_1M | INT | STOP) &&
               holds(topa::try_interrupt_and_stop(value(uint64_t{0x5'F000}), value(at_64K),
                                                  value(at_4K)),
                     word_64K | INT, word_4K | INT | STOP);
    });
    static_assert(holds(topa::interrupt_and_stop(0x5'F000, at_64K, at_4K), word_64K | INT,
                        word_4K | INT | STOP));
    static_assert(std::is_same_v<decltype(topa::try_interrupt_and_stop(0)), topa::built<1>>);
}

TEST_CASE("builders add INT and STOP to those of the regions, and remove none") {
    CHECK_TWICE([](auto value) {
        region const it{.base = value(uint64_t{0x20'0000}), .interrupt = true, .stop = true};
        uint64_t const word = word_4K | INT | STOP;
        return holds(topa::try_ring(0x1000, it, it), word, word, 0x1001U) &&
               holds(topa::try_linked(0x1000, 0x2000, it), word, 0x2001U) &&
               holds(topa::try_stop_on_full(0x1000, it, it), word, word) &&
               holds(topa::try_interrupt_on_full(0x1000, it, it), word, word, 0x1001U) &&
               holds(topa::try_interrupt_and_stop(0x1000, it, it, it), word, word, word);
    });
}

// ------------------------------------------------------------------------------------ chains

TEST_CASE("a chain links each table to the next, and the last to the first (OUT-047, PRG-128)") {
    CHECK_TWICE([](auto value) {
        auto const made = topa::try_chain(topa::table_at(value(uint64_t{0x1'0000}), value(at_64K)),
                                          topa::table_at(0x2'0000, at_4K, at_1M),
                                          topa::table_at(0x3'0000, value(at_1M)));
        return made && made.violated == violation{} &&
               holds(made.tables.template get<0>(), word_64K, 0x2'0001U) &&
               holds(made.tables.template get<1>(), word_4K, word_1M, 0x3'0001U) &&
               holds(made.tables.template get<2>(), word_1M, 0x1'0001U);
    });
    constexpr auto proved = topa::chain(topa::table_at(0x1'0000, at_64K, at_1M),
                                        topa::table_at(0x2'0000, at_4K));
    static_assert(holds(proved.get<0>(), word_64K, word_1M, 0x2'0001U));
    static_assert(holds(proved.get<1>(), word_4K, 0x1'0001U));
    static_assert(sizeof(proved) == 40);
    CHECK(proved.get<1>().entries[1].raw == 0x1'0001);
}

TEST_CASE("a chain of one table is a ring, which every processor accepts (OUT-047,100)") {
    CHECK_TWICE([](auto value) {
        auto const made = topa::try_chain(
            topa::table_at({value(uint64_t{0x1'0000}), narrow}, value(at_64K)));
        return made && holds(made.tables.template get<0>(), word_64K, 0x1'0001U);
    });
    static_assert(holds(topa::chain(topa::table_at(0x1'0000, at_4K)).get<0>(), word_4K, 0x1'0001U));
}

TEST_CASE("try_chain() reports the broken rule, the table and the place (OUT-061..063,067,068)") {
    CHECK_TWICE([](auto value) {  // the first table cannot link to the second
        auto const valid = topa::table_at(value(uint64_t{0x1'0000}), at_64K, at_4K);
        auto const wide = [](uint64_t base) { return topa::table_at(base, at_1M); };
        return refused(topa::try_chain(valid, wide(0x2'0080)), 0, rule::OUT_061, 0x1'0000, 2) &&
               refused(topa::try_chain(wide(0x2'0080), valid), 0, rule::OUT_061, 0x2'0080, 1) &&
               refused(topa::try_chain(valid, wide(0x2'0000), wide(0x3'0080)), 1, rule::OUT_061,
                       0x2'0000, 1) &&
               refused(topa::try_chain(valid, wide(uint64_t{1} << 52)), 0, rule::OUT_063, 0x1'0000,
                       2);
    });
    CHECK_TWICE([](auto value) {
        auto const valid = topa::table_at(value(uint64_t{0x1'0000}), at_64K, at_4K);
        auto const invalid = topa::table_at(value(uint64_t{0x2'0000}), at_1M, at_4K, askew);
        return refused(topa::try_chain(valid, invalid), 1, rule::OUT_062, 0x2'0000, 2) &&
               refused(topa::try_chain(invalid, valid), 0, rule::OUT_062, 0x2'0000, 2) &&
               refused(topa::try_chain(valid, invalid, invalid), 1, rule::OUT_062, 0x2'0000, 2) &&
               refused(topa::try_chain(valid, valid, invalid), 2, rule::OUT_062, 0x2'0000, 2);
    });
    CHECK_TWICE([](auto value) {  // each table has its own limits
        auto const valid = topa::table_at(value(uint64_t{0x1'0000}), at_64K);
        auto const high = topa::table_at({value(uint64_t{0x2'0000}), bits_39}, at_4K, beyond);
        auto const one = topa::table_at({value(uint64_t{0x1'0000}), narrow}, at_64K);
        auto const two = topa::table_at({value(uint64_t{0x1'0000}), narrow}, at_64K, at_4K);
        return refused(topa::try_chain(valid, high), 1, rule::OUT_063, 0x2'0000, 1) &&
               refused(topa::try_chain(one, topa::table_at(0x3'0000, at_4K)), 0, rule::OUT_068,
                       0x1'0000, 1) &&
               refused(topa::try_chain(two), 0, rule::OUT_067, 0x1'0000, 1);
    });
}

TEST_CASE("table A has 64K in X and 4K in Y, and links to B, which ends with STOP (OUT-142)") {
    CHECK_TWICE([](auto value) {  // OC-15
        auto const a = topa::try_linked(value(uint64_t{0x1'0000}), value(uint64_t{0x2'0000}),
                                        region{.base = 0x1000'0000, .size = region_size::size_64K},
                                        region{.base = 0x2000'0000});
        auto const b = topa::try_stop_on_full(
            value(uint64_t{0x2'0000}), region{.base = 0x3000'0000, .size = region_size::size_8K});
        return holds(a, 0x1000'0100U, 0x2000'0000U, 0x2'0001U) && holds(b, 0x3000'0050U);
    });
}

TEST_CASE("chains are equal when all tables are equal") {
    CHECK_TWICE([](auto value) {
        auto const make = [](uint64_t one, uint64_t two) {
            return topa::try_chain(topa::table_at(0x1'0000, region{.base = one}),
                                   topa::table_at(0x2'0000, region{.base = two}))
                .tables;
        };
        auto const it = value(make(0x4000, 0x5000));
        return it == make(0x4000, 0x5000) && it != make(0x6000, 0x5000) &&
               it != make(0x4000, 0x6000);
    });
}

TEST_CASE("a default chain has no broken rule") {
    CHECK_TWICE([](auto value) {
        auto const unbuilt = value(topa::built_chain<2>{});
        return unbuilt && unbuilt.number == 0 &&
               unbuilt.tables.template get<0>().entries[1].raw == 0 &&
               !topa::built_chain<2>{.violated = value(violation{rule::OUT_062, {}})};
    });
}

TEST_CASE("tables at the top of 52 bits, with the largest region there (OUT-153)") {
    CHECK_TWICE([](auto value) {
        table_site const top = value(uint64_t{0xF'FFFF'FFFF'F000});
        region const it{.base = value(uint64_t{0xF'FFFF'F800'0000}),
                        .size = region_size::size_128M};
        uint64_t const word = 0xF'FFFF'F800'03C0;
        return holds(topa::try_ring(top, it), word, 0xF'FFFF'FFFF'F001U) &&
               holds(topa::try_single_entry(top, it), word, 0xF'FFFF'FFFF'F001U) &&
               holds(topa::try_stop_on_full(top, it), word | STOP) &&
               holds(topa::try_interrupt_on_full(top, it, it), word | INT, word,
                     0xF'FFFF'FFFF'F001U) &&
               holds(topa::try_chain(topa::table_at(top, it)).tables.template get<0>(), word,
                     0xF'FFFF'FFFF'F001U);
    });
}
