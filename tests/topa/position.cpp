// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/position.hpp>

#include <support/check_twice.hpp>

#include <type_traits>

using namespace ptspec;
using base_register = reg::ia32_rtit_output_base;
using pointers = reg::ia32_rtit_output_mask_ptrs;
using topa::position;

namespace {

constexpr auto position_from(uint64_t base, uint64_t mask_ptrs) -> position {
    return topa::position_in(base_register{base}, pointers{mask_ptrs});
}

constexpr topa::entry four_kb{0x40'0000};

}  // namespace

// ------------------------------------------------------------------------------------ the MSRs

TEST_CASE("the MSRs hold the table, the number of the entry and the offset (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return position_from(value(uint64_t{0x1'0000}), value(uint64_t{0x0000'000A'0000'03FF})) ==
                   position{0x1'0000, 7, 0xA} &&
               position_from(value(uint64_t{0x1'0080}), value(uint64_t{0})) ==
                   position{0x1'0080, 0, 0} &&
               position_from(value(uint64_t{0}), value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})) ==
                   position{0, 0x1FF'FFFF, 0xFFFF'FFFF} &&
               position_from(value(uint64_t{0xF'FFFF'FFFF'F07F}), 0x7F) ==
                   position{0xF'FFFF'FFFF'F000, 0, 0};
    });
    CHECK_TWICE([](auto value) {
        return topa::mask_ptrs_of(value(position{0x1'0000, 7, 0xA})).raw == 0x0000'000A'0000'03FF &&
               topa::mask_ptrs_of(value(position{})).raw == 0x7F &&
               topa::mask_ptrs_of(value(position{0, 0x1FF'FFFF, 0xFFFF'FFFF})).raw ==
                   0xFFFF'FFFF'FFFF'FFFF;
    });
}

TEST_CASE("the base register holds the table's address without its bits 6:0 (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return topa::base_of(value(position{0x1'0000, 7, 0xA})).raw == 0x1'0000 &&
               topa::base_of(value(position{0x1'00FF, 0, 0})).raw == 0x1'0080 &&
               topa::base_of(value(position{0xF'FFFF'FFFF'F000, 0, 0})).raw == 0xF'FFFF'FFFF'F000;
    });
}

TEST_CASE("tracing starts with 560H = the table and 561H = 7F (PRG-128)") {
    CHECK_TWICE([](auto value) {
        auto const start = value(position{.table = 0x5'F000});
        return topa::base_of(start).raw == 0x5'F000 && topa::mask_ptrs_of(start).raw == 0x7F;
    });
}

TEST_CASE("an entry has 8 bytes, so the current one is at table + 8 * index (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return topa::table_pointer(value(position{0x1'0000, 7, 0xA})) == 0x1'0038 &&  // OC-50
               topa::table_pointer(value(position{0x1'0000, 0, 0})) == 0x1'0000 &&
               topa::table_pointer(value(position{0x1'0000, 0x1FF'FFFF, 0})) == 0x1000'FFF8;
    });
}

// ------------------------------------------------------------------------------------ a region

TEST_CASE("a byte is stored at the region's base plus the offset (OUT-051)") {
    CHECK_TWICE([](auto value) {
        return topa::trace_store_phys_addr(value(position{0x1'0000, 0, 0}), four_kb) == 0x40'0000 &&
               topa::trace_store_phys_addr(value(position{0x1'0000, 0, 0xFFE}), four_kb) ==
                   0x40'0FFE &&
               topa::trace_store_phys_addr(position{}, topa::entry{value(uint64_t{0x1000'0114})}) ==
                   0x1000'0000;
    });
}

TEST_CASE("tracing that starts at an offset in a region continues from it (OUT-051,058)") {
    CHECK_TWICE([](auto value) {  // OC-33
        auto const where = position_from(0x1'0000, value(uint64_t{0x0000'0010'0000'00FF}));
        topa::entry const second{value(uint64_t{0x40'1000})};
        return topa::trace_store_phys_addr(where, second) == 0x40'1010 &&
               topa::bytes_left(where, second) == 0xFF0 &&
               topa::mask_ptrs_of(topa::advanced(where, second, 1)).raw == 0x0000'0011'0000'00FF;
    });
}

TEST_CASE("a region is full after exactly its size in bytes (OUT-052)") {
    CHECK_TWICE([](auto value) {
        return topa::bytes_left(value(position{0, 0, 0}), four_kb) == 0x1000 &&
               topa::bytes_left(value(position{0, 0, 0xFFF}), four_kb) == 1 &&
               topa::bytes_left(value(position{0, 0, 1}), topa::entry{0x3C0}) == 0x7FF'FFFF;
    });
}

TEST_CASE("no byte is left when the offset is outside the region (OUT-064)") {
    CHECK_TWICE([](auto value) {
        return topa::bytes_left(value(position{0, 0, 0x1000}), four_kb) == 0 &&
               topa::bytes_left(value(position{0, 0, 0x1001}), four_kb) == 0 &&
               topa::bytes_left(value(position{0, 0, 0xFFFF'FFFF}), four_kb) == 0;
    });
}

// ------------------------------------------------------------------------------------ advancing

TEST_CASE("after a full region comes the next entry, from its first byte (OUT-053)") {
    CHECK_TWICE([](auto value) {
        return topa::next_entry(value(position{0x1'0000, 0, 0x1000})) == position{0x1'0000, 1, 0} &&
               topa::next_entry(value(position{0x1'0000, 0x1FF'FFFE, 5})) ==
                   position{0x1'0000, 0x1FF'FFFF, 0};
    });
}

TEST_CASE("a table holds 2^25 entries, and after the last comes the first (OUT-046,055)") {
    static_assert(topa::last_index == (1U << 25) - 1);
    CHECK_TWICE([](auto value) {  // OC-36
        auto const last = value(position{0x1'0000, 0x1FF'FFFF, 0xFFF});
        return topa::next_entry(last) == position{0x1'0000, 0, 0} &&
               topa::advanced(last, four_kb, 1) == position{0x1'0000, 0, 0} &&
               topa::mask_ptrs_of(topa::next_entry(last)).raw == 0x7F;
    });
}

TEST_CASE("an END entry leads to entry 0 of its next table (OUT-043,047,054)") {
    CHECK_TWICE([](auto value) {
        return topa::follow_end(topa::entry{value(uint64_t{0x2'0001})}) ==
                   position{0x2'0000, 0, 0} &&
               topa::follow_end(topa::entry{value(uint64_t{0xF'FFFF'FFFF'F3C1})}) ==
                   position{0xF'FFFF'FFFF'F000, 0, 0};
    });
}

TEST_CASE("when tracing starts on an END entry, the offset becomes 0 (OUT-057)") {
    CHECK_TWICE([](auto value) {  // OC-34
        auto const where = position_from(0x1'0000, value(uint64_t{0x0000'0999'0000'017F}));
        auto const to = topa::follow_end(topa::entry{value(uint64_t{0x1'0001})});
        return where.index == 2 && where.offset == 0x999 && topa::mask_ptrs_of(to).raw == 0x7F;
    });
}

TEST_CASE("bytes advance the offset, and the last byte of a region the index (OUT-052,053)") {
    CHECK_TWICE([](auto value) {
        auto const from = value(position{0x1'0000, 3, 0});
        return topa::advanced(from, four_kb, 0) == position{0x1'0000, 3, 0} &&
               topa::advanced(from, four_kb, 0xFFF) == position{0x1'0000, 3, 0xFFF} &&
               topa::advanced(from, four_kb, 0x1000) == position{0x1'0000, 4, 0};
    });
    CHECK_TWICE([](auto value) {
        auto const from = value(position{0x1'0000, 3, 0x1FF0});
        topa::entry const eight_kb{value(uint64_t{0x40'0040})};
        return topa::advanced(from, eight_kb, 5) == position{0x1'0000, 3, 0x1FF5} &&
               topa::advanced(from, eight_kb, 0xF) == position{0x1'0000, 3, 0x1FFF} &&
               topa::advanced(from, eight_kb, 0x10) == position{0x1'0000, 4, 0};
    });
    CHECK_TWICE([](auto value) {  // the largest region
        auto const from = value(position{0x1'0000, 3, 0});
        topa::entry const largest{value(uint64_t{0x800'03C0})};
        return topa::advanced(from, largest, 0x7FF'FFFF) == position{0x1'0000, 3, 0x7FF'FFFF} &&
               topa::advanced(from, largest, 0x800'0000) == position{0x1'0000, 4, 0};
    });
}

TEST_CASE("after two full regions END is followed immediately (OUT-052..054)") {
    CHECK_TWICE([](auto value) {  // OC-12, OC-13
        topa::entry const table[] = {{0x40'0000}, {0x40'1000}, {0x1'0001}};
        auto const start = position_from(value(uint64_t{0x1'0000}), 0x7F);
        auto const second = topa::advanced(start, table[0], 0x1000);
        auto const end = topa::advanced(second, table[1], 0x1000);
        return topa::bytes_left(start, table[0]) == 0x1000 &&
               topa::mask_ptrs_of(second).raw == 0xFF && end.index == 2 &&
               topa::follow_end(table[end.index]) == start &&
               topa::mask_ptrs_of(topa::follow_end(table[end.index])).raw == 0x7F;
    });
}

TEST_CASE("64K in X, 4K in Y, then the other table's entry 0 (OUT-142)") {
    CHECK_TWICE([](auto value) {  // OC-15
        topa::entry const table_a[] = {{0x1000'0100}, {0x2000'0000}, {0x2'0001}};
        topa::entry const table_b[] = {{0x3000'0050}};
        auto const x = position_from(value(uint64_t{0x1'0000}), 0x7F);
        bool const in_x = topa::trace_store_phys_addr(x, table_a[0]) == 0x1000'0000 &&
                          topa::bytes_left(x, table_a[0]) == 0x1'0000;
        auto const last = topa::advanced(x, table_a[0], 0xFFFF);
        bool const last_of_x = topa::trace_store_phys_addr(last, table_a[0]) == 0x1000'FFFF;
        auto const y = topa::advanced(last, table_a[0], 1);
        bool const in_y = topa::trace_store_phys_addr(y, table_a[y.index]) == 0x2000'0000 &&
                          topa::bytes_left(y, table_a[y.index]) == 0x1000;
        auto const b = topa::follow_end(table_a[topa::next_entry(y).index]);
        return in_x && last_of_x && in_y && b == position{0x2'0000, 0, 0} &&
               topa::trace_store_phys_addr(b, table_b[b.index]) == 0x3000'0000;
    });
}

// ------------------------------------------------------------------------------------ extremes

TEST_CASE("positions do not overflow at Size 15, index 1FFFFFFH and M = 52 (OUT-153)") {
    CHECK_TWICE([](auto value) {
        auto const where = value(position{0xF'FFFF'FFFF'F000, 0x1FF'FFFF, 0x7FF'FFFF});
        auto const current = topa::entry{value(uint64_t{0xF'FFFF'F800'03C0})};
        return topa::table_pointer(where) == 0x10'0000'0FFF'EFF8 &&
               topa::trace_store_phys_addr(where, current) == 0xF'FFFF'FFFF'FFFF &&
               topa::bytes_left(where, current) == 1 &&
               topa::broken_rule(current, {where.table, where.index}, {{52}}) == rule::none &&
               topa::next_entry(where) == position{0xF'FFFF'FFFF'F000, 0, 0} &&
               topa::advanced(where, current, 1) == position{0xF'FFFF'FFFF'F000, 0, 0} &&
               topa::base_of(where).raw == 0xF'FFFF'FFFF'F000 &&
               topa::mask_ptrs_of(where).raw == 0x07FF'FFFF'FFFF'FFFF;
    });
}

TEST_CASE("positions are equal when table, index and offset are equal") {
    CHECK_TWICE([](auto value) {
        auto const it = value(position{1, 2, 3});
        return it == position{1, 2, 3} && it != position{0, 2, 3} && it != position{1, 0, 3} &&
               it != position{1, 2, 0} && value(position{}) == position{0, 0, 0};
    });
    CHECK(std::is_trivially_copyable_v<position>);
}
