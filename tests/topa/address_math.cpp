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

TEST_CASE("each function has the catalogue's value at a few numbers; the proofs take all numbers "
          "(OUT-020..024, OUT-041, OUT-042, OUT-050, OUT-052, OUT-053, OUT-055, OUT-062)") {
    CHECK_TWICE([](auto value) {
        uint64_t const pointers = value(uint64_t{0x0000'000A'0000'0380});
        uint64_t const mask = value(uint64_t{0xFFF});
        return index_in(pointers) == 7 && offset_in(pointers) == 0xA &&
               mask_in(pointers) == 0x3FF &&
               // Bits of an index or an offset that do not fit are dropped.
               pointers_of(value(uint64_t{0x200'0007}), value(uint64_t{0x1'0000'000A})) ==
                   0x0000'000A'0000'03FF &&
               non_contiguous_bits(value(uint64_t{0x17F})) == 0x100 &&
               non_contiguous_bits(mask) == 0 &&
               store_address(uint64_t{0x10'0880}, mask, uint64_t{0x1234}) == 0x10'0234 &&
               offset_after(uint64_t{0xFF0}, uint64_t{0x20}, mask) == 0x10 &&
               misalignment(value(uint64_t{0x5'F881}), uint64_t{0x1000}) == 0x881;
    });
    CHECK_TWICE([](auto value) {
        auto const from = [&](uint64_t index, uint64_t offset, uint64_t bytes, uint64_t size) {
            return index_after(value(index), value(offset), value(bytes), value(size));
        };
        return region_bytes(value(uint64_t{1})) == 0x2000 &&
               region_bytes(value(uint64_t{16})) == 0x1000 &&  // only the low four bits are used
               table_pointer(value(uint64_t{0x1'0000}), uint64_t{7}) == 0x1'0038 &&
               next_index(value(uint64_t{7})) == 8 && from(5, 0x1FFE, 1, 1) == 5 &&
               from(5, 0x1FFF, 1, 1) == 6 && from(0, 0, 0x1000, 16) == 1 &&
               from(0x1FF'FFFF, 0xFFE, 1, 0) == 0x1FF'FFFF;
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
