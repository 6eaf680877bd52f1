// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/table.hpp>

#include <support/check_twice.hpp>

#include <cstddef>
#include <type_traits>

using namespace ptspec;
using topa::ending;
using topa::violation;
using topa::limits;
using topa::region;
using topa::region_size;

namespace {

constexpr limits wide{};
constexpr limits narrow{.many_entries = false};

constexpr region at_1M{.base = 0x10'0000, .size = region_size::size_1M};
constexpr region at_64K{.base = 0x1'0000, .size = region_size::size_64K};
constexpr region stop_64K{.base = 0x1'0000, .size = region_size::size_64K, .stop = true};
constexpr region bad_64K{.base = 0x1'8000, .size = region_size::size_64K};

/// The old contents of the output buffer.
constexpr topa::entry old{0x5A5A'5A5A'5A5A'5A5A};

/// The result of write_table() and its output.
struct outcome {
    violation why;
    topa::entry to[5];

    /// True when the table was written: these words, and nothing after them.
    template <class... Words>
    [[nodiscard]] constexpr auto is(Words... words) const -> bool {
        size_t at = 0;
        bool const same = (... && (to[at++].raw == words));
        for (; at < 5; ++at) {
            if (to[at] != old) { return false; }
        }
        return same && why == violation{};
    }
    /// True when nothing was written, and this is the finding.
    [[nodiscard]] constexpr auto is_refused(rule broken, uint64_t table, uint32_t index) const
        -> bool {
        for (topa::entry const& one : to) {
            if (one != old) { return false; }
        }
        return why == violation{broken, {table, index}};
    }
};

constexpr auto write(limits of, uint64_t base, region const* regions, size_t count, ending end)
    -> outcome {
    outcome got{{}, {old, old, old, old, old}};
    got.why = topa::write_table(of, base, regions, count, end, got.to);
    return got;
}
template <size_t Count>
constexpr auto write(limits of, uint64_t base, region const (&regions)[Count], ending end)
    -> outcome {
    return write(of, base, regions, Count, end);
}

}  // namespace

// ------------------------------------------------------------------------------------ requests

TEST_CASE("a region becomes an entry, field by field (OUT-040,041)") {
    CHECK_TWICE([](auto value) {
        auto const plain = region{.base = value(uint64_t{0x1234'5000})};
        auto with_interrupt = plain;
        with_interrupt.interrupt = true;
        auto with_stop = plain;
        with_stop.stop = true;
        return topa::entry_for(plain).raw == 0x1234'5000 &&
               topa::entry_for(with_interrupt).raw == 0x1234'5004 &&
               topa::entry_for(with_stop).raw == 0x1234'5010;
    });
    CHECK_TWICE([](auto value) {
        return topa::entry_for({value(uint64_t{0x7F'FE00'0000}), region_size::size_2M, true, true})
                       .raw == 0x7F'FE00'0254 &&
               topa::entry_for(region{}).raw == 0 &&
               topa::entry_for({value(uint64_t{0x1FFF})}).raw == 0x1000 &&
               topa::entry_for({value(uint64_t{0xF'FFFF'F800'0000}), region_size::size_128M}).raw ==
                   0xF'FFFF'F800'03C0;
    });
}

TEST_CASE("a table consists only of its entries (OUT-045)") {
    static_assert(sizeof(topa::table<3>) == 24 && topa::table<3>::size() == 3);
    static_assert(std::is_trivially_copyable_v<topa::table<3>>);
    static_assert(offsetof(topa::table<3>, entries) == 0);
    CHECK(sizeof(topa::table<512>) == 4096);
}

TEST_CASE("link() holds the next table, no_link holds none") {
    CHECK_TWICE([](auto value) {
        auto const to = topa::link(value(uint64_t{0x5'F000}));
        auto const none = value(topa::no_link);
        return to.is_link && to.next_table == 0x5'F000 && !none.is_link && none.next_table == 0;
    });
}

// ------------------------------------------------------------------------------------ the words

TEST_CASE("regions are written in order, with the link after them (OUT-043,045,047)") {
    CHECK_TWICE([](auto value) {
        region const regions[] = {value(at_1M), value(stop_64K), value(region{.base = 0x3000})};
        return write(wide, 0x5'F000, regions, topa::link(0x5'F000))
                   .is(0x10'0200U, 0x1'0110U, 0x3000U, 0x5'F001U) &&
               write(wide, 0x5'F000, regions, topa::link(0x6'0000))
                   .is(0x10'0200U, 0x1'0110U, 0x3000U, 0x6'0001U);
    });
}

TEST_CASE("after STOP no entry is needed (OUT-045,056)") {
    CHECK_TWICE([](auto value) {
        region const regions[] = {value(at_1M), value(stop_64K)};
        return write(wide, 0x5'F000, regions, topa::no_link).is(0x10'0200U, 0x1'0110U) &&
               write(wide, 0x5'F000, regions, topa::link(0x5'F000))
                   .is(0x10'0200U, 0x1'0110U, 0x5'F001U);
    });
}

TEST_CASE("a page holds 511 regions and a link (PRG-128)") {
    CHECK_TWICE([](auto value) {
        region regions[511];
        for (region& one : regions) { one = value(at_64K); }
        topa::table<512> page{};
        auto const why = topa::write_table(wide, 0x5'F000, regions, 511, topa::link(0x6'0000),
                                           page.entries);
        return why == violation{} && page.entries[0].raw == 0x1'0100 &&
               page.entries[510].raw == 0x1'0100 && page.entries[511].raw == 0x6'0001;
    });
}

TEST_CASE("a table at the top of 52 bits, with the largest region there (OUT-153)") {
    CHECK_TWICE([](auto value) {
        region const regions[] = {
            {.base = value(uint64_t{0xF'FFFF'F800'0000}), .size = region_size::size_128M}};
        uint64_t const base = value(uint64_t{0xF'FFFF'FFFF'F000});
        return write(wide, base, regions, topa::link(base))
            .is(0xF'FFFF'F800'03C0U, 0xF'FFFF'FFFF'F001U);
    });
}

TEST_CASE("regions may start at 0, overlap, and have any size (OUT-069,070)") {
    CHECK_TWICE([](auto value) {
        region regions[16];
        topa::entry to[17];
        for (unsigned size = 0; size < 16; ++size) {
            regions[size].size = region_size{static_cast<uint8_t>(value(size))};
        }
        auto const why = topa::write_table(wide, 0x1000, regions, 16, topa::link(0x1000), to);
        for (unsigned size = 0; size < 16; ++size) {
            if (to[size].raw != size << 6) { return false; }
        }
        return why == violation{};
    });
}

// ------------------------------------------------------------------------------------ the rules

TEST_CASE("check_table_base() wants a multiple of 4 KB within the width (OUT-061,063)") {
    CHECK_TWICE([](auto value) {
        constexpr max_phys_addr bits_39{39};
        using topa::check_table_base;
        return check_table_base(value(uint64_t{0}), bits_39) == rule::none &&
               check_table_base(value(uint64_t{0x7F'FFFF'F000}), bits_39) == rule::none &&
               check_table_base(value(uint64_t{0x1800}), bits_39) == rule::OUT_061 &&
               check_table_base(value(uint64_t{0x80'0000'0000}), bits_39) == rule::OUT_063 &&
               check_table_base(value(uint64_t{0x80'0000'0001}), bits_39) == rule::OUT_061;
    });
}

TEST_CASE("a table starts at a multiple of 4 KB (OUT-061)") {
    CHECK_TWICE([](auto value) {
        region const regions[] = {at_1M, stop_64K};
        for (unsigned bit = 0; bit < 12; ++bit) {
            uint64_t const base = 0x1'0000 | value(uint64_t{1}) << bit;
            if (!write(wide, base, regions, topa::link(0x1'0000))
                     .is_refused(rule::OUT_061, base, 2) ||
                !write(wide, base, regions, topa::no_link).is_refused(rule::OUT_061, base, 2)) {
                return false;
            }
        }
        return write(wide, value(uint64_t{0}), regions, topa::link(0))
            .is(0x10'0200U, 0x1'0110U, 1U);
    });
}

TEST_CASE("a table links to a multiple of 4 KB (OUT-061)") {
    CHECK_TWICE([](auto value) {
        region const regions[] = {at_1M, at_64K};
        for (unsigned bit = 0; bit < 12; ++bit) {
            uint64_t const next = 0x1'0000 | value(uint64_t{1}) << bit;
            if (!write(wide, 0x1000, regions, topa::link(next))
                     .is_refused(rule::OUT_061, 0x1000, 2)) {
                return false;
            }
        }
        return write(wide, 0x1000, regions, topa::link(value(uint64_t{0}))).why == violation{};
    });
}

TEST_CASE("a region is aligned to its size, and the violation has its place (OUT-062,072)") {
    CHECK_TWICE([](auto value) {
        region const first[] = {value(bad_64K), at_1M, at_64K};
        region const second[] = {at_1M, value(bad_64K), at_64K};
        region const third[] = {at_1M, at_64K, value(bad_64K)};
        return write(wide, 0x1000, first, topa::link(0x1000))
                   .is_refused(rule::OUT_062, 0x1000, 0) &&
               write(wide, 0x1000, second, topa::link(0x1000))
                   .is_refused(rule::OUT_062, 0x1000, 1) &&
               write(wide, 0x1000, third, topa::link(0x1000)).is_refused(rule::OUT_062, 0x1000, 2);
    });
    CHECK_TWICE([](auto value) {  // also bits 11:0, which an entry does not hold
        for (unsigned bit = 0; bit < 12; ++bit) {
            region const low[] = {at_1M, {.base = 0x2000 | value(uint64_t{1}) << bit}};
            if (!write(wide, 0x1000, low, topa::link(0x1000))
                     .is_refused(rule::OUT_062, 0x1000, 1)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("every address is below 2^MAXPHYADDR, by default 2^52 (OUT-063)") {
    constexpr limits bits_39{.width = {39}};
    constexpr limits bits_40{.width = {40}};
    CHECK_TWICE([=](auto value) {  // a region's
        region const high[] = {at_1M, {.base = value(uint64_t{0x80'0000'0000})}};
        return write(bits_39, 0x1000, high, topa::link(0x1000))
                   .is_refused(rule::OUT_063, 0x1000, 1) &&
               write(bits_40, 0x1000, high, topa::link(0x1000))
                   .is(0x10'0200U, 0x80'0000'0000U, 0x1001U) &&
               write(wide, 0x1000, high, topa::link(0x1000)).why == violation{};
    });
    CHECK_TWICE([=](auto value) {  // the table's own
        region const regions[] = {at_1M, stop_64K};
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return write(bits_39, high, regions, topa::no_link).is_refused(rule::OUT_063, high, 2) &&
               write(bits_39, high, regions, topa::link(0x1000))
                   .is_refused(rule::OUT_063, high, 2) &&
               write(bits_40, high, regions, topa::no_link).is(0x10'0200U, 0x1'0110U);
    });
    CHECK_TWICE([=](auto value) {  // the next table's
        region const regions[] = {at_1M};
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return write(bits_39, 0x1000, regions, topa::link(high))
                   .is_refused(rule::OUT_063, 0x1000, 1) &&
               write(bits_40, 0x1000, regions, topa::link(high)).is(0x10'0200U, 0x80'0000'0001U);
    });
    CHECK_TWICE([](auto value) {
        region const regions[] = {at_1M};
        uint64_t const limit = value(uint64_t{1}) << 52;
        return write(wide, limit, regions, topa::link(0x1000))
                   .is_refused(rule::OUT_063, limit, 1) &&
               write(wide, 0x1000, regions, topa::link(limit))
                   .is_refused(rule::OUT_063, 0x1000, 1) &&
               write(wide, limit - 0x1000, regions, topa::link(limit - 0x1000)).why == violation{};
    });
}

TEST_CASE("every entry is below 2^MAXPHYADDR, the link too (OUT-071)") {
    CHECK_TWICE([](auto value) {
        region regions[513];
        topa::entry to[514];
        regions[511].stop = regions[512].stop = true;
        uint64_t const base = value(uint64_t{0xF'FFFF'F000});  // the last page of 36 bits
        auto const write_at = [&](size_t count, ending end) {
            return topa::write_table({.width = {36}}, base, regions, count, end, to);
        };
        return write_at(512, topa::no_link) == violation{} &&
               write_at(511, topa::link(0)) == violation{} &&
               write_at(512, topa::link(0)) == violation{rule::OUT_071, {base, 512}} &&
               write_at(513, topa::no_link) == violation{rule::OUT_071, {base, 512}};
    });
}

TEST_CASE("a table has a region (OUT-066)") {
    CHECK_TWICE([](auto value) {
        uint64_t const base = value(uint64_t{0x1000});
        return write(wide, base, nullptr, 0, topa::link(base)).is_refused(rule::OUT_066, base, 0) &&
               write(wide, base, nullptr, 0, topa::no_link).is_refused(rule::OUT_066, base, 0) &&
               write(narrow, base, nullptr, 0, topa::link(base)).is_refused(rule::OUT_066, base, 0);
    });
}

TEST_CASE("a table without a link ends with STOP (OUT-056)") {
    CHECK_TWICE([](auto value) {
        region const open[] = {value(at_1M), value(at_64K)};
        region const early[] = {value(stop_64K), value(at_1M)};
        region const one[] = {value(at_64K)};
        return write(wide, 0x1000, open, topa::no_link).is_refused(rule::OUT_056, 0x1000, 2) &&
               write(wide, 0x1000, early, topa::no_link).is_refused(rule::OUT_056, 0x1000, 2) &&
               write(narrow, 0x1000, one, topa::no_link).is_refused(rule::OUT_056, 0x1000, 1);
    });
}

TEST_CASE("a table has at most 2^25 entries, including the link (OUT-046)") {
    // The number is checked first. The address is wrong as well, so an error about the address
    // means that the number is accepted.
    CHECK_TWICE([](auto value) {
        auto const write_at = [&](size_t count, ending end) {
            return topa::write_table(wide, 0x1001, nullptr, value(count), end, nullptr);
        };
        constexpr violation too_many{rule::OUT_046, {0x1001, 0x1FF'FFFF}};
        return write_at(0x200'0000, topa::no_link) ==
                   violation{rule::OUT_061, {0x1001, 0x200'0000}} &&
               write_at(0x200'0001, topa::no_link) == too_many &&
               write_at(0x1FF'FFFF, topa::link(0)) ==
                   violation{rule::OUT_061, {0x1001, 0x1FF'FFFF}} &&
               write_at(0x200'0000, topa::link(0)) == too_many &&
               write_at(~size_t{0}, topa::link(0)) == too_many &&
               write_at(~size_t{0}, topa::no_link) == too_many;
    });
}

TEST_CASE("without MENTRY a table is one region and a link to itself (OUT-067,068,100)") {
    CHECK_TWICE([](auto value) {
        region const one[] = {value(at_64K)};
        region const stops[] = {value(stop_64K)};
        return write(narrow, 0x1000, one, topa::link(0x1000)).is(0x1'0100U, 0x1001U) &&
               write(narrow, 0x1000, stops, topa::link(0x1000)).is(0x1'0110U, 0x1001U) &&
               write(narrow, 0x1000, stops, topa::no_link).is_refused(rule::OUT_067, 0x1000, 1) &&
               write(narrow, 0x1000, one, topa::link(0x2000)).is_refused(rule::OUT_068, 0x1000, 1);
    });
    CHECK_TWICE([](auto value) {
        region const two[] = {value(at_64K), value(stop_64K)};
        return write(narrow, 0x1000, two, topa::link(0x1000))
                   .is_refused(rule::OUT_067, 0x1000, 1) &&
               write(narrow, 0x1000, two, topa::no_link).is_refused(rule::OUT_067, 0x1000, 1) &&
               write(narrow, 0x1000, two, topa::link(0x2000)).is_refused(rule::OUT_067, 0x1000, 1);
    });
}

TEST_CASE("the first mistake is reported: the table, the regions in order, the end") {
    CHECK_TWICE([](auto value) {
        region const high{.base = value(uint64_t{1} << 52)};
        region const both[] = {at_1M, value(bad_64K), high};
        region const reordered[] = {at_1M, high, value(bad_64K)};
        return write(wide, 0x1000, both, topa::link(1)).is_refused(rule::OUT_062, 0x1000, 1) &&
               write(wide, 0x1000, reordered, topa::no_link).is_refused(rule::OUT_063, 0x1000, 1) &&
               write(wide, 0x1001, reordered, topa::link(1)).is_refused(rule::OUT_061, 0x1001, 3) &&
               write(wide, 0x1001, nullptr, 0, topa::link(1))
                   .is_refused(rule::OUT_061, 0x1001, 0) &&
               write(narrow, 0x1000, reordered, topa::no_link).is_refused(rule::OUT_063, 0x1000, 1);
    });
}

TEST_CASE("no entry of a written table breaks a rule") {
    CHECK_TWICE([](auto value) {
        region const all[] = {value(at_1M),
                              {.base = 0x7F'F800'0000,
                               .size = region_size::size_128M,
                               .interrupt = true,
                               .stop = true},
                              value(stop_64K)};
        limits const of{.width = {39}};
        auto const got = write(of, 0x1000, all, topa::link(0x7F'FFFF'F000));
        for (uint32_t i = 0; i < 4; ++i) {
            if (topa::broken_rule(got.to[i], {0x1000, i}, of) != rule::none) { return false; }
        }
        return got.why == violation{};
    });
}

// ------------------------------------------------------------------------------------ equality

TEST_CASE("tables, regions and findings are equal when every member is equal") {
    CHECK_TWICE([](auto value) {
        topa::table<2> const one = {{{0x1'0100}, {0x1001}}};
        auto const other = value(topa::table<2>{{{0x1'0100}, {0x2001}}});
        auto const found = value(violation{rule::OUT_062, {0x1000, 1}});
        return value(one) == one && other != one && value(at_1M) == at_1M && at_1M != at_64K &&
               at_64K != stop_64K && found == violation{rule::OUT_062, {0x1000, 1}} &&
               found != violation{rule::OUT_062, {0x1000, 0}} &&
               found != violation{rule::OUT_062, {0x2000, 1}} &&
               found != violation{rule::OUT_063, {0x1000, 1}};
    });
}

TEST_CASE("default regions, endings and findings are empty") {
    CHECK_TWICE([](auto value) {
        auto const wanted = value(region{});
        auto const found = value(violation{});
        auto const made = value(topa::built<2>{});
        return wanted.base == 0 && wanted.size == region_size::size_4K && !wanted.interrupt &&
               !wanted.stop && found.broken == rule::none && found.at == topa::position{} && made &&
               made.table.entries[0].raw == 0 && made.table.entries[1].raw == 0;
    });
    CHECK_TWICE([](auto value) {
        return !topa::built<2>{.violated = value(violation{rule::OUT_062, {0x1000, 0}})};
    });
}
