// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/validate.hpp>

#include <support/check_twice.hpp>

#include <map>
#include <random>
#include <set>
#include <vector>

using namespace ptspec;
using topa::chain_walk;
using topa::entry;
using topa::violation;
using topa::limits;
using topa::position;
using topa::output_hazards;
using topa::table_end;
using topa::table_walk;

namespace {

constexpr limits skl{{39}, true};  // P-SKL
constexpr uint64_t all_bits = 0xFFFF'FFFF'FFFF'FFFF;

/// Consecutive pages of tables from 10000H on. The first words of each are given, the others are 0.
template <size_t Pages>
struct tables {
    uint64_t words[Pages][8] = {};
    unsigned reads = 0;

    constexpr auto load(uint64_t address) -> port_value {
        uint64_t const page = (address - 0x1'0000) >> 12;
        if (address < 0x1'0000 || page >= Pages || address % 8 != 0) { return {}; }
        ++reads;
        uint64_t const index = address % 4096 / 8;
        return {true, index < 8 ? words[page][index] : 0};
    }
    constexpr auto store(uint64_t, byte_view) -> size_t { return 0; }
};

/// The findings, in the order in which they are reported.
struct findings {
    violation reported[32] = {};
    size_t count = 0;

    constexpr void operator()(violation one) { reported[count++] = one; }

    template <class... Findings>
    [[nodiscard]] constexpr auto are(Findings... wanted) const -> bool {
        size_t i = 0;
        return count == sizeof...(Findings) && (... && (reported[i++] == wanted));
    }
};

constexpr auto is(table_walk const& got, table_end how, position last, uint64_t next = 0) -> bool {
    return got.ended_by == how && got.last == last && got.next_table == next;
}

/// In the table at 10000H.
constexpr auto at(uint32_t index, rule broken) -> violation { return {broken, {0x1'0000, index}}; }

}  // namespace

// ------------------------------------------------------------------------------------ tables

TEST_CASE("a valid table has no findings, and each entry is read once (OUT-070)") {
    CHECK_TWICE([](auto value) {
        tables<2> memory{{{value(uint64_t{0x40'0000}), 0x40'1004, 0x1'0001}}};
        findings found;
        auto const got = topa::validate(memory, 0x1'0000, skl, found);
        return is(got, table_end::link, {0x1'0000, 2}, 0x1'0000) && found.are() &&
               memory.reads == 3;
    });
    CHECK_TWICE([](auto value) {
        tables<1> memory{{{value(uint64_t{0x40'0000}), 0x40'1014, 0xFFF}}};
        findings found;
        auto const got = topa::validate(memory, 0x1'0000, skl, found);
        return is(got, table_end::stop, {0x1'0000, 1}) && found.are() && memory.reads == 2;
    });
    CHECK_TWICE([](auto value) {  // base 0, overlaps and the page of the table
        tables<1> memory{{{value(uint64_t{0}), 0, 0x1'0000, 0x40, 0x3C0, 0x1'0001}}};
        findings found;
        (void)topa::validate(memory, 0x1'0000, skl, found);
        return found.are();
    });
}

TEST_CASE("a table must be at a multiple of 4 KB below 2^MAXPHYADDR (OUT-061,063)") {
    CHECK_TWICE([](auto value) {  // its entries are checked anyway
        tables<1> memory{{{0, 0x40'0002, 0x1'0001}}};
        findings found;
        auto const got = topa::validate(memory, value(uint64_t{0x1'0008}), skl, found);
        return is(got, table_end::link, {0x1'0008, 1}, 0x1'0000) &&
               found.are(violation{rule::OUT_061, {0x1'0008, 0}},
                         violation{rule::OUT_060, {0x1'0008, 0}});
    });
    CHECK_TWICE([](auto value) {
        auto const of_table = [](uint64_t table, limits of = skl) {
            tables<1> nothing{};
            findings found;
            bool const unreadable = topa::validate(nothing, table, of, found).ended_by ==
                                    table_end::unreadable;
            return unreadable ? found : findings{.count = 9};
        };
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return of_table(high).are(violation{rule::OUT_063, {high, 0}}) &&
               of_table(high, {{40}, true}).are() && of_table(high - 0x1000).are() &&
               of_table(high + 0x800)
                   .are(violation{rule::OUT_061, {high + 0x800, 0}},
                        violation{rule::OUT_063, {high + 0x800, 0}}) &&
               of_table(all_bits).are(violation{rule::OUT_061, {all_bits, 0}},
                                      violation{rule::OUT_063, {all_bits, 0}});
    });
}

TEST_CASE("a table without END and STOP in its room is an error (OUT-056)") {
    CHECK_TWICE([](auto value) {  // reported for the entry after it
        tables<1> memory{{{0x40'0000, 0x40'1002, 0x1'0001}}};
        findings two;
        auto const limited = topa::validate(memory, 0x1'0000, skl, two, value(uint64_t{2}));
        findings three;
        auto const whole = topa::validate(memory, 0x1'0000, skl, three, value(uint64_t{3}));
        return is(limited, table_end::limit_reached, {0x1'0000, 2}) &&
               two.are(at(1, rule::OUT_060), at(2, rule::OUT_056)) &&
               is(whole, table_end::link, {0x1'0000, 2}, 0x1'0000) &&
               three.are(at(1, rule::OUT_060)) && memory.reads == 5;
    });
    CHECK_TWICE([](auto value) {  // a page has 512 entries, 0 is a region
        tables<2> memory{{{value(uint64_t{0x40'0000})}, {0x1'0001}}};
        findings found;
        auto const got = topa::validate(memory, 0x1'0000, skl, found);
        findings more;
        auto const long_table = topa::validate(memory, 0x1'0000, skl, more, 513);
        return is(got, table_end::limit_reached, {0x1'0000, 512}) &&
               found.are(at(512, rule::OUT_056)) && memory.reads == 1025 && more.are() &&
               is(long_table, table_end::link, {0x1'0000, 512}, 0x1'0000);
    });
}

TEST_CASE("an entry beyond 2^MAXPHYADDR is reported if the table starts below it (OUT-071)") {
    CHECK_TWICE([](auto value) {
        tables<2> memory{{{0x1000}, {value(uint64_t{0x3002}), 0x4000, 0x1'0001}}};
        findings found;
        // With M = 17 both pages are below 2^M, with M = 16 both are beyond it.
        (void)topa::validate(memory, 0x1'0000, {{17}, true}, found, 600);
        findings low;
        (void)topa::validate(memory, 0x1'1000, {{16}, true}, low, 600);
        return found.are(violation{rule::OUT_060, {0x1'0000, 512}}) &&
               // A table that starts beyond it is reported once, not for each entry.
               low.are(violation{rule::OUT_063, {0x1'1000, 0}},
                       violation{rule::OUT_060, {0x1'1000, 0}},
                       violation{rule::OUT_063, {0x1'1000, 2}});
    });
    // The last page below 2^39 and the first above it.
    struct {
        auto load(uint64_t address) -> port_value {
            return {true, address < 0x80'0000'0008    ? 0x40'0000U
                          : address == 0x80'0000'0008 ? 0x40'0002U
                                                      : 0x1'0001U};
        }
        auto store(uint64_t, byte_view) -> size_t { return 0; }
    } memory;
    std::vector<violation> found;
    auto const got = topa::validate(
        memory, 0x7F'FFFF'F000, skl, [&](violation one) { found.push_back(one); }, 600);
    CHECK(is(got, table_end::link, {0x7F'FFFF'F000, 514}, 0x1'0000));
    REQUIRE(found.size() == 4);
    CHECK(found[0] == violation{rule::OUT_071, {0x7F'FFFF'F000, 512}});
    CHECK(found[1] == violation{rule::OUT_060, {0x7F'FFFF'F000, 513}});
    CHECK(found[2] == violation{rule::OUT_071, {0x7F'FFFF'F000, 513}});
    CHECK(found[3] == violation{rule::OUT_071, {0x7F'FFFF'F000, 514}});
}

TEST_CASE("an entry with a byte in restricted memory is reported (OUT-091,112)") {
    CHECK_TWICE([](auto value) {
        tables<1> memory{{{0x40'0000, 0x40'1002, 0x40'2000, 0x40'3000, 0x1'0001}}};
        topa::phys_range const extra[] = {{value(uint64_t{0x1'000F}), 0x1'0010}};
        topa::restricted_memory const restricted{.extra = extra, .extra_count = 1};
        findings found;
        auto const got = topa::validate(memory, 0x1'0000, skl, found, 512, restricted);
        return is(got, table_end::link, {0x1'0000, 4}, 0x1'0000) &&
               found.are(at(1, rule::OUT_060), at(1, rule::OUT_091), at(2, rule::OUT_091));
    });
    CHECK_TWICE([](auto value) {  // the second table of a chain, in the SMRR
        tables<2> memory{{{value(uint64_t{0x40'0000}), 0x1'1001}, {0x40'1000, 0x1'0001}}};
        topa::restricted_memory const restricted{.smrr_physbase = {0x1'1000},
                                                 .smrr_physmask = {0xFFFF'F800}};
        findings found;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, found, {.max_tables = 8},
                                              restricted);
        return got.tables == 2 && found.are(violation{rule::OUT_091, {0x1'1000, 0}},
                                            violation{rule::OUT_091, {0x1'1000, 1}});
    });
}

TEST_CASE("after an entry that cannot be read nothing is reported") {
    CHECK_TWICE([](auto value) {
        struct one_word {
            uint64_t word;
            constexpr auto load(uint64_t address) -> port_value {
                return {address == 0x1'0000, word};
            }
            constexpr auto store(uint64_t, byte_view) -> size_t { return 0; }
        };
        one_word memory{value(uint64_t{0x40'0002})};
        findings found;
        auto const got = topa::validate(memory, 0x1'0000, skl, found);
        findings none;
        auto const unreadable = topa::validate(memory, 0x5000, skl, none);
        return is(got, table_end::unreadable, {0x1'0000, 1}) && found.are(at(0, rule::OUT_060)) &&
               is(unreadable, table_end::unreadable, {0x5000, 0}) && none.are();
    });
}

// ------------------------------------------------------------------------------------ reference

namespace {

/// Memory of some pages, 0 where nothing was stored.
struct few_pages {
    std::map<uint64_t, uint64_t> words;
    std::set<uint64_t> pages;
    uint64_t reads = 0;

    void put(uint64_t address, uint64_t word) {
        words[address] = word;
        pages.insert(address >> 12);
    }
    auto load(uint64_t address) -> port_value {
        ++reads;
        auto const found = words.find(address);
        if (pages.count(address >> 12) == 0) { return {}; }
        return {true, found == words.end() ? 0 : found->second};
    }
    auto store(uint64_t, byte_view) -> size_t { return 0; }
};

/// The rules of section 5 of the catalogue for one entry, written literally.
auto reference_rules(uint64_t word, uint64_t table, uint64_t index, limits of)
    -> std::vector<rule> {
    std::vector<rule> broken;
    uint64_t const limit = uint64_t{1} << of.width.bits;
    uint64_t const base = word & ~uint64_t{0xFFF};
    bool const end = word % 2 == 1;
    if ((word & 0xC2A) != 0) { broken.push_back(rule::OUT_060); }
    if (!end && base % (uint64_t{4096} << (word >> 6) % 16) != 0) {
        broken.push_back(rule::OUT_062);
    }
    if (base >= limit) { broken.push_back(rule::OUT_063); }
    if (end && (word & 0x14) != 0) { broken.push_back(rule::OUT_065); }
    if (end && index == 0) { broken.push_back(rule::OUT_066); }
    if (!of.many_entries && !end && index >= 1) { broken.push_back(rule::OUT_067); }
    if (!of.many_entries && end && base != table) { broken.push_back(rule::OUT_068); }
    if (table < limit && table + 8 * index >= limit) { broken.push_back(rule::OUT_071); }
    return broken;
}

/// Reference: all findings of a chain, with a set of the visited tables.
auto reference_findings(few_pages memory, uint64_t first, limits of, uint64_t max_entries)
    -> std::vector<violation> {
    std::vector<violation> found;
    std::set<uint64_t> seen;
    for (uint64_t table = first; seen.insert(table).second;) {
        if (table % 4096 != 0) { found.push_back({rule::OUT_061, {table, 0}}); }
        if (table >= uint64_t{1} << of.width.bits) { found.push_back({rule::OUT_063, {table, 0}}); }
        for (uint64_t i = 0;; ++i) {
            position const where{table, static_cast<uint32_t>(i)};
            if (i == max_entries) {
                found.push_back({rule::OUT_056, where});
                return found;
            }
            auto const word = memory.load(table + 8 * i);
            if (!word) { return found; }
            for (rule const broken : reference_rules(word.value, table, i, of)) {
                found.push_back({broken, where});
            }
            if (word.value % 2 == 1) {
                table = word.value & ~uint64_t{0xFFF};
                break;
            }
            if ((word.value & 0x10) != 0) { return found; }
        }
    }
    return found;
}

}  // namespace

TEST_CASE("random chains have the findings of the reference (OUT-056,060..068,071,072)") {
    std::mt19937_64 random{7};
    auto const below = [&](uint64_t count) { return random() % count; };
    std::map<rule, unsigned> seen;
    for (unsigned round = 0; round < 2500; ++round) {
        limits const of{{static_cast<unsigned>(36 + below(17))}, below(4) != 0};
        uint64_t const limit = uint64_t{1} << of.width.bits;
        few_pages memory;
        std::vector<uint64_t> bases;
        for (uint64_t i = 1 + below(4); i != 0; --i) {
            bases.push_back(below(8) == 0   ? limit - 0x1000
                            : below(8) == 0 ? limit + 0x1000 * below(3)
                                            : 0x1000 * (1 + below(20)));
        }
        for (uint64_t const base : bases) {
            // A long table is in the last entries of its page, and another may follow.
            uint64_t const from = below(6) == 0 ? 510 : 0;
            uint64_t const regions = 1 + below(3);
            for (uint64_t i = 0; i <= regions; ++i) {
                uint64_t const size = below(3) == 0 ? below(16) : 0;
                uint64_t word = (below(limit) >> (12 + size)) << (12 + size) | size << 6;
                if (i == regions) { word = bases[static_cast<size_t>(below(bases.size()))] | 1; }
                if (below(12) == 0) { word ^= uint64_t{1} << below(64); }
                if (below(30) == 0) { word = random(); }
                if (below(30) == 0) { word |= 0x10; }
                memory.put(base + 8 * (from + i), word);
            }
        }
        uint64_t const first = bases[0] + (below(20) == 0 ? 8 : 0);
        uint64_t const most = below(4) == 0 ? below(6) : 520;
        auto const expected = reference_findings(memory, first, of, most);

        std::vector<violation> found;
        auto const collect = [&](violation one) { found.push_back(one); };
        auto const got = topa::validate_chain(memory, first, of, collect, {.max_entries = most});
        REQUIRE(found == expected);
        REQUIRE(got.tables >= 1);
        for (auto const& one : expected) { ++seen[one.broken]; }
    }
    for (rule const one :
         {rule::OUT_056, rule::OUT_060, rule::OUT_061, rule::OUT_062, rule::OUT_063, rule::OUT_065,
          rule::OUT_066, rule::OUT_067, rule::OUT_068, rule::OUT_071}) {
        CAPTURE(underlying(one));
        CHECK(seen[one] > 50);
    }
}

// ------------------------------------------------------------------------------------ chains

TEST_CASE("each table of a chain is checked once, in the order of the links (OUT-047,072)") {
    CHECK_TWICE([](auto value) {
        // 10000H -> 12000H -> 11000H -> 12000H, each with a reserved bit.
        tables<3> memory{{{value(uint64_t{0x40'0002}), 0x1'2001},
                          {0x40'0008, 0x1'2001},
                          {0x40'0020, 0x40'1000, 0x1'1001}}};
        findings found;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, found);
        return got.tables == 3 && is(got.last, table_end::link, {0x1'1000, 1}, 0x1'2000) &&
               found.are(violation{rule::OUT_060, {0x1'0000, 0}},
                         violation{rule::OUT_060, {0x1'2000, 0}},
                         violation{rule::OUT_060, {0x1'1000, 0}});
    });
    CHECK_TWICE([](auto value) {  // a ring of one
        tables<1> memory{{{value(uint64_t{0x40'0000}), 0x1'0001}}};
        findings found;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, found);
        return got.tables == 1 && is(got.last, table_end::link, {0x1'0000, 1}, 0x1'0000) &&
               found.are();
    });
}

TEST_CASE("each table is checked once, also when the bound is larger than the chain (OUT-072)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t most = value(uint64_t{1}); most < 8; ++most) {
            tables<3> memory{{{0x40'0002, 0x1'1001}, {0x40'0002, 0x1'2001}, {0x40'0002, 0x1'0001}}};
            findings found;
            uint64_t const lookahead_bytes = most < 3 ? most : 3;
            auto const got = topa::validate_chain(memory, 0x1'0000, skl, found,
                                                  {.max_tables = most});
            if (got.tables != lookahead_bytes || found.count != lookahead_bytes) { return false; }
        }
        return true;
    });
}

TEST_CASE("a chain ends at STOP, at unreadable memory, or at a table without END and STOP") {
    CHECK_TWICE([](auto value) {
        tables<2> memory{{{value(uint64_t{0x40'0000}), 0x1'1001}, {0x40'1010, 0x1'0003}}};
        findings found;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, found);
        return got.tables == 2 && is(got.last, table_end::stop, {0x1'1000, 0}) && found.are();
    });
    CHECK_TWICE([](auto value) {
        tables<2> memory{{{value(uint64_t{0x40'0002}), 0x1'1001}, {0x40'1000, 0x5'0001}}};
        findings found;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, found);
        return got.tables == 3 && is(got.last, table_end::unreadable, {0x5'0000, 0}) &&
               found.are(at(0, rule::OUT_060));
    });
    CHECK_TWICE([](auto value) {
        tables<2> memory{{{value(uint64_t{0x40'0000}), 0x1'1001}, {0x40'1000, 0x40'2000, 1}}};
        findings found;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, found, {.max_entries = 2});
        return got.tables == 2 && is(got.last, table_end::limit_reached, {0x1'1000, 2}) &&
               found.are(violation{rule::OUT_056, {0x1'1000, 2}});
    });
    CHECK_TWICE([](auto value) {
        tables<1> memory{};
        findings found;
        auto const got = topa::validate_chain(memory, value(uint64_t{0x5001}), skl, found);
        return got.tables == 1 && is(got.last, table_end::unreadable, {0x5001, 0}) &&
               found.are(violation{rule::OUT_061, {0x5001, 0}});
    });
}

TEST_CASE("a table of 512 entries in a chain has room for its link") {
    CHECK_TWICE([](auto value) {
        struct full_pages {
            uint64_t link;
            constexpr auto load(uint64_t address) -> port_value {
                return {true, address % 4096 == 0xFF8 ? (address & ~uint64_t{0xFFF}) + link : 0};
            }
            constexpr auto store(uint64_t, byte_view) -> size_t { return 0; }
        };
        full_pages memory{value(uint64_t{1})};
        findings found;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, found);
        return got.tables == 1 && is(got.last, table_end::link, {0x1'0000, 511}, 0x1'0000) &&
               found.are();
    });
}

TEST_CASE("a table of a chain has 512 entries by default (OUT-056)") {
    CHECK_TWICE([](auto value) {
        tables<2> memory{{{value(uint64_t{0x40'0000})}, {0x1'0001}}};
        findings page;
        auto const limited = topa::validate_chain(memory, 0x1'0000, skl, page);
        findings more;
        auto const whole = topa::validate_chain(memory, 0x1'0000, skl, more, {.max_entries = 513});
        return page.are(at(512, rule::OUT_056)) && more.are() && limited.tables == 1 &&
               is(limited.last, table_end::limit_reached, {0x1'0000, 512}) && whole.tables == 1 &&
               is(whole.last, table_end::link, {0x1'0000, 512}, 0x1'0000);
    });
}

TEST_CASE("a chain whose links change during the walk is checked as far as it goes") {
    // After the first walk a table ends with STOP, or becomes unreadable.
    struct changing {
        uint64_t entry;
        uint64_t until;
        auto load(uint64_t address) -> port_value {
            if (until == 0) { return {entry != 0, entry}; }
            --until;
            return {true, address % 4096 == 0 ? 0x40'0000 : (address & ~uint64_t{0xFFF}) + 0x1001};
        }
        auto store(uint64_t, byte_view) -> size_t { return 0; }
    };
    for (uint64_t const entry : {0U, 0x40'0010U}) {
        changing memory{entry, 2 * 15 + 3};
        uint64_t found = 0;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, [&](violation) { ++found; },
                                              {.max_tables = 5});
        CHECK(got.tables == 2);
        CHECK(is(got.last, entry == 0 ? table_end::unreadable : table_end::stop, {0x1'1000, 1}));
        CHECK(found == 0);
    }
}

TEST_CASE("a chain that never ends is checked up to the bound") {
    struct next_pages {
        uint64_t reads = 0;
        auto load(uint64_t address) -> port_value {
            ++reads;
            return {true, address % 4096 == 0 ? 0x40'0002 : (address & ~uint64_t{0xFFF}) + 0x1001};
        }
        auto store(uint64_t, byte_view) -> size_t { return 0; }
    };
    for (uint64_t const most : {1U, 2U, 5U}) {
        next_pages memory;
        uint64_t found = 0;
        auto const got = topa::validate_chain(memory, 0x1'0000, skl, [&](violation) { ++found; },
                                              {.max_tables = most});
        CHECK(got.tables == most);
        CHECK(found == most);
        CHECK(memory.reads == 8 * most);
        CHECK(is(got.last, table_end::link, {0xF000 + 0x1000 * most, 1}, 0x1'0000 + 0x1000 * most));
    }
    next_pages memory;
    uint64_t found = 0;
    auto const got = topa::validate_chain(memory, 0x1'0000, skl, [&](violation) { ++found; });
    CHECK(got.tables == 0x1'0000);
    CHECK(found == 0x1'0000);
}

TEST_CASE("a default chain_walk has no tables") {
    CHECK_TWICE([](auto value) {
        auto const it = value(chain_walk{});
        return it.tables == 0 && is(it.last, table_end::link, {0, 0});
    });
}

// ------------------------------------------------------------------------------------ warnings

namespace {

struct rules {
    rule reported[8] = {};
    size_t count = 0;

    constexpr void operator()(rule one) { reported[count++] = one; }
    template <class... Rules>
    [[nodiscard]] constexpr auto are(Rules... wanted) const -> bool {
        size_t i = 0;
        return count == sizeof...(Rules) && (... && (reported[i++] == wanted));
    }
};

constexpr auto warnings_of(uint64_t raw, position where = {0x1'0000, 0},
                           output_hazards const& hazards = {}) -> rules {
    rules found;
    topa::find_warnings(entry{raw}, where, hazards, found);
    return found;
}

constexpr auto smrr_hazard() -> output_hazards {
    return {.restricted = {.smrr_physbase = {0x8000'0000}, .smrr_physmask = {0xFF80'0800}}};
}
constexpr auto apic_hazard(uint64_t base = 0xFEE0'0800) -> output_hazards {
    return {.restricted = {}, .apic = {base}};
}

}  // namespace

TEST_CASE("a region at 0 gets a warning (OUT-070)") {
    CHECK_TWICE([](auto value) {
        return warnings_of(value(uint64_t{0})).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0x14})).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0x1000})).are() &&
               warnings_of(value(uint64_t{0x40'0014})).are();
    });
}

TEST_CASE("a region over the page of its entry gets a warning (OUT-070)") {
    CHECK_TWICE([](auto value) {
        return warnings_of(value(uint64_t{0x1'0000})).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0xF000})).are() &&
               warnings_of(value(uint64_t{0x1'1000})).are() &&
               warnings_of(value(uint64_t{0x1'0100}), {0x1'8000, 0}).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0x1'0100}), {0x1'F000, 0}).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0x1'0100}), {0x2'0000, 0}).are() &&
               warnings_of(value(uint64_t{0x1'0100}), {0xF000, 0}).are();
    });
    CHECK_TWICE([](auto value) {  // the page of the entry, not of the table's start
        return warnings_of(value(uint64_t{0x1'1000}), {0x1'0000, 511}).are() &&
               warnings_of(value(uint64_t{0x1'1000}), {0x1'0000, 512}).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0x1'0000}), {0x1'0000, 511}).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0x1'0000}), {0x1'0000, 512}).are() &&
               warnings_of(value(uint64_t{0x1'1000}), {0x1'0000, 1023}).are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0x1'1000}), {0x1'0000, 1024}).are();
    });
    CHECK_TWICE([](auto value) {  // at the last address
        return warnings_of(value(uint64_t{0xF'FFFF'F800'03C0}), {0xF'FFFF'FFFF'F000, 0})
                   .are(rule::OUT_070) &&
               warnings_of(value(uint64_t{0xF'FFFF'F800'03C0}), {0x10'0000'0000'0000, 0}).are() &&
               warnings_of(value(all_bits << 12), {0x1000, 0}).are();
    });
}

TEST_CASE("a region over restricted memory gets a warning (OUT-111, PRG-095)") {
    CHECK_TWICE([](auto value) {
        auto const hazards = smrr_hazard();
        position const where{0x1'0000, 0};
        return warnings_of(value(uint64_t{0x8000'0000}), where, hazards).are(rule::OUT_111) &&
               warnings_of(value(uint64_t{0x807F'F000}), where, hazards).are(rule::OUT_111) &&
               warnings_of(value(uint64_t{0x8080'0000}), where, hazards).are() &&
               warnings_of(value(uint64_t{0x7FFF'F000}), where, hazards).are() &&
               warnings_of(value(uint64_t{0x7C00'03C0}), where, hazards).are(rule::OUT_111) &&
               warnings_of(value(uint64_t{0x7800'03C0}), where, hazards).are() &&
               warnings_of(value(uint64_t{0x1'8000'0000}), where, hazards).are();
    });
    CHECK_TWICE([](auto value) {
        topa::phys_range const extra[] = {{value(uint64_t{0x40'1FFF}), 0x40'1FFF}};
        output_hazards const hazards{.restricted = {.extra = extra, .extra_count = 1}, .apic = {}};
        return warnings_of(0x40'1000, {0x1'0000, 0}, hazards).are(rule::OUT_111) &&
               warnings_of(0x40'0040, {0x1'0000, 0}, hazards).are(rule::OUT_111) &&
               warnings_of(0x40'0000, {0x1'0000, 0}, hazards).are() &&
               warnings_of(0x40'2000, {0x1'0000, 0}, hazards).are();
    });
}

TEST_CASE("a region over the page of the local APIC gets a warning (OUT-113, PRG-096)") {
    CHECK_TWICE([](auto value) {
        auto const hazards = apic_hazard();
        position const where{0x1'0000, 0};
        return warnings_of(value(uint64_t{0xFEE0'0000}), where, hazards).are(rule::OUT_113) &&
               warnings_of(value(uint64_t{0xFEE0'1000}), where, hazards).are() &&
               warnings_of(value(uint64_t{0xFED0'0200}), where, hazards).are() &&
               warnings_of(value(uint64_t{0xFEC0'0240}), where, hazards).are() &&
               warnings_of(value(uint64_t{0xFE00'0300}), where, hazards).are(rule::OUT_113) &&
               warnings_of(value(uint64_t{0xFEE0'0000}), where, apic_hazard(0xFEE0'0100)).are();
    });
}

TEST_CASE("all warnings of a region are reported, in the order of their numbers") {
    CHECK_TWICE([](auto value) {
        auto hazards = smrr_hazard();
        hazards.apic = {0x8000'1800};
        return warnings_of(value(uint64_t{0x8000'0040}), {0x8000'1000, 4}, hazards)
            .are(rule::OUT_070, rule::OUT_111, rule::OUT_113);
    });
}

TEST_CASE("a link has no region, and so no warning") {
    CHECK_TWICE([](auto value) {
        auto hazards = smrr_hazard();
        hazards.apic = {0x8000'0800};
        return warnings_of(value(uint64_t{0x8000'0001}), {0x8000'0000, 1}, hazards).are() &&
               warnings_of(value(uint64_t{1}), {0, 1}, hazards).are() &&
               warnings_of(value(uint64_t{0x8000'0000}), {0x1'0000, 1}, hazards)
                   .are(rule::OUT_111, rule::OUT_113);
    });
}
