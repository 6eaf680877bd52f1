// SPDX-License-Identifier: BSL-1.0
// Operational errors of ToPA: which entry causes each, and what state remains.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

#include <initializer_list>

using namespace ptspec;
using namespace ptspec::test;
using engine::output_options;
using engine::write_result;
namespace preset = cpu::preset;

namespace {

/// The rule that an entry breaks. The output pointer reaches the entry in three ways: when TraceEn
/// becomes 1, from the previous region, and (for an output region) through an END. All three must
/// report the same rule.
constexpr auto fails_anywhere(uint64_t entry, cpu::capabilities const& of = preset::P_SKL) -> rule {
    word_at const words[] = {{A, X}, {A + 8, entry}, {A + 16, A | END}};
    rule const why = enabling_fails(A, pointers(1, 0), words, of);

    listed_memory memory{words};
    auto one = tracer_on(memory, of);
    one.place(A, pointers(0, 0xFFE));
    (void)one.enable_topa();
    auto const done = one.write(first_bytes(3));
    if (one.out.ended_by() != why) { return wrong_state; }
    bool const stays = one.has_failed(why) && done.stored == 2 && done.lost == 1 &&
                       done.last == X + 0xFFF && one.is_at(A, pointers(1, 0));
    if (why != rule::none && !stays) { return wrong_state; }
    if ((entry & END) != 0) { return why; }

    word_at const linked[] = {{A, X}, {A + 8, B | END}, {B, entry}, {B + 8, A | END}};
    listed_memory other{linked};
    auto two = tracer_on(other, of);
    two.place(A, pointers(0, 0xFFF));
    (void)two.enable_topa();
    (void)two.write(first_bytes(1));
    bool const moved = two.out.ended_by() == why && two.is_at(B, 0x7F);
    return moved ? why : wrong_state;
}

}  // namespace

TEST_CASE("no reserved bit of an entry may be set, END or not (OUT-060, PRG-088)") {
    CHECK_TWICE([](auto value) {
        for (unsigned const bit : {1U, 3U, 5U, 10U, 11U}) {
            uint64_t const reserved = value(uint64_t{1}) << bit;
            if (fails_anywhere(Y | reserved) != rule::OUT_060 ||
                fails_anywhere(B | END | reserved) != rule::OUT_060) {
                return false;
            }
        }
        return fails_anywhere(Y) == rule::none && fails_anywhere(Y | INT) == rule::none &&
               fails_anywhere(Y | STOP) == rule::none && fails_anywhere(A | END) == rule::none;
    });
}

TEST_CASE("a table must be aligned to 4 KB (OUT-061)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 0x80, X}, {A + 0x800, X}};
        for (uint64_t base = A + 0x80; base < A + 0x1000; base += 0x80) {
            if (enabling_fails(value(base), 0x7F, words) != rule::OUT_061) { return false; }
        }
        listed_memory memory{words};
        (void)traced_from(memory, value(A + 0x80));
        return memory.loads == 0 && enabling_fails(A, 0x7F, words) == rule::none;
    });
}

TEST_CASE("a region must be aligned to its own size (OUT-042,062, PRG-088)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t size = 0; size < 16; ++size) {
            uint64_t const aligned = value(uint64_t{4096}) << size;
            if (fails_anywhere(aligned | size << 6) != rule::none) { return false; }
        }
        for (uint64_t size = 1; size < 16; ++size) {
            uint64_t const lowest = value(uint64_t{4096});
            uint64_t const highest = uint64_t{2048} << size;
            if (fails_anywhere(lowest | size << 6) != rule::OUT_062 ||
                fails_anywhere(highest | size << 6) != rule::OUT_062) {
                return false;
            }
        }
        return true;
    });
    for (uint64_t size = 1; size < 16; ++size) {
        for (unsigned bit = 12; bit < 12 + size; ++bit) {
            CHECK(fails_anywhere(uint64_t{1} << bit | size << 6) == rule::OUT_062);
        }
    }
}

TEST_CASE("no entry may hold an address beyond MAXPHYADDR, END or not (OUT-063, PRG-088)") {
    auto const body = [](auto value, cpu::capabilities const& of, unsigned width) {
        for (unsigned bit = width - 2; bit < 64; ++bit) {
            rule const wanted = bit < width ? rule::none : rule::OUT_063;
            uint64_t const address = value(uint64_t{1}) << bit;
            if (fails_anywhere(address, of) != wanted) { return false; }
            if (bit >= width && fails_anywhere(address | END, of) != wanted) { return false; }
        }
        return true;
    };
    CHECK_TWICE([body](auto value) { return body(value, preset::P_SKL, 39); });
    CHECK_TWICE([body](auto value) { return body(value, preset::P_ATM, 42); });
    CHECK_TWICE([body](auto value) { return body(value, preset::P_FUT, 52); });
}

TEST_CASE("the offset must be inside the region when TraceEn becomes 1 (OUT-064, PRG-088)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 8, Z | size_8K}, {A + 16, B | END}, {B, X}};
        return enabling_fails(A, pointers(0, value(uint64_t{0x1000})), words) == rule::OUT_064 &&
               enabling_fails(A, pointers(0, 0xFFFF'FFFF), words) == rule::OUT_064 &&
               enabling_fails(A, pointers(1, 0x2000), words) == rule::OUT_064 &&
               enabling_fails(A, pointers(1, 0x1FFF), words) == rule::none &&
               enabling_fails(A, pointers(0, 0xFFF), words) == rule::none;
    });
}

TEST_CASE("an END must have neither INT nor STOP (OUT-065, PRG-088)") {
    CHECK_TWICE([](auto value) {
        return fails_anywhere(value(A) | END | INT) == rule::OUT_065 &&
               fails_anywhere(value(A) | END | STOP) == rule::OUT_065 &&
               fails_anywhere(value(A) | END | INT | STOP) == rule::OUT_065;
    });
}

TEST_CASE("entry 0 must not be an END, so no END links to another (OUT-047,066, PRG-088)") {
    CHECK_TWICE([](auto value) {
        word_at const first[] = {{A, value(B) | END}, {B, X}};
        word_at const linked[] = {{A, X}, {A + 8, B | END}, {B, A | END}};
        listed_memory memory{linked};
        auto one = tracer_on(memory);
        one.place(A, pointers(1, 5));
        (void)one.enable_topa();
        bool const moved = one.has_failed(rule::OUT_066) && one.is_at(B, 0x7F) && memory.loads == 2;
        auto two = tracer_on(memory);
        two.place(A, pointers(0, 0xFFF));
        (void)two.enable_topa();
        (void)two.write(first_bytes(1));
        return moved && two.has_failed(rule::OUT_066) && two.is_at(B, 0x7F) &&
               enabling_fails(A, 0x7F, first) == rule::OUT_066;
    });
    CHECK_TWICE([](auto value) {  // also not one that links to its own table
        word_at const words[] = {{value(A), A | END}};
        return enabling_fails(A, 0x7F, words) == rule::OUT_066;
    });
}

TEST_CASE("without MENTRY only entry 0 may be an output region (OUT-067,100, PRG-088)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 8, Y}, {A + 16, A | END}};
        listed_memory memory{words};
        auto one = tracer_on(memory, preset::P_BDW);
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        bool const in_entry_0 = one.is_running();
        auto const done = one.write(first_bytes(2));
        return in_entry_0 && one.has_failed(rule::OUT_067) && done.stored == 1 && done.lost == 1 &&
               one.is_at(A, pointers(1, 0)) &&
               enabling_fails(A, pointers(1, 4), words, preset::P_BDW) == rule::OUT_067 &&
               enabling_fails(A, pointers(1, 4), words, preset::P_SKL) == rule::none;
    });
}

TEST_CASE("without MENTRY an END must link to its own table (OUT-068,100, PRG-088)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 8, B | END}, {B, Y}};
        listed_memory memory{words};
        auto one = tracer_on(memory, preset::P_BDW);
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(1));
        return one.has_failed(rule::OUT_068) && one.is_at(A, pointers(1, 0)) &&
               enabling_fails(A, pointers(1, 0), words, preset::P_BDW) == rule::OUT_068 &&
               fails_anywhere(B | END, preset::P_SKL) == rule::none;
    });
    CHECK_TWICE([](auto value) {  // an END at any index
        word_at const words[] = {{A, X}, {A + 16, A | END}};
        listed_memory memory{words};
        auto one = tracer_on(memory, preset::P_BDW);
        one.place(A, pointers(value(uint64_t{2}), 7));
        (void)one.enable_topa();
        return one.is_running() && one.is_at(A, 0x7F);
    });
}

TEST_CASE("no entry may lie beyond MAXPHYADDR (OUT-071)") {
    CHECK_TWICE([](auto value) {
        uint64_t const table = value(uint64_t{0x7F'FFFF'F000});  // the last page below 2^39
        uint64_t const last = 0x7F'FFFF'FFF8;
        word_at const words[] = {{last, X}, {last + 8, Y}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.place(table, pointers(0x1FF, 0xFFF));
        (void)one.enable_topa();
        bool const below = one.is_running();
        auto const done = one.write(first_bytes(2));
        return below && one.has_failed(rule::OUT_071) && done.stored == 1 && done.lost == 1 &&
               one.is_at(table, pointers(0x200, 0)) && memory.loads == 1 &&
               enabling_fails(table, pointers(0x200, 0), words) == rule::OUT_071 &&
               enabling_fails(table, pointers(0x1FF'FFFF, 0), words) == rule::OUT_071 &&
               enabling_fails(table, pointers(0x200, 0), words, preset::P_ATM) == rule::none;
    });
}

TEST_CASE("errors are checked in order: the entry's address, its contents, the offset") {
    CHECK_TWICE([](auto value) {
        output_options smrr;
        smrr.restricted = {.smrr_physbase = {0}, .smrr_physmask = {0x800}, .extra = nullptr};
        topa::phys_range const above[] = {{0x80'0000'0000, 0x80'0000'FFFF}};
        output_options beyond;
        beyond.restricted.extra = above;
        beyond.restricted.extra_count = 1;
        word_at const words[] = {{A, X | 2}, {A + 8, X | 2 | END}, {0x80'0000'0000, 2}};
        uint64_t const top = 0x7F'FFFF'F000;
        uint64_t const far = value(pointers(0, 0xFFFF'FFFF));
        return enabling_fails(A + 0x80, far, words, preset::P_SKL, smrr) == rule::OUT_061 &&
               enabling_fails(top, pointers(0x200, 0), words, preset::P_SKL, beyond) ==
                   rule::OUT_071 &&
               enabling_fails(A, far, words, preset::P_SKL, smrr) == rule::OUT_091 &&
               enabling_fails(A, far, words) == rule::OUT_060;
    });
}
