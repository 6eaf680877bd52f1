// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/address_math.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::address_math;

namespace {

/// A number that records when a sum, a difference or a shift does not fit in 64 bits. It cannot be
/// compared or used in a branch.
struct overflow_checked {
    uint64_t number;
    bool overflowed = false;

    constexpr explicit overflow_checked(uint64_t from, bool overflowed_before = false)
        : number{from}, overflowed{overflowed_before} {}
};

constexpr auto operator+(overflow_checked a, overflow_checked b) -> overflow_checked {
    uint64_t const sum = a.number + b.number;
    return overflow_checked{sum, a.overflowed || b.overflowed || sum < a.number};
}
constexpr auto operator-(overflow_checked a, overflow_checked b) -> overflow_checked {
    return overflow_checked{a.number - b.number,
                            a.overflowed || b.overflowed || a.number < b.number};
}
constexpr auto operator&(overflow_checked a, overflow_checked b) -> overflow_checked {
    return overflow_checked{a.number & b.number, a.overflowed || b.overflowed};
}
constexpr auto operator|(overflow_checked a, overflow_checked b) -> overflow_checked {
    return overflow_checked{a.number | b.number, a.overflowed || b.overflowed};
}
constexpr auto operator<<(overflow_checked a, overflow_checked b) -> overflow_checked {
    uint64_t const shifted = a.number << b.number;
    return overflow_checked{shifted,
                            a.overflowed || b.overflowed || shifted >> b.number != a.number};
}
constexpr auto operator>>(overflow_checked a, overflow_checked b) -> overflow_checked {
    return overflow_checked{a.number >> b.number, a.overflowed || b.overflowed};
}
constexpr auto operator~(overflow_checked a) -> overflow_checked {
    return overflow_checked{~a.number, a.overflowed};
}

/// True when the value is `wanted` and no operation overflowed.
constexpr auto is(overflow_checked got, uint64_t wanted) -> bool {
    return !got.overflowed && got.number == wanted;
}

}  // namespace

TEST_CASE("address math works on every word_like type") {
    static_assert(word_like<uint64_t>);
    static_assert(word_like<overflow_checked>);
    static_assert(!word_like<double>);
    static_assert(!word_like<void*>);
    CHECK_TWICE([](auto value) {
        overflow_checked const big{value(~uint64_t{0})};
        overflow_checked const one{value(uint64_t{1})};
        return (big + one).overflowed && !(one + one).overflowed && (one - big).overflowed &&
               !(big - one).overflowed && (big << one).overflowed && !(one << one).overflowed &&
               ((big + one) & one).overflowed && (~(big + one)).overflowed &&
               ((one - big) | one).overflowed && ((one - big) >> one).overflowed;
    });
}

TEST_CASE("a table has at most 2^25 entries, 256 MB (OUT-046,141)") {
    static_assert(max_entries == 0x200'0000);
    static_assert(max_entries * 8 == 256 * 1024 * 1024);
}

// ------------------------------------------------------------------------------------ the MSR

TEST_CASE("the index is bits 31:7 of the pointers (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return index_in(value(uint64_t{0x0000'000A'0000'03FF})) == 7 &&
               index_in(value(uint64_t{0x7F})) == 0 && index_in(value(uint64_t{0x80})) == 1 &&
               index_in(value(uint64_t{0xFFFF'FFFF'0000'0000})) == 0 &&
               index_in(value(uint64_t{0x8000'0000})) == 0x100'0000 &&
               index_in(value(~uint64_t{0})) == 0x1FF'FFFF;
    });
}

TEST_CASE("the offset is bits 63:32 of the pointers (OUT-021,050)") {
    CHECK_TWICE([](auto value) {
        return offset_in(value(uint64_t{0x0000'000A'0000'03FF})) == 0xA &&
               offset_in(value(uint64_t{0xFFFF'FFFF})) == 0 &&
               offset_in(value(uint64_t{0x8000'0001'0000'0000})) == 0x8000'0001 &&
               offset_in(value(~uint64_t{0})) == 0xFFFF'FFFF;
    });
}

TEST_CASE("the mask is bits 31:0 of the pointers, and its low seven bits are ones (OUT-020,024)") {
    CHECK_TWICE([](auto value) {
        return mask_in(value(uint64_t{0x0000'0100'001F'FFFF})) == 0x1F'FFFF &&
               mask_in(value(uint64_t{0})) == 0x7F &&
               mask_in(value(uint64_t{0xFFFF'FFFF'0000'0000})) == 0x7F &&
               mask_in(value(uint64_t{0x8000'0000})) == 0x8000'007F &&
               mask_in(value(~uint64_t{0})) == 0xFFFF'FFFF;
    });
}

TEST_CASE("pointers hold an index, an offset and seven ones (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return pointers_of(value(uint64_t{7}), value(uint64_t{0xA})) == 0x0000'000A'0000'03FF &&
               pointers_of(value(uint64_t{0}), value(uint64_t{0})) == 0x7F &&
               pointers_of(value(uint64_t{1}), value(uint64_t{0})) == 0xFF &&
               pointers_of(value(uint64_t{0}), value(uint64_t{1})) == 0x1'0000'007F &&
               pointers_of(value(uint64_t{0x1FF'FFFF}), value(uint64_t{0xFFFF'FFFF})) ==
                   0xFFFF'FFFF'FFFF'FFFF;
    });
}

TEST_CASE("bits of an index or an offset that do not fit are dropped") {
    CHECK_TWICE([](auto value) {
        return pointers_of(value(uint64_t{0x200'0003}), value(uint64_t{0x1'0000'0002})) ==
                   0x0000'0002'0000'01FF &&
               pointers_of(value(~uint64_t{0}), value(uint64_t{0})) == 0xFFFF'FFFF &&
               pointers_of(value(uint64_t{0}), value(~uint64_t{0})) == 0xFFFF'FFFF'0000'007F;
    });
}

// ------------------------------------------------------------------------------------ single range

TEST_CASE("bits_above_a_gap() is 0 for a mask that is contiguous from bit 0 (OUT-022)") {
    CHECK_TWICE([](auto value) {
        return non_contiguous_bits(value(uint64_t{0x7F})) == 0 &&
               non_contiguous_bits(value(uint64_t{0x17F})) == 0x100 &&
               non_contiguous_bits(value(uint64_t{0x2FF})) == 0x200 &&
               non_contiguous_bits(value(uint64_t{0x8000'007F})) == 0x8000'0000 &&
               non_contiguous_bits(value(uint64_t{0xFFFF'FFFF})) == 0;
    });
}

TEST_CASE("a byte is stored at (base & ~mask) + (offset & mask) (OUT-021)") {
    CHECK_TWICE([](auto value) {
        uint64_t const mask = value(uint64_t{0xFFF});
        return store_address(uint64_t{0x10'0000}, mask, uint64_t{0x10}) == 0x10'0010 &&
               store_address(uint64_t{0x10'0880}, mask, uint64_t{0x10}) == 0x10'0010 &&
               store_address(uint64_t{0x10'0000}, mask, uint64_t{0x1234}) == 0x10'0234 &&
               store_address(uint64_t{0x10'0FFF}, mask, uint64_t{0xFFF}) == 0x10'0FFF;
    });
}

TEST_CASE("the offset wraps at the end of the region (OUT-021)") {
    CHECK_TWICE([](auto value) {
        uint64_t const mask = value(uint64_t{0xFFF});
        return offset_after(uint64_t{0xFFE}, uint64_t{1}, mask) == 0xFFF &&
               offset_after(uint64_t{0xFFF}, uint64_t{1}, mask) == 0 &&
               offset_after(uint64_t{0xFF0}, uint64_t{0x20}, mask) == 0x10 &&
               offset_after(uint64_t{5}, uint64_t{0}, mask) == 5 &&
               offset_after(uint64_t{5}, uint64_t{0x3000}, mask) == 5;
    });
}

// ------------------------------------------------------------------------------------ ToPA

TEST_CASE("a region has 4096 << Size bytes (OUT-041,141)") {
    CHECK_TWICE([](auto value) {
        return region_bytes(value(uint64_t{0})) == 0x1000 &&
               region_bytes(value(uint64_t{1})) == 0x2000 &&
               region_bytes(value(uint64_t{4})) == 0x1'0000 &&
               region_bytes(value(uint64_t{8})) == 0x10'0000 &&
               region_bytes(value(uint64_t{14})) == 0x400'0000 &&
               region_bytes(value(uint64_t{15})) == 0x800'0000;
    });
}

TEST_CASE("only the low four bits of Size are used") {
    CHECK_TWICE([](auto value) {
        return region_bytes(value(uint64_t{16})) == 0x1000 &&
               region_bytes(value(~uint64_t{0})) == 0x800'0000 &&
               index_after(uint64_t{0}, uint64_t{0}, uint64_t{0x1000}, value(uint64_t{16})) == 1;
    });
}

TEST_CASE("misalignment() is 0 for an aligned address (OUT-023,042,062)") {
    CHECK_TWICE([](auto value) {
        return misalignment(value(uint64_t{0x40'1000}), uint64_t{0x2000}) == 0x1000 &&
               misalignment(value(uint64_t{0x40'2000}), uint64_t{0x2000}) == 0 &&
               misalignment(value(uint64_t{0x5'F881}), uint64_t{0x1000}) == 0x881 &&
               misalignment(value(uint64_t{0}), uint64_t{0x800'0000}) == 0 &&
               misalignment(value(uint64_t{0x7FF'FFFF}), uint64_t{0x800'0000}) == 0x7FF'FFFF &&
               misalignment(value(~uint64_t{0}), uint64_t{1}) == 0;
    });
}

TEST_CASE("an entry has 8 bytes, so the current one is at table + 8 * index (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return table_pointer(value(uint64_t{0x1'0000}), value(uint64_t{7})) == 0x1'0038 &&
               table_pointer(value(uint64_t{0x1'0000}), value(uint64_t{0})) == 0x1'0000 &&
               table_pointer(value(uint64_t{0x1'0000}), value(uint64_t{0x1FF'FFFF})) == 0x1000'FFF8;
    });
}

TEST_CASE(
    "after an entry comes the next, and after the last possible one the first (OUT-053,055)") {
    CHECK_TWICE([](auto value) {
        return next_index(value(uint64_t{0})) == 1 && next_index(value(uint64_t{7})) == 8 &&
               next_index(value(uint64_t{0x1FF'FFFE})) == 0x1FF'FFFF &&
               next_index(value(uint64_t{0x1FF'FFFF})) == 0;
    });
}

TEST_CASE("the index advances when the last byte of a region is written (OUT-052,053,055)") {
    CHECK_TWICE([](auto value) {
        auto const from = [&](uint64_t index, uint64_t offset, uint64_t bytes, uint64_t size) {
            return index_after(value(index), value(offset), value(bytes), value(size));
        };
        return from(0, 0, 0, 0) == 0 && from(0, 0, 0xFFF, 0) == 0 && from(0, 0, 0x1000, 0) == 1 &&
               from(0, 0xFFF, 0, 0) == 0 && from(0, 0xFFF, 1, 0) == 1 &&
               from(5, 0, 0x1000, 1) == 5 && from(5, 0x1FFE, 1, 1) == 5 &&
               from(5, 0x1FFF, 1, 1) == 6 && from(0x1FF'FFFE, 0xFFF, 1, 0) == 0x1FF'FFFF &&
               from(0x1FF'FFFF, 0xFFE, 1, 0) == 0x1FF'FFFF && from(0x1FF'FFFF, 0xFFF, 1, 0) == 0;
    });
    CHECK_TWICE([](auto value) {  // each size
        for (uint64_t size = 0; size < 16; ++size) {
            uint64_t const bytes = value(uint64_t{0x1000}) << size;
            if (index_after(uint64_t{3}, uint64_t{0}, bytes - 1, size) != 3 ||
                index_after(uint64_t{3}, uint64_t{1}, bytes - 1, size) != 4 ||
                index_after(uint64_t{3}, uint64_t{0}, bytes, size) != 4) {
                return false;
            }
        }
        return true;
    });
}

// ------------------------------------------------------------------------------------ extremes

TEST_CASE("nothing overflows for the mask FFFFFFFFH and M = 52 (OUT-153)") {
    CHECK_TWICE([](auto value) {
        overflow_checked const pointers{value(~uint64_t{0})};
        overflow_checked const base{value(uint64_t{0xF'FFFF'0000'0000})};
        overflow_checked const mask{value(uint64_t{0xFFFF'FFFF})};
        overflow_checked const one{value(uint64_t{1})};
        return is(mask_in(pointers), 0xFFFF'FFFF) && is(offset_in(pointers), 0xFFFF'FFFF) &&
               is(non_contiguous_bits(mask), 0) &&
               is(store_address(base, mask, mask), 0xF'FFFF'FFFF'FFFF) &&
               is(misalignment(base, mask + one), 0) &&
               is(misalignment(base + mask, mask + one), 0xFFFF'FFFF) &&
               is(offset_after(mask, one, mask), 0) &&
               is(offset_after(mask, mask, mask), 0xFFFF'FFFE) &&
               is(offset_after(mask, overflow_checked{0x1'0000'0000}, mask), 0xFFFF'FFFF);
    });
}

TEST_CASE("nothing overflows for Size 15, the index 1FFFFFFH and M = 52 (OUT-153)") {
    CHECK_TWICE([](auto value) {
        overflow_checked const index{value(uint64_t{0x1FF'FFFF})};
        overflow_checked const offset{value(uint64_t{0x7FF'FFFF})};
        overflow_checked const size{value(uint64_t{15})};
        overflow_checked const table{value(uint64_t{0xF'FFFF'FFFF'F000})};
        overflow_checked const one{value(uint64_t{1})};
        return is(index_in(overflow_checked{value(~uint64_t{0})}), 0x1FF'FFFF) &&
               is(pointers_of(index, overflow_checked{0xFFFF'FFFF}), 0xFFFF'FFFF'FFFF'FFFF) &&
               is(region_bytes(size), 0x800'0000) &&
               is(misalignment(overflow_checked{0xF'FFFF'F800'0000}, region_bytes(size)), 0) &&
               is(table_pointer(table, index), 0x10'0000'0FFF'EFF8) && is(next_index(index), 0) &&
               is(index_after(index, offset, one, size), 0) &&
               is(index_after(index, overflow_checked{0}, region_bytes(size), size), 0);
    });
}
