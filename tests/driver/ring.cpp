// SPDX-License-Identifier: BSL-1.0
#include <ptspec/driver/ring.hpp>

#include <support/check_twice.hpp>

#include <vector>

using namespace ptspec;
using driver::buffer_recipe;
using topa::entry;
using topa::region_size;

namespace {

constexpr uint64_t table = 0x1000'0000;
constexpr topa::limits many{{39}, true};
constexpr topa::limits single{{39}, false};

constexpr uint64_t INT = 4;
constexpr uint64_t STOP = 16;
constexpr uint64_t END = 1;

/// A ring of three regions: 4 KB, 8 KB, 4 KB.
struct three {
    topa::region regions[3] = {{0x2000'0000, region_size::size_4K},
                               {0x2000'2000, region_size::size_8K},
                               {0x2000'8000, region_size::size_4K}};
    entry entries[4] = {};
    driver::table_page page{table, entries};

    constexpr auto build(buffer_recipe how, topa::limits of = many,
                         topa::output_hazards const& hazards = {}) -> driver::built_ring {
        return driver::build_ring(how, regions, 3, &page, 1, of, hazards);
    }
    constexpr auto raw_is(uint64_t a, uint64_t b, uint64_t c, uint64_t d) const -> bool {
        return entries[0].raw == a && entries[1].raw == b && entries[2].raw == c &&
               entries[3].raw == d;
    }
};

constexpr uint64_t R0 = 0x2000'0000;
constexpr uint64_t R1 = 0x2000'2000 | 1 << 6;
constexpr uint64_t R2 = 0x2000'8000;

}  // namespace

TEST_CASE("each recipe places INT, STOP and END as its row says (PRG-128)") {
    CHECK_TWICE([](auto value) {
        auto const made = [&](buffer_recipe how, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
            three now;
            now.regions[0].stop = value(true);  // marks of the request are ignored
            return static_cast<bool>(now.build(how)) && now.raw_is(a, b, c, d);
        };
        return made(buffer_recipe::circular, R0, R1, R2, table | END) &&
               made(buffer_recipe::streaming, R0, R1 | INT, R2 | INT | STOP, table | END) &&
               made(buffer_recipe::stop_on_full, R0, R1, R2 | STOP, 0) &&
               made(buffer_recipe::interrupt_on_full, R0, R1 | INT, R2, table | END) &&
               made(buffer_recipe::interrupt_and_stop, R0, R1 | INT, R2 | INT | STOP, 0);
    });
}

TEST_CASE("PC-27: on single-entry parts one region links to its own table (PRG-090,126)") {
    CHECK_TWICE([](auto value) {
        topa::region const one{value(uint64_t{0x2000'0000}), region_size::size_4M};
        entry entries[2] = {};
        driver::table_page const page{table, entries};
        auto const build = [&](buffer_recipe how) {
            auto const made = driver::build_ring(how, &one, 1, &page, 1, single);
            return made && made.ring.has_link;
        };
        bool const circular = build(buffer_recipe::circular) &&
                              entries[0].raw == (0x2000'0000 | 10 << 6) &&
                              entries[1].raw == (table | END);
        bool const stops = build(buffer_recipe::stop_on_full) &&
                           entries[0].raw == (0x2000'0000 | 10 << 6 | STOP);
        bool const both = build(buffer_recipe::interrupt_and_stop) &&
                          entries[0].raw == (0x2000'0000 | 10 << 6 | STOP | INT);
        three more;
        return circular && stops && both &&
               more.build(buffer_recipe::circular, single).broken == rule::OUT_067;
    });
}

TEST_CASE("PC-41: 1 MB of 4 KB regions is one table of 256 entries and END (PRG-128)") {
    std::vector<topa::region> regions;
    for (uint64_t i = 0; i < 256; ++i) { regions.push_back({0x2000'0000 + i * 4096}); }
    std::vector<entry> entries(512);
    driver::table_page const page{table, entries.data()};
    auto const made = driver::build_ring(buffer_recipe::circular, regions.data(), regions.size(),
                                         &page, 1, many);
    REQUIRE(made);
    CHECK(made.ring.bytes == 0x10'0000);
    CHECK(entries[255].raw == 0x200F'F000);
    CHECK(entries[256].raw == (table | END));
    auto const start = driver::output_at_start(made.ring);
    CHECK(start.base.raw == table);
    CHECK(start.mask_ptrs.raw == 0x7F);
}

TEST_CASE("PC-42: 1024 regions take tables of 511, 511 and 2, linked in a circle (PRG-128)") {
    std::vector<topa::region> regions;
    for (uint64_t i = 0; i < 1024; ++i) { regions.push_back({0x2000'0000 + i * 4096}); }
    std::vector<entry> entries[3] = {std::vector<entry>(512), std::vector<entry>(512),
                                     std::vector<entry>(512)};
    driver::table_page const pages[] = {{table, entries[0].data()},
                                        {table + 0x1000, entries[1].data()},
                                        {table + 0x2000, entries[2].data()}};
    auto const made = driver::build_ring(buffer_recipe::circular, regions.data(), regions.size(),
                                         pages, 3, many);
    REQUIRE(made);
    CHECK(made.ring.table_count == 3);
    CHECK(entries[0][510].raw == 0x2000'0000 + 510 * 4096);
    CHECK(entries[0][511].raw == ((table + 0x1000) | END));
    CHECK(entries[1][511].raw == ((table + 0x2000) | END));
    CHECK(entries[2][1].raw == 0x2000'0000 + 1023 * 4096);
    CHECK(entries[2][2].raw == (table | END));
    CHECK(
        driver::build_ring(buffer_recipe::circular, regions.data(), regions.size(), pages, 2, many)
            .broken == rule::PRG_128);
    // Every offset is found again, in each table.
    for (uint64_t offset = 0; offset < made.ring.bytes; offset += 0x777) {
        auto const at = driver::offset_of(made.ring, driver::output_at(made.ring, offset));
        CHECK((at && at.offset == offset && !at.at_region_end));
    }
}

TEST_CASE("a ring that cannot be built names the rule and the region (PRG-088,089,096)") {
    CHECK_TWICE([](auto value) {
        three misaligned;
        misaligned.regions[1].base = value(uint64_t{0x2000'1000});
        auto const second = misaligned.build(buffer_recipe::circular);
        three high;
        high.regions[2].base = uint64_t{1} << 39;
        auto const third = high.build(buffer_recipe::circular);
        three low;
        low.page.base = table + 8;
        three apic;
        apic.regions[0].base = 0xFEE0'0000;
        topa::output_hazards hazards;
        hazards.apic = {0xFEE0'0900};
        auto const on_apic = apic.build(buffer_recipe::circular, many, hazards);
        hazards = {};
        hazards.restricted.smrr_physbase = {0x1000'0006};
        hazards.restricted.smrr_physmask = {0xFF80'0800};
        three in_smrr;
        auto const table_in_smrr = in_smrr.build(buffer_recipe::circular, many, hazards);
        topa::region const one{0x2000'0000};
        entry entries[3] = {};
        driver::table_page const page{table, entries};
        auto const alone = driver::build_ring(buffer_recipe::interrupt_on_full, &one, 1, &page, 1,
                                              many);
        topa::region const two[] = {{0x2000'0000}, {0x2000'1000}};
        auto const pair = driver::build_ring(buffer_recipe::interrupt_on_full, two, 2, &page, 1,
                                             many);
        return !second && second.broken == rule::OUT_062 && second.region == 1 &&
               third.broken == rule::OUT_063 && third.region == 2 &&
               low.build(buffer_recipe::circular).broken == rule::OUT_061 &&
               on_apic.broken == rule::OUT_113 && on_apic.region == 0 &&
               table_in_smrr.broken == rule::OUT_091 && alone.broken == rule::OUT_093 && pair &&
               driver::build_ring(buffer_recipe::circular, &one, 0, &page, 1, many).broken ==
                   rule::OUT_066 &&
               driver::build_ring(buffer_recipe::circular, &one, 1, &page, 0, many).broken ==
                   rule::PRG_128 &&
               driver::build_ring(buffer_recipe::circular, &one, 1, &page, 1, many, {}, 1).broken ==
                   rule::PRG_128;
    });
}

TEST_CASE("a position is an offset: the bytes of the regions before it and in it (PRG-129,143)") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const ring = now.build(buffer_recipe::circular).ring;
        auto const offset = [&](uint64_t index, uint64_t in_region) {
            return driver::offset_of(ring,
                                     driver::in_topa({.table = table,
                                                      .index = static_cast<uint32_t>(index),
                                                      .offset = static_cast<uint32_t>(in_region)}));
        };
        return offset(0, 0).offset == 0 && offset(1, 0).offset == 0x1000 &&
               offset(1, value(uint64_t{0x1234})).offset == 0x2234 &&
               offset(1, 0x1234).region == 1 && offset(2, 0xFFF).offset == 0x3FFF &&
               offset(2, 0x1000).offset == 0x4000 && offset(2, 0x1000).at_region_end &&
               !offset(1, 0x1FFF).at_region_end && !offset(1, 0x2001).found &&
               offset(3, 0).offset == 0 && offset(3, 0).region == 0 && !offset(3, 1).found &&
               !offset(4, 0).found &&
               !driver::offset_of(ring, driver::in_topa({.table = table + 0x1000})).found;
    });
}

TEST_CASE("an offset is a position again, modulo the ring (PRG-086,129)") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const ring = now.build(buffer_recipe::circular).ring;
        auto const at = [&](uint64_t offset) {
            return driver::output_at(ring, offset).mask_ptrs.raw;
        };
        return at(value(uint64_t{0})) == 0x7F && at(0xFFF) == 0xFFF'0000'007F &&
               at(0x1000) == 0xFF && at(0x2FFF) == 0x1FFF'0000'00FF && at(0x3000) == 0x17F &&
               at(0x4000) == 0x7F && at(0x9004) == 0x4'0000'00FF &&
               driver::region_at(ring, 0x3000).region == 2 &&
               driver::region_at(ring, 0x4FFF).region == 0;
    });
}

TEST_CASE("marks of a streaming ring: STOP before the oldest unread byte, INT before it "
          "(PRG-121,128)") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const ring = now.build(buffer_recipe::streaming).ring;
        auto const marks = [&](uint64_t head, uint64_t unread, uint64_t wake_up, uint64_t a,
                               uint64_t b, uint64_t c) {
            return driver::set_marks(ring,
                                     {.head = head, .unread = unread, .wake_up_bytes = wake_up}) &&
                   now.raw_is(R0 | a, R1 | b, R2 | c, table | END);
        };
        // Nothing is unread: tracing may continue up to the region before the current one.
        return marks(value(uint64_t{0}), 0, 0x1000, INT, 0, STOP | INT) &&
               marks(0, 0, 0x1001, 0, INT, STOP | INT) && marks(0, 0, 0x9000, 0, INT, STOP | INT) &&
               marks(0x1800, 0, 1, STOP | INT, INT, 0) &&
               // The first region is unread: STOP on the last.
               marks(0x1000, 0x1000, 0x9000, 0, INT, STOP | INT) &&
               marks(0x3000, 0x2000, 1, STOP | INT, 0, INT) &&
               // All but the current region is unread.
               marks(0x1000, 0x2000, 0x9000, 0, STOP | INT, 0);
    });
}

TEST_CASE("marks are refused where unread bytes follow in the current region") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const ring = now.build(buffer_recipe::streaming).ring;
        // 100H bytes of region 1 are free, and the rest of it is unread.
        return !driver::set_marks(ring,
                                  {.head = value(uint64_t{0x1800}), .unread = 0x4000 - 0x100}) &&
               !driver::set_marks(ring, {.unread = 0x4000}) &&
               !driver::set_marks(ring, {.unread = 0x4001}) &&
               now.raw_is(R0, R1 | INT, R2 | INT | STOP, table | END);
    });
}

TEST_CASE("tables may have two entries, and as many regions as they hold exactly (PRG-128)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {{value(uint64_t{0x2000'0000})}, {0x2000'1000}};
        entry entries[2][2] = {};
        driver::table_page const pages[] = {{table, entries[0]}, {table + 0x1000, entries[1]}};
        auto const chain = driver::build_ring(buffer_recipe::circular, regions, 2, pages, 2, many,
                                              {}, 2);
        bool const two = chain && chain.ring.table_count == 2 && entries[0][0].raw == 0x2000'0000 &&
                         entries[0][1].raw == ((table + 0x1000) | END) &&
                         entries[1][0].raw == 0x2000'1000 && entries[1][1].raw == (table | END);
        entry exact[3] = {};
        driver::table_page const page{table, exact};
        auto const one = driver::build_ring(buffer_recipe::circular, regions, 2, &page, 1, many, {},
                                            3);
        return two && one && one.ring.table_count == 1 && exact[2].raw == (table | END) &&
               driver::ring_offset{}.offset == 0;
    });
}

TEST_CASE("the interrupt is in the region where the wanted bytes end (PRG-121)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {
            {0x2000'0000}, {0x2000'1000}, {0x2000'2000}, {0x2000'3000}, {0x2000'4000}};
        entry entries[6] = {};
        driver::table_page const page{table, entries};
        auto const ring =
            driver::build_ring(buffer_recipe::streaming, regions, 5, &page, 1, many).ring;
        auto const wakes_in = [&](uint64_t bytes) {
            (void)driver::set_marks(ring, {.head = 0x800, .wake_up_bytes = bytes});
            for (size_t i = 0; i < 4; ++i) {
                if (entries[i].get<entry::INT>()) { return i; }
            }
            return size_t{9};
        };
        return wakes_in(value(uint64_t{0x800})) == 0 && wakes_in(0x801) == 1 &&
               wakes_in(0x1800) == 1 && wakes_in(0x1801) == 2 && wakes_in(0x2801) == 3 &&
               entries[4].get<entry::STOP>();
    });
}

TEST_CASE("on single-entry parts a buffer that is read has a table for each region (PRG-090,126)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {
            {value(uint64_t{0x2000'0000})}, {0x2000'2000, region_size::size_8K}, {0x2000'8000}};
        entry entries[3][2] = {};
        driver::table_page const pages[] = {
            {table, entries[0]}, {table + 0x1000, entries[1]}, {table + 0x2000, entries[2]}};
        auto const made = driver::build_ring(buffer_recipe::streaming, regions, 3, pages, 3,
                                             single);
        auto const& ring = made.ring;
        bool const links = entries[0][1].raw == (table | END) &&
                           entries[1][1].raw == ((table + 0x1000) | END) &&
                           entries[2][1].raw == ((table + 0x2000) | END);
        bool const marks = entries[0][0].raw == (0x2000'0000 | STOP | INT) &&
                           entries[1][0].raw == (0x2000'2000 | 1 << 6 | STOP | INT) &&
                           entries[2][0].raw == (0x2000'8000 | STOP | INT);
        auto const second = driver::offset_of(
            ring, driver::in_topa({.table = table + 0x1000, .index = 0, .offset = 0x123}));
        auto const at_link = driver::offset_of(
            ring, driver::in_topa({.table = table + 0x1000, .index = 1, .offset = 0}));
        return made && ring.is_stepped && ring.table_count == 3 && ring.bytes == 0x4000 && links &&
               marks && second.offset == 0x1123 && at_link.offset == 0x1000 &&
               driver::output_at(ring, 0x3004) ==
                   driver::in_topa({.table = table + 0x2000, .index = 0, .offset = 4}) &&
               // The marks of these tables are constant.
               driver::set_marks(ring, {.head = 0x1000, .unread = 0x1000}) &&
               entries[1][0].get<entry::INT>() &&
               !driver::set_marks(ring, {.head = 0x1000, .unread = 0x3800}) &&
               driver::build_ring(buffer_recipe::streaming, regions, 3, pages, 2, single).broken ==
                   rule::PRG_128;
    });
}

TEST_CASE("an upcoming region becomes a link; the current one is refused (PRG-124, OUT-093)") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const ring = now.build(buffer_recipe::circular).ring;
        auto const in_first = driver::in_topa({.table = table, .index = 0, .offset = 5});
        auto const in_third = driver::in_topa({.table = table, .index = 2, .offset = 5});
        bool const refused = driver::link_instead(ring, value(size_t{2}), table, in_third) ==
                                 rule::OUT_093 &&
                             driver::link_instead(ring, 0, table, in_third) == rule::OUT_066 &&
                             driver::link_instead(ring, 2, table + 8, in_first) == rule::OUT_061 &&
                             now.raw_is(R0, R1, R2, table | END);
        return refused && driver::link_instead(ring, 2, 0x5000, in_first) == rule::none &&
               now.raw_is(R0, R1, 0x5000 | END, table | END);
    });
}

TEST_CASE("a ring that is built again with more regions keeps its positions (PRG-124)") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const build = [&](size_t count) {
            return driver::build_ring(buffer_recipe::circular, now.regions, count, &now.page, 1,
                                      many)
                .ring;
        };
        auto const before = build(value(size_t{2}));
        auto const at = driver::output_at(before, 0x1800);
        bool const small = now.raw_is(R0, R1, table | END, 0);
        auto const after = build(3);
        return small && now.raw_is(R0, R1, R2, table | END) &&
               driver::offset_of(after, at).offset == 0x1800 && after.bytes == 0x4000;
    });
}

TEST_CASE("results without a ring say so, and a place without one is the start") {
    CHECK_TWICE([](auto value) {
        driver::ring_offset const nowhere{};
        driver::region_offset const start{};
        driver::built_ring const none{.broken = value(rule::PRG_128)};
        return !nowhere && nowhere.offset == 0 && nowhere.region == 0 && !nowhere.at_region_end &&
               start.region == 0 && start.offset == 0 && !none && none.region == 0;
    });
}

TEST_CASE("the link of a table is the position of the next region (PRG-085,143)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {
            {0x2000'0000}, {0x2000'2000}, {value(uint64_t{0x2000'4000})}};
        entry entries[2][3] = {};
        driver::table_page const pages[] = {{table, entries[0]}, {table + 0x1000, entries[1]}};
        auto const ring =
            driver::build_ring(buffer_recipe::circular, regions, 3, pages, 2, many, {}, 3).ring;
        auto const at = driver::offset_of(
            ring, driver::in_topa({.table = table, .index = 2, .offset = 0}));
        auto const at_last = driver::offset_of(
            ring, driver::in_topa({.table = table + 0x1000, .index = 1, .offset = 0}));
        return at && at.region == 2 && at.offset == 0x2000 && at_last && at_last.region == 0 &&
               at_last.offset == 0;
    });
}

TEST_CASE("a ring need not have a power of two bytes (OUT-094)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {{0x2000'0000}, {0x2000'2000}, {0x2000'4000}};
        entry entries[4] = {};
        driver::table_page const page{table, entries};
        auto const ring =
            driver::build_ring(buffer_recipe::streaming, regions, 3, &page, 1, many).ring;
        // The position is in region 0, and the bytes of region 2 and of the start of 0 are unread.
        bool const set = driver::set_marks(
            ring, {.head = value(uint64_t{0x100}), .unread = 0x1100, .wake_up_bytes = 0x1000});
        return set && entries[1].raw == (0x2000'2000 | STOP | INT) &&
               entries[0].raw == (0x2000'0000 | INT) && entries[2].raw == 0x2000'4000 &&
               driver::set_marks(
                   ring, {.head = 0x3000 + 0x100, .unread = 0x1100, .wake_up_bytes = 0x1000}) &&
               entries[1].raw == (0x2000'2000 | STOP | INT);
    });
}
