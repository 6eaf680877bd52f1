// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/hostile.cpp.
#include <ptspec/topa/walk.hpp>

#include <support/check_twice.hpp>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace ptspec;
using topa::loaded_entry;
using topa::chain_shape;
using topa::distance;
using topa::entry;
using topa::limits;
using topa::position;
using topa::restricted_memory;
using topa::table_end;
using topa::table_walk;

namespace {

constexpr uint64_t top = 0xFFFF'FFFF'FFFF'FFFF;
constexpr limits skl{{39}, true};   // P-SKL
constexpr limits atm{{42}, true};   // P-ATM
constexpr limits bdw{{39}, false};  // P-BDW: one region and a link back
constexpr limits widest{{52}, true};

struct word {
    uint64_t address;
    uint64_t value;
};

/// Memory that holds only some words. It counts the reads of each.
template <size_t Count>
struct few_words {
    word words[Count];
    unsigned reads[Count] = {};
    unsigned faults = 0;

    constexpr explicit few_words(word const (&from)[Count]) {
        for (size_t i = 0; i < Count; ++i) { words[i] = from[i]; }
    }
    constexpr auto load(uint64_t address) -> port_value {
        for (size_t i = 0; i < Count; ++i) {
            if (words[i].address == address) {
                ++reads[i];
                return {true, words[i].value};
            }
        }
        ++faults;
        return {};
    }
    constexpr auto store(uint64_t, byte_view) -> size_t { return 0; }

    /// True when the words were read this many times.
    template <class... Numbers>
    [[nodiscard]] constexpr auto were_read(Numbers... expected) const -> bool {
        size_t i = 0;
        return sizeof...(Numbers) == Count && (... && (reads[i++] == unsigned{expected}));
    }
};

/// Two regions of 4 KB, 400000 and 401000, and a link back: the ring of most worked cases.
constexpr word ring_words[] = {{0x1'0000, 0x40'0000}, {0x1'0008, 0x40'1000}, {0x1'0010, 0x1'0001}};

constexpr auto is_region(loaded_entry const& got, position where, uint64_t raw) -> bool {
    return got && got.where == where && got.active.raw == raw && got.broken == rule::none &&
           got.fault == port_fault{};
}
constexpr auto is_error(loaded_entry const& got, rule broken, position where, uint64_t raw)
    -> bool {
    return !got && got.broken == broken && got.where == where && got.active.raw == raw &&
           got.fault == port_fault{};
}

/// The error of loading a single entry.
constexpr auto error_of(uint64_t raw) -> rule {
    few_words memory{{{0x1'0000, raw}}};
    return topa::load_entry(memory, {0x1'0000, 0, 0}, skl).broken;
}

}  // namespace

// ------------------------------------------------------------------------------------ load_entry

TEST_CASE("an entry is at table + 8 * index, and is read once (OUT-050)") {
    CHECK_TWICE([](auto value) {
        few_words memory{ring_words};
        auto const first = topa::load_entry(memory, value(position{0x1'0000, 0, 0}), skl);
        bool const one = is_region(first, {0x1'0000, 0, 0}, 0x40'0000) &&
                         memory.were_read(1U, 0U, 0U);
        auto const second = topa::load_entry(memory, value(position{0x1'0000, 1, 0}), skl);
        return one && is_region(second, {0x1'0000, 1, 0}, 0x40'1000) &&
               memory.were_read(1U, 1U, 0U) && memory.faults == 0;
    });
    CHECK_TWICE([](auto value) {  // the last possible entry, OC-36; the offset is unchanged
        few_words memory{{{0x1000'FFF8, value(uint64_t{0x50'0000})}}};
        auto const got = topa::load_entry(memory, {0x1'0000, 0x1FF'FFFF, 0xFFF}, skl);
        return is_region(got, {0x1'0000, 0x1FF'FFFF, 0xFFF}, 0x50'0000);
    });
}

TEST_CASE("END is followed to entry 0 of any table, and both are read once (OUT-047,054)") {
    CHECK_TWICE([](auto value) {  // OC-13: to the same table
        few_words memory{ring_words};
        auto const got = topa::load_entry(memory, value(position{0x1'0000, 2, 0}), skl);
        return is_region(got, {0x1'0000, 0, 0}, 0x40'0000) && memory.were_read(1U, 0U, 1U);
    });
    CHECK_TWICE([](auto value) {  // OC-15: to another table, whose entry has INT and STOP
        few_words memory{{{0x1'0010, value(uint64_t{0x2'0001})}, {0x2'0000, 0x3000'0054}}};
        auto const got = topa::load_entry(memory, {0x1'0000, 2, 0}, skl);
        return is_region(got, {0x2'0000, 0, 0}, 0x3000'0054) && memory.were_read(1U, 1U);
    });
    CHECK_TWICE([](auto value) {  // the Size of a link is ignored
        few_words memory{{{0x1'0010, value(uint64_t{0x2'03C1})}, {0x2'0000, 0x40'0000}}};
        return is_region(topa::load_entry(memory, {0x1'0000, 2, 7}, skl), {0x2'0000, 0, 0},
                         0x40'0000);
    });
}

TEST_CASE(
    "END in entry 0 is an error, also after an END, so END chains are impossible (OUT-047,066)") {
    CHECK_TWICE([](auto value) {  // OC-27
        few_words memory{{{0x1'0000, value(uint64_t{0x40'0001})}}};
        auto const got = topa::load_entry(memory, {0x1'0000, 0, 0}, skl);
        return is_error(got, rule::OUT_066, {0x1'0000, 0, 0}, 0x40'0001) && memory.were_read(1U);
    });
    CHECK_TWICE([](auto value) {  // OC-31: the position is on the second table already
        few_words memory{{{0x1'0008, value(uint64_t{0x2'0001})}, {0x2'0000, 0x1'0001}}};
        auto const got = topa::load_entry(memory, {0x1'0000, 1, 0}, skl);
        return is_error(got, rule::OUT_066, {0x2'0000, 0, 0}, 0x1'0001) && memory.were_read(1U, 1U);
    });
    CHECK_TWICE([](auto value) {  // a table that is a link to itself
        few_words memory{{{0x1'0000, value(uint64_t{0x1'0001})}}};
        auto const got = topa::load_entry(memory, {0x1'0000, 0, 0}, skl);
        return is_error(got, rule::OUT_066, {0x1'0000, 0, 0}, 0x1'0001) && memory.were_read(1U);
    });
}

TEST_CASE("a table that is not at a multiple of 4 KB is an error before it is read (OUT-061)") {
    CHECK_TWICE([](auto value) {  // OC-32
        few_words memory{{{0x1'0080, value(uint64_t{0x40'0000})}}};
        auto const got = topa::load_entry(memory, value(position{0x1'0080, 0, 0}), skl);
        return is_error(got, rule::OUT_061, {0x1'0080, 0, 0}, 0) && memory.were_read(0U);
    });
    CHECK_TWICE([](auto value) {
        few_words memory{ring_words};
        for (unsigned bit = 0; bit < 12; ++bit) {
            position const where{0x1'0000 | value(uint64_t{1}) << bit, 0, 0};
            if (topa::load_entry(memory, where, skl).broken != rule::OUT_061) { return false; }
        }
        return memory.were_read(0U, 0U, 0U) && memory.faults == 0;
    });
}

TEST_CASE("an entry at or above 2^MAXPHYADDR is an error before it is read (OUT-071)") {
    CHECK_TWICE([](auto value) {
        few_words memory{{{0x7F'FFFF'FFF8, 0x40'0000}, {0x80'0000'0000, 0x40'0000}}};
        position const last{0x7F'FFFF'F000, value(511U), 0};
        position const past_end{0x7F'FFFF'F000, value(512U), 0};
        return is_region(topa::load_entry(memory, last, skl), last, 0x40'0000) &&
               is_error(topa::load_entry(memory, past_end, skl), rule::OUT_071, past_end, 0) &&
               memory.were_read(1U, 0U) &&
               is_region(topa::load_entry(memory, past_end, atm), past_end, 0x40'0000);
    });
    CHECK_TWICE([](auto value) {  // at the top of 52 bits, and beyond
        few_words memory{{{0xF'FFFF'FFFF'FFF8, 0x40'0000}, {0x10'0000'0000'0000, 0x40'0000}}};
        uint64_t const table = value(uint64_t{0xF'FFFF'FFFF'F000});
        return topa::load_entry(memory, {table, 511, 0}, widest) &&
               topa::load_entry(memory, {table, 512, 0}, widest).broken == rule::OUT_071 &&
               topa::load_entry(memory, {table + 0x1000, 0, 0}, widest).broken == rule::OUT_071 &&
               topa::load_entry(memory, {top - 0xFFF, 0, 0}, widest).broken == rule::OUT_071 &&
               topa::load_entry(memory, {top - 0xFFF, 511, 0}, widest).broken == rule::OUT_071 &&
               topa::load_entry(memory, {top - 7, 0, 0}, widest).broken == rule::OUT_061 &&
               // 2^64 does not wrap to 0.
               topa::load_entry(memory, {top - 0xFFF, 512, 0}, widest).broken == rule::OUT_071 &&
               memory.were_read(1U, 0U) && memory.faults == 0;
    });
}

TEST_CASE("an entry in restricted memory is an error before it is read (OUT-091,112, PRG-095)") {
    CHECK_TWICE([](auto value) {  // OC-44
        restricted_memory const smrr{.smrr_physbase = {0x8000'0000},
                                     .smrr_physmask = {0xFF80'0800}};
        few_words memory{{{value(uint64_t{0x8000'1000}), 0x40'0000},
                          {0x7FFF'FFF8, 0x40'0000},
                          {0x8000'0000, 0x40'0000},
                          {0x8080'0000, 0x40'0000}}};
        return is_error(topa::load_entry(memory, {0x8000'1000, 0, 0}, atm, smrr), rule::OUT_091,
                        {0x8000'1000, 0, 0}, 0) &&
               topa::load_entry(memory, {0x7FFF'F000, 511, 0}, atm, smrr) &&
               topa::load_entry(memory, {0x7FFF'F000, 512, 0}, atm, smrr).broken == rule::OUT_091 &&
               topa::load_entry(memory, {0x8080'0000, 0, 0}, atm, smrr) &&
               memory.were_read(0U, 1U, 0U, 1U) &&
               topa::load_entry(memory, {0x8000'1000, 0, 0}, atm);
    });
    CHECK_TWICE([](auto value) {  // also after END
        topa::phys_range const extra[] = {{value(uint64_t{0x2'0000}), 0x2'0FFF}};
        restricted_memory const restricted{.extra = extra, .extra_count = 1};
        few_words memory{{{0x1'0008, 0x2'0001}, {0x2'0000, 0x40'0000}}};
        return is_error(topa::load_entry(memory, {0x1'0000, 1, 0}, skl, restricted), rule::OUT_091,
                        {0x2'0000, 0, 0}, 0) &&
               memory.were_read(1U, 0U);
    });
    CHECK_TWICE([](auto value) {  // for any of its eight bytes
        few_words memory{{{0x1'0008, 0x40'0000}}};
        for (uint64_t byte = value(uint64_t{0x1'0000}); byte < 0x1'0018; ++byte) {
            topa::phys_range const extra[] = {{byte, byte}};
            restricted_memory const restricted{.extra = extra, .extra_count = 1};
            bool const inside = 0x1'0008 <= byte && byte < 0x1'0010;
            auto const got = topa::load_entry(memory, {0x1'0000, 1, 0}, skl, restricted);
            if (got.broken != (inside ? rule::OUT_091 : rule::none)) { return false; }
        }
        return true;
    });
}

TEST_CASE("of several errors of one entry the one with the lowest number is returned") {
    CHECK_TWICE([](auto value) {
        topa::phys_range const all[] = {{0, top}};
        restricted_memory const restricted{.extra = all, .extra_count = 1};
        few_words memory{ring_words};
        return topa::load_entry(memory, {value(top), 0, 0}, skl, restricted).broken ==
                   rule::OUT_061 &&
               topa::load_entry(memory, {value(top - 0xFFF), 0, 0}, skl, restricted).broken ==
                   rule::OUT_071 &&
               topa::load_entry(memory, {value(uint64_t{0x1'0000}), 0, 0}, skl, restricted)
                       .broken == rule::OUT_091 &&
               error_of(value(top)) == rule::OUT_060 &&
               error_of(top & ~0xC2AULL) == rule::OUT_063 && error_of(0x1'0015) == rule::OUT_065;
    });
}

TEST_CASE("an entry that cannot be read is a fault, not an error, and can be retried") {
    CHECK_TWICE([](auto value) {
        few_words memory{{{0x1'0008, value(uint64_t{0x2'0001})}}};
        auto const first = topa::load_entry(memory, {0x1'0000, 2, 5}, skl);
        auto const second = topa::load_entry(memory, {0x1'0000, 1, 5}, skl);
        return !first && first.fault == port_fault{true, 0x1'0010} && first.broken == rule::none &&
               first.where == position{0x1'0000, 2, 5} && !second && second.broken == rule::none &&
               second.fault == port_fault{true, 0x2'0000} &&
               second.where == position{0x2'0000, 0, 0} && memory.were_read(1U) &&
               memory.faults == 2;
    });
}

TEST_CASE("a default loaded_entry has no error") {
    CHECK_TWICE([](auto value) {
        auto const it = value(loaded_entry{});
        return it && it.where == position{} && it.active.raw == 0 && it.broken == rule::none &&
               !it.fault.happened && !value(loaded_entry{.broken = rule::OUT_060}) &&
               !value(loaded_entry{.fault = {true, 0}});
    });
}

// ------------------------------------------------------------------------------------ enter

TEST_CASE("tracing starts at the position in the MSRs, also inside a region (OUT-006,058)") {
    CHECK_TWICE([](auto value) {  // OC-33
        few_words memory{ring_words};
        topa::ia32_rtit_output_base const base{value(uint64_t{0x1'0000})};
        topa::ia32_rtit_output_mask_ptrs const pointers{value(uint64_t{0x0000'0010'0000'00FF})};
        auto const got = topa::load_first_entry(memory, topa::position_in(base, pointers), skl);
        return is_region(got, {0x1'0000, 1, 0x10}, 0x40'1000) && topa::base_of(got.where) == base &&
               topa::mask_ptrs_of(got.where) == pointers &&
               topa::trace_store_phys_addr(got.where, got.active) == 0x40'1010;
    });
}

TEST_CASE("tracing may start on a link: it is followed, and the offset is ignored (OUT-057)") {
    CHECK_TWICE([](auto value) {  // OC-34
        few_words memory{ring_words};
        auto const got = topa::load_first_entry(memory, value(position{0x1'0000, 2, 0x999}), skl);
        auto const outside = topa::load_first_entry(memory,
                                                    value(position{0x1'0000, 2, 0xFFFF'FFFF}), skl);
        return is_region(got, {0x1'0000, 0, 0}, 0x40'0000) &&
               is_region(outside, {0x1'0000, 0, 0}, 0x40'0000);
    });
}

TEST_CASE("tracing cannot start outside the region (OUT-064)") {
    CHECK_TWICE([](auto value) {  // OC-35
        few_words memory{ring_words};
        return is_error(topa::load_first_entry(memory, value(position{0x1'0000, 0, 0x1000}), skl),
                        rule::OUT_064, {0x1'0000, 0, 0x1000}, 0x40'0000) &&
               topa::load_first_entry(memory, value(position{0x1'0000, 0, 0xFFF}), skl) &&
               topa::load_first_entry(memory, value(position{0x1'0000, 0, 0x1001}), skl).broken ==
                   rule::OUT_064 &&
               topa::load_first_entry(memory, value(position{0x1'0000, 1, 0xFFFF'FFFF}), skl)
                       .broken == rule::OUT_064 &&
               topa::load_entry(memory, value(position{0x1'0000, 0, 0x1000}), skl);
    });
    CHECK_TWICE([](auto value) {  // OC-18: a region with STOP is full
        few_words memory{{{0x2'0000, value(uint64_t{0x3000'0050})}}};
        return is_error(topa::load_first_entry(memory, {0x2'0000, 0, 0x2000}, skl), rule::OUT_064,
                        {0x2'0000, 0, 0x2000}, 0x3000'0050) &&
               topa::load_first_entry(memory, {0x2'0000, 0, 0x1FFF}, skl);
    });
}

TEST_CASE("load_first_entry() returns errors of the entry before those of the offset") {
    CHECK_TWICE([](auto value) {
        topa::phys_range const extra[] = {{0x2'0000, 0x2'0000}};
        restricted_memory const restricted{.extra = extra, .extra_count = 1};
        few_words memory{{{0x1'0000, value(uint64_t{0x40'0002})}, {0x2'0000, 0x40'0000}}};
        auto const broken = topa::load_first_entry(memory, {0x1'0000, 0, 0x1000}, skl);
        auto const fault = topa::load_first_entry(memory, {0x1'0000, 1, 0x1000}, skl);
        return is_error(broken, rule::OUT_060, {0x1'0000, 0, 0x1000}, 0x40'0002) &&
               fault.broken == rule::none && fault.fault == port_fault{true, 0x1'0008} &&
               topa::load_first_entry(memory, {0x2'0000, 0, 0}, skl, restricted).broken ==
                   rule::OUT_091 &&
               topa::load_first_entry(memory, {0x2'0000, 0, 0}, skl);
    });
}

// ------------------------------------------------------------------------------------ distances

namespace {

constexpr auto is_reached(distance const& got, uint64_t bytes) -> bool {
    return got && got.bytes == bytes && got.broken == rule::none && got.fault == port_fault{};
}

/// The manual's figure: X of 64 KB, Y of 4 KB, then table B with 8 KB and STOP (OUT-142).
constexpr word figure_words[] = {{0x1'0000, 0x1000'0100},
                                 {0x1'0008, 0x2000'0000},
                                 {0x1'0010, 0x2'0001},
                                 {0x2'0000, 0x3000'0050}};

}  // namespace

TEST_CASE("a distance is the sizes of all regions before the position plus its offset (PRG-129)") {
    CHECK_TWICE([](auto value) {
        few_words memory{figure_words};
        position const start = value(position{0x1'0000, 0, 0});
        return is_reached(topa::bytes_between(memory, start, {0x1'0000, 0, 0}, skl), 0) &&
               is_reached(topa::bytes_between(memory, start, {0x1'0000, 0, 0xFFFF}, skl), 0xFFFF) &&
               is_reached(topa::bytes_between(memory, start, {0x1'0000, 1, 5}, skl), 0x1'0005) &&
               is_reached(topa::bytes_between(memory, start, {0x2'0000, 0, 0x10}, skl), 0x1'1010) &&
               // STOP: up to the end of its region.
               is_reached(topa::bytes_between(memory, start, {0x2'0000, 0, 0x2000}, skl), 0x1'3000);
    });
}

TEST_CASE("the end of a full region is the start of the next (PRG-143)") {
    CHECK_TWICE([](auto value) {
        few_words memory{figure_words};
        position const start = value(position{0x1'0000, 0, 0x100});
        return is_reached(topa::bytes_between(memory, start, {0x1'0000, 1, 0}, skl), 0xFF00) &&
               is_reached(topa::bytes_between(memory, start, {0x2'0000, 0, 0}, skl), 0x1'0F00) &&
               // From the end of a region, or from a link, the distance to the next entry is 0.
               is_reached(
                   topa::bytes_between(memory, {0x1'0000, 0, 0x1'0000}, {0x1'0000, 1, 0}, skl),
                   0) &&
               is_reached(topa::bytes_between(memory, {0x1'0000, 2, 9}, {0x2'0000, 0, 0}, skl), 0);
    });
}

TEST_CASE("in a ring the same position has distance 0, and the byte before it the whole ring "
          "minus one (OUT-053,054, PRG-129)") {
    CHECK_TWICE([](auto value) {
        few_words memory{ring_words};
        position const here = value(position{0x1'0000, 1, 0x800});
        bool const found =
            is_reached(topa::bytes_between(memory, here, here, skl), 0) &&
            is_reached(topa::bytes_between(memory, here, {0x1'0000, 1, 0x801}, skl), 1) &&
            is_reached(topa::bytes_between(memory, here, {0x1'0000, 0, 0}, skl), 0x800) &&
            is_reached(topa::bytes_between(memory, here, {0x1'0000, 0, 0x234}, skl), 0xA34) &&
            is_reached(topa::bytes_between(memory, here, {0x1'0000, 1, 0}, skl), 0x1800) &&
            is_reached(topa::bytes_between(memory, here, {0x1'0000, 1, 0x7FF}, skl), 0x1FFF);
        return found;
    });
}

TEST_CASE("a walk wraps from the last possible entry of a table to its first (OUT-055)") {
    CHECK_TWICE([](auto value) {  // OC-36
        few_words memory{{{0x1'0000, 0x40'0000}, {0x1000'FFF8, value(uint64_t{0x50'0000})}}};
        position const last{0x1'0000, 0x1FF'FFFF, 0xFFF};
        return is_reached(topa::bytes_between(memory, last, {0x1'0000, 0, 0x20}, skl), 0x21);
    });
}

TEST_CASE("every entry on the way is read once") {
    CHECK_TWICE([](auto value) {
        few_words memory{figure_words};
        auto const got = topa::bytes_between(memory, value(position{0x1'0000, 0, 0}),
                                             {0x2'0000, 0, 1}, skl);
        return is_reached(got, 0x1'1001) && memory.were_read(1U, 1U, 1U, 1U);
    });
}

TEST_CASE("an invalid entry ends the walk, and the bytes before it are returned") {
    CHECK_TWICE([](auto value) {
        few_words memory{{{0x1'0000, 0x40'0000}, {0x1'0008, value(uint64_t{0x40'1002})}}};
        auto const got = topa::bytes_between(memory, {0x1'0000, 0, 0x10}, {0x1'0000, 2, 0}, skl);
        // Also when the target is the invalid entry.
        auto const there = topa::bytes_between(memory, {0x1'0000, 0, 0x10}, {0x1'0000, 1, 0}, skl);
        return !got && got.broken == rule::OUT_060 && got.bytes == 0xFF0 && !got.fault.happened &&
               !there && there.broken == rule::OUT_060 && there.bytes == 0xFF0;
    });
    CHECK_TWICE([](auto value) {  // of this processor
        few_words memory{{{0x1'0000, value(uint64_t{0x40'0000})}, {0x1'0008, 0x40'1000}}};
        auto const got = topa::bytes_between(memory, {0x1'0000, 0, 0}, {0x1'0000, 1, 0}, bdw);
        return !got && got.broken == rule::OUT_067 && got.bytes == 0x1000;
    });
    CHECK_TWICE([](auto value) {
        few_words memory{{{0x1'0000, value(uint64_t{0x40'0000})}}};
        auto const got = topa::bytes_between(memory, {0x1'0000, 0, 0}, {0x1'0000, 2, 0}, skl);
        return !got && got.fault == port_fault{true, 0x1'0008} && got.broken == rule::none &&
               got.bytes == 0x1000;
    });
}

TEST_CASE("an unreachable position is not reached, and the walk is bounded") {
    CHECK_TWICE([](auto value) {
        few_words memory{ring_words};
        auto const got = topa::bytes_between(memory, {0x1'0000, 0, 0}, {0x2'0000, 0, 0}, skl,
                                             value(uint64_t{10}));
        // It starts in one region, and walks over ten more.
        return !got && got.broken == rule::none && !got.fault.happened &&
               got.bytes == 11 * 0x1000 && memory.reads[0] == 6 && memory.reads[1] == 5 &&
               memory.reads[2] == 5;
    });
    CHECK_TWICE([](auto value) {  // as many regions as the ring has, to the byte before the start
        few_words memory{ring_words};
        position const from{0x1'0000, 0, 1};
        position const to{0x1'0000, 0, 0};
        return is_reached(topa::bytes_between(memory, from, to, skl, value(uint64_t{2})), 0x1FFF) &&
               !topa::bytes_between(memory, from, to, skl, value(uint64_t{1})) &&
               is_reached(topa::bytes_between(memory, to, from, skl, value(uint64_t{0})), 1);
    });
    few_words memory{ring_words};
    auto const unreachable = topa::bytes_between(memory, {0x1'0000, 0, 0}, {0x2'0000, 0, 0}, skl);
    CHECK(!unreachable);
    CHECK(unreachable.bytes == 0x1'0001 * uint64_t{0x1000});  // 65536 regions and the first one
}

TEST_CASE("a target after the end of its region is an error (OUT-052,064)") {
    CHECK_TWICE([](auto value) {
        few_words memory{ring_words};
        position const from{0x1'0000, 0, 0x10};
        auto const got = topa::bytes_between(memory, from, {0x1'0000, 1, value(0x1001U)}, skl);
        auto const far = topa::bytes_between(memory, from, {0x1'0000, 0, value(~0U)}, skl);
        return !got && got.broken == rule::OUT_064 && got.bytes == 0xFF0 && !got.fault.happened &&
               !far && far.broken == rule::OUT_064 && far.bytes == 0 &&
               is_reached(topa::bytes_between(memory, from, {0x1'0000, 1, value(0x1000U)}, skl),
                          0x1FF0);
    });
}

TEST_CASE("a distance converts to true only when the target was reached") {
    CHECK_TWICE([](auto value) {
        auto const it = value(distance{});
        return !it && it.bytes == 0 && it.broken == rule::none && !it.fault.happened &&
               value(distance{true, 0, rule::none, {}});
    });
}

// ------------------------------------------------------------------------------------ tables

namespace {

/// The entries that a walk visits.
struct visits {
    position at[16] = {};
    uint64_t raw[16] = {};
    size_t count = 0;

    constexpr void operator()(position where, entry current) {
        at[count] = where;
        raw[count++] = current.raw;
    }
    /// True when these words were visited in order from entry 0 of a table.
    template <class... Numbers>
    [[nodiscard]] constexpr auto are(uint64_t table, Numbers... wanted) const -> bool {
        uint32_t i = 0;
        auto const same = [&](uint64_t number) {
            bool const is = at[i] == position{table, i} && raw[i] == number;
            ++i;
            return is;
        };
        return count == sizeof...(Numbers) && (... && same(wanted));
    }
};

constexpr auto is(table_walk const& got, table_end how, position last, uint64_t next = 0) -> bool {
    return got.ended_by == how && got.last == last && got.next_table == next;
}

}  // namespace

TEST_CASE("a walk ends at END and returns the next table (OUT-045)") {
    CHECK_TWICE([](auto value) {
        few_words memory{figure_words};
        visits seen;
        auto const got = topa::for_each_entry(memory, value(uint64_t{0x1'0000}), 512, seen);
        return is(got, table_end::link, {0x1'0000, 2}, 0x2'0000) &&
               seen.are(0x1'0000, 0x1000'0100U, 0x2000'0000U, 0x2'0001U) &&
               memory.were_read(1U, 1U, 1U, 0U);
    });
}

TEST_CASE("a walk ends at STOP (OUT-045)") {
    CHECK_TWICE([](auto value) {
        few_words memory{{{0x2'0000, 0x40'0000}, {0x2'0008, 0x40'1010}, {0x2'0010, 0x1'0001}}};
        visits seen;
        auto const got = topa::for_each_entry(memory, value(uint64_t{0x2'0000}), 512, seen);
        return is(got, table_end::stop, {0x2'0000, 1}) &&
               seen.are(0x2'0000, 0x40'0000U, 0x40'1010U) && memory.were_read(1U, 1U, 0U);
    });
}

TEST_CASE("a walk only uses END and STOP and ignores other errors") {
    CHECK_TWICE([](auto value) {
        few_words memory{{{0x123, value(~uint64_t{0x11})}, {0x12B, ~uint64_t{0}}}};
        visits seen;
        auto const got = topa::for_each_entry(memory, value(uint64_t{0x123}), 512, seen);
        return is(got, table_end::link, {0x123, 1}, 0xFFFF'FFFF'FFFF'F000) &&
               seen.are(0x123, ~uint64_t{0x11}, ~uint64_t{0});
    });
    CHECK_TWICE([](auto value) {  // END in entry 0, linked to itself
        few_words memory{{{0x1000, value(uint64_t{0x1001})}}};
        visits seen;
        return is(topa::for_each_entry(memory, 0x1000, 512, seen), table_end::link, {0x1000, 0},
                  0x1000) &&
               seen.are(0x1000, 0x1001U);
    });
}

TEST_CASE("a walk reads at most `max_entries` entries (OUT-056)") {
    CHECK_TWICE([](auto value) {
        few_words memory{figure_words};
        visits seen;
        auto const two = topa::for_each_entry(memory, 0x1'0000, value(uint64_t{2}), seen);
        bool const limited = is(two, table_end::limit_reached, {0x1'0000, 2}) &&
                             seen.are(0x1'0000, 0x1000'0100U, 0x2000'0000U) &&
                             memory.were_read(1U, 1U, 0U, 0U);
        visits all;
        auto const three = topa::for_each_entry(memory, 0x1'0000, value(uint64_t{3}), all);
        visits none;
        auto const zero = topa::for_each_entry(memory, 0x1'0000, value(uint64_t{0}), none);
        return limited && is(three, table_end::link, {0x1'0000, 2}, 0x2'0000) && all.count == 3 &&
               is(zero, table_end::limit_reached, {0x1'0000, 0}) && none.count == 0;
    });
}

TEST_CASE("a walk ends where an entry cannot be read") {
    CHECK_TWICE([](auto value) {
        few_words memory{{{0x1'0000, value(uint64_t{0x40'0000})}}};
        visits seen;
        auto const got = topa::for_each_entry(memory, 0x1'0000, 512, seen);
        visits none;
        auto const unreadable = topa::for_each_entry(memory, 0x5000, 512, none);
        return is(got, table_end::unreadable, {0x1'0000, 1}) && seen.are(0x1'0000, 0x40'0000U) &&
               is(unreadable, table_end::unreadable, {0x5000, 0}) && none.count == 0;
    });
}

namespace {

/// Memory whose words are computed from their addresses. It counts the reads.
template <class Compute>
struct computed_words {
    Compute compute;
    uint64_t reads = 0;

    auto load(uint64_t address) -> port_value {
        ++reads;
        return compute(address);
    }
    auto store(uint64_t, byte_view) -> size_t { return 0; }
};
template <class Compute>
computed_words(Compute) -> computed_words<Compute>;

}  // namespace

TEST_CASE("a table without END and STOP wraps after the maximum of 2^25 entries (OUT-046,055)") {
    computed_words memory{[](uint64_t) { return port_value{true, 0x40'0000}; }};
    uint64_t seen = 0;
    bool in_order = true;
    auto const got = topa::for_each_entry(memory, 0x1'0000, top, [&](position at, entry) {
        in_order = in_order && at == position{0x1'0000, static_cast<uint32_t>(seen)};
        ++seen;
    });
    CHECK(is(got, table_end::wraps, {0x1'0000, 0x1FF'FFFF}));
    CHECK(seen == 0x200'0000);
    CHECK(memory.reads == 0x200'0000);
    CHECK(in_order);
    CHECK(topa::last_index == 0x1FF'FFFF);
}

TEST_CASE("a default table_walk is a link at entry 0") {
    CHECK_TWICE([](auto value) {
        return is(value(table_walk{}), table_end::link, {0, 0}) &&
               value(position{}) == position{0, 0};
    });
}

// ------------------------------------------------------------------------------------ chains

namespace {

constexpr auto is(chain_shape const& got, uint64_t tables, bool closes, uint64_t back_to) -> bool {
    return got.tables == tables && got.closes == closes && got.back_to == back_to;
}

}  // namespace

TEST_CASE("shape_of_chain() finds where a chain closes or ends (OUT-047)") {
    CHECK_TWICE([](auto value) {
        few_words ring{ring_words};
        few_words figure{figure_words};
        few_words two{{{0x1000, value(uint64_t{0x2001})}, {0x2000, 0x1001}}};
        few_words rho{{{0x1000, value(uint64_t{0x2001})}, {0x2000, 0x3001}, {0x3000, 0x2001}}};
        few_words hook{{{0x1000, value(uint64_t{0x2001})}, {0x2000, 0x2001}}};
        few_words nothing{{{0x1000, value(uint64_t{0x2001})}}};
        return is(topa::shape_of_chain(ring, 0x1'0000), 1, true, 0) &&
               is(topa::shape_of_chain(figure, 0x1'0000), 2, false, 0) &&
               is(topa::shape_of_chain(two, 0x1000), 2, true, 0) &&
               is(topa::shape_of_chain(rho, 0x1000), 3, true, 1) &&
               is(topa::shape_of_chain(hook, 0x1000), 2, true, 1) &&
               is(topa::shape_of_chain(nothing, 0x1000), 2, false, 0) &&
               is(topa::shape_of_chain(nothing, 0x7000), 1, false, 0);
    });
    CHECK_TWICE([](auto value) {
        auto const it = value(chain_shape{});
        return is(it, 0, false, 0);
    });
}

TEST_CASE("a table that wraps is a chain that closes on itself (OUT-055)") {
    // The second table has 2^25 regions.
    computed_words memory{
        [](uint64_t address) { return port_value{true, address == 0x1000 ? 0x2001U : 0U}; }};
    CHECK(is(topa::shape_of_chain(memory, 0x1000, {.max_entries = 0x200'0000, .max_tables = 1}), 1,
             false, 0));
    CHECK(is(topa::shape_of_chain(memory, 0x1000, {.max_entries = 0x200'0000}), 2, true, 1));
}

TEST_CASE("a table without END and STOP in its room ends the chain") {
    CHECK_TWICE([](auto value) {
        few_words ring{ring_words};
        return is(topa::shape_of_chain(ring, 0x1'0000, {.max_entries = value(uint64_t{2})}), 1,
                  false, 0) &&
               is(topa::shape_of_chain(ring, 0x1'0000, {.max_entries = value(uint64_t{3})}), 1,
                  true, 0);
    });
    // By default a table has the 512 entries of a page.
    computed_words memory{
        [](uint64_t address) { return port_value{true, address == 0x1FF8 ? 0x1001U : 0U}; }};
    CHECK(is(topa::shape_of_chain(memory, 0x1000), 1, true, 0));
    computed_words longer{
        [](uint64_t address) { return port_value{true, address == 0x2000 ? 0x1001U : 0U}; }};
    CHECK(is(topa::shape_of_chain(longer, 0x1000), 1, false, 0));
    CHECK(longer.reads == 512);
}

TEST_CASE("a chain that never ends is walked up to the bound") {
    // Each table is one link, to the next page.
    auto const next_page = [](uint64_t address) {
        return port_value{true, (address + 0x1000) | 1};
    };
    for (uint64_t const most : {1U, 2U, 3U, 4U, 100U}) {
        computed_words memory{next_page};
        CHECK(is(topa::shape_of_chain(memory, 0x1000, {.max_tables = most}), most, false, 0));
        CHECK(memory.reads == 3 * most);
    }
    computed_words memory{next_page};
    CHECK(is(topa::shape_of_chain(memory, 0x1000), 0x1'0000, false, 0));
    CHECK(memory.reads == 0x3'0000);
}

namespace {

/// A chain of tables as a list of links. 0 is a table with STOP, and a link to a page that is not
/// in the list leads to unreadable memory.
struct linked_tables {
    std::map<uint64_t, uint64_t> next;
    unsigned regions = 1;
    uint64_t reads = 0;

    auto load(uint64_t address) -> port_value {
        ++reads;
        auto const found = next.find(address & ~uint64_t{0xFFF});
        if (found == next.end()) { return {}; }
        uint64_t const index = address % 4096 / 8;
        bool const stops = found->second == 0;
        if (index + 1 == regions && stops) { return {true, 0x40'0010}; }
        return {true, index < regions ? 0x40'0000 : found->second | 1};
    }
    auto store(uint64_t, byte_view) -> size_t { return 0; }
};

/// Reference: the shape, from a list of all visited tables.
auto reference_shape(linked_tables const& of, uint64_t first) -> chain_shape {
    std::map<uint64_t, uint64_t> numbers;
    for (uint64_t table = first;;) {
        numbers.emplace(table, numbers.size());
        auto const found = of.next.find(table);
        if (found == of.next.end() || found->second == 0) { return {numbers.size(), false, 0}; }
        table = found->second;
        if (auto const seen = numbers.find(table); seen != numbers.end()) {
            return {numbers.size(), true, seen->second};
        }
    }
}

void check_shape(linked_tables chain, uint64_t first) {
    auto const expected = reference_shape(chain, first);
    chain.reads = 0;
    REQUIRE(
        is(topa::shape_of_chain(chain, first), expected.tables, expected.closes, expected.back_to));
    REQUIRE(chain.reads <= 4 * expected.tables * (chain.regions + 1));
    for (uint64_t most = 1; most < expected.tables + 3; most += 1 + expected.tables / 20) {
        bool const all = most >= expected.tables;
        chain.reads = 0;
        REQUIRE(is(topa::shape_of_chain(chain, first, {.max_tables = most}),
                   all ? expected.tables : most, all && expected.closes,
                   all ? expected.back_to : 0));
        REQUIRE(chain.reads <= 8 * most * (chain.regions + 1));
    }
}

}  // namespace

TEST_CASE("every chain of up to 40 tables has the shape of the reference (OUT-047)") {
    for (uint64_t tables = 1; tables <= 40; ++tables) {
        linked_tables chain;
        for (uint64_t t = 1; t < tables; ++t) { chain.next[t * 0x1000] = (t + 1) * 0x1000; }
        for (uint64_t back = 1; back <= tables + 1; ++back) {  // one more: unreadable memory
            chain.next[tables * 0x1000] = back * 0x1000;
            check_shape(chain, 0x1000);
        }
        chain.next[tables * 0x1000] = 0;
        check_shape(chain, 0x1000);
    }
}

TEST_CASE("random chains have the shape of the reference (OUT-047)") {
    std::mt19937_64 random{4};
    for (unsigned round = 0; round < 3000; ++round) {
        linked_tables chain;
        chain.regions = static_cast<unsigned>(1 + random() % 3);
        uint64_t const tables = 1 + random() % 200;
        uint64_t const ends = random() % 100;
        for (uint64_t t = 1; t <= tables; ++t) {
            uint64_t const kind = random() % 1000;
            uint64_t const to = 1 + random() % (tables + (kind % 50 == 0 ? 5 : 0));
            chain.next[t * 0x1000] = kind < ends ? 0 : to * 0x1000;
        }
        check_shape(chain, (1 + random() % (tables + 1)) * 0x1000);
    }
}

TEST_CASE("a walk terminates when a loop opens during the walk") {
    computed_words memory{[first = true](uint64_t address) mutable {
        uint64_t const next = first ? address : address + 0x1000;
        first = false;
        return port_value{true, next | 1};
    }};
    CHECK(is(topa::shape_of_chain(memory, 0x1000, {.max_tables = 5}), 5, false, 0));
    CHECK(memory.reads == 12);
}

TEST_CASE("a walk terminates when the port fails now and then") {
    std::mt19937_64 random{5};
    for (unsigned round = 0; round < 300; ++round) {
        uint64_t const fails_by = 2 + random() % 40;
        uint64_t const tables = 1 + random() % 20;
        computed_words memory{[&](uint64_t address) {
            uint64_t const table = address >> 12;
            bool const done = random() % fails_by != 0 && 1 <= table && table <= tables;
            return done ? port_value{true, (table % tables + 1) << 12 | 1} : port_value{};
        }};
        auto const got = topa::shape_of_chain(memory, 0x1000, {.max_tables = 50});
        REQUIRE(got.tables <= 50);
        REQUIRE(memory.reads <= 8 * 50);
    }
}

// ------------------------------------------------------------------------------------ reference

namespace {

/// Tables in memory: words, and 0 in every other word of the pages that have one.
struct few_pages {
    std::map<uint64_t, uint64_t> words;
    std::set<uint64_t> pages;
    uint64_t reads = 0;

    void put(uint64_t address, uint64_t word) {
        words[address] = word;
        pages.insert(address >> 12);
    }
    [[nodiscard]] auto has(uint64_t address) const -> bool {
        return pages.count(address >> 12) != 0;
    }
    [[nodiscard]] auto at(uint64_t address) const -> uint64_t {
        auto const found = words.find(address);
        return found == words.end() ? 0 : found->second;
    }
    auto load(uint64_t address) -> port_value {
        ++reads;
        return has(address) ? port_value{true, at(address)} : port_value{};
    }
    auto store(uint64_t, byte_view) -> size_t { return 0; }
};

/// The result of the reference walk over the regions.
struct walk_outcome {
    enum class how : uint8_t { reached, error, fault, bound };
    how end;
    uint64_t bytes;

    auto operator==(walk_outcome const&) const -> bool = default;
};

/// True when an entry is invalid (OUT-060..066, 071; with MENTRY).
auto is_broken(uint64_t table, uint64_t index, uint64_t word) -> bool {
    uint64_t const limit = uint64_t{1} << 39;
    uint64_t const base = word & ~uint64_t{0xFFF};
    bool const end = word % 2 == 1;
    bool const reserved = (word & 0xC2A) != 0;
    bool const region_askew = !end && base % (uint64_t{4096} << (word >> 6) % 16) != 0;
    bool const bad_link = end && (index == 0 || (word & 0x14) != 0);
    return table % 4096 != 0 || table + 8 * index >= limit || reserved || region_askew ||
           base >= limit || bad_link;
}

auto reference_distance(few_pages const& memory, position from, position to, uint64_t most)
    -> walk_outcome {
    uint64_t bytes = 0;
    uint64_t table = from.table.value;
    uint64_t index = from.index;
    uint64_t offset = from.offset;
    for (uint64_t regions = 0; regions <= most;) {
        if (table % 4096 != 0 || table + 8 * index >= uint64_t{1} << 39) {
            return {walk_outcome::how::error, bytes};
        }
        if (!memory.has(table + 8 * index)) { return {walk_outcome::how::fault, bytes}; }
        uint64_t const word = memory.at(table + 8 * index);
        if (is_broken(table, index, word)) { return {walk_outcome::how::error, bytes}; }
        if (word % 2 == 1) {
            table = word & ~uint64_t{0xFFF};
            index = 0;
            offset = 0;
            continue;
        }
        uint64_t const size = uint64_t{4096} << (word >> 6) % 16;
        if (table == to.table && index == to.index && offset <= to.offset) {
            return {walk_outcome::how::reached, bytes + to.offset - offset};
        }
        bytes += offset < size ? size - offset : 0;
        ++regions;
        index = (index + 1) % 0x200'0000;
        offset = 0;
    }
    return {walk_outcome::how::bound, bytes};
}

}  // namespace

TEST_CASE("distances in random tables match the reference walk (OUT-053..055, PRG-129)") {
    std::mt19937_64 random{6};
    auto const below = [&](uint64_t count) { return random() % count; };
    std::map<walk_outcome::how, unsigned> seen;
    for (unsigned round = 0; round < 4000; ++round) {
        few_pages memory;
        uint64_t const tables = 1 + below(4);
        std::vector<position> places;
        for (uint64_t t = 1; t <= tables; ++t) {
            uint64_t const regions = 1 + below(4);
            uint64_t const table = t << 12;
            for (uint64_t i = 0; i < regions; ++i) {
                uint64_t const size = below(4) == 0 ? below(16) : 0;
                uint64_t word = below(64) << 27 | size << 6;
                if (below(40) == 0) { word ^= uint64_t{1} << below(64); }
                memory.put(table + 8 * i, word);
                places.push_back({table, static_cast<uint32_t>(i),
                                  static_cast<uint32_t>(below(uint64_t{4096} << size))});
            }
            uint64_t end = (1 + below(tables)) << 12 | 1;
            if (below(20) == 0) { end ^= uint64_t{1} << below(64); }
            if (below(30) == 0) { end = 0; }
            memory.put(table + 8 * regions, end);
            places.push_back({table, static_cast<uint32_t>(regions), 0});
        }
        position const from = places[static_cast<size_t>(below(places.size()))];
        position to = places[static_cast<size_t>(below(places.size()))];
        if (below(4) == 0) { to = {from.table, from.index, static_cast<uint32_t>(below(4096))}; }
        uint64_t const most = below(4) == 0 ? below(6) : 100;

        auto const expected = reference_distance(memory, from, to, most);
        auto const got = topa::bytes_between(memory, from, to, skl, most);
        auto const how = got                        ? walk_outcome::how::reached
                         : got.broken != rule::none ? walk_outcome::how::error
                         : got.fault.happened       ? walk_outcome::how::fault
                                                    : walk_outcome::how::bound;
        ++seen[how];
        REQUIRE(walk_outcome{how, got.bytes} == expected);
        REQUIRE(memory.reads <= 2 * (most + 1));
    }
    CHECK(seen.size() == 4);
    for (auto const& [how, count] : seen) { CHECK(count > 50); }
}
