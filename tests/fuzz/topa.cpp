// SPDX-License-Identifier: BSL-1.0
// Fuzzes tables of physical addresses and the math of output positions, against the rules of the
// catalogue's chapter on trace output as they stand there.
//
//   byte 0       bits 1:0 the number of regions less one, bits 7:2 MAXPHYADDR less 12, at most 64
//   8 bytes      where the table stands
//   9 bytes each for four regions: the base; size in bits 3:0, INT in bit 4, STOP in bit 5
//   8 bytes each two MSRs, an entry, a number of bytes

#include <ptspec/topa/position.hpp>
#include <ptspec/topa/table.hpp>

#include <fuzz/check.hpp>

namespace {

using fuzz::require;
using namespace ptspec;

auto reaches_beyond(uint64_t address, unsigned width) -> bool {
    return width < 64 && (address >> width) != 0;
}

// ------------------------------------------------------------------------------------ tables

auto expected_of(topa::region const& one, unsigned width) -> rule {
    uint64_t const size = uint64_t{4096} << underlying(one.size);
    return one.base % size != 0              ? rule::OUT_062
           : reaches_beyond(one.base, width) ? rule::OUT_063
                                             : rule::none;
}

template <size_t Entries>
void check_ring(topa::built<Entries> const& got, unsigned width, uint64_t base,
                topa::region const* regions) {
    constexpr size_t count = Entries - 1;
    topa::finding wanted{};
    for (size_t i = count; i-- != 0;) {
        if (rule const broken = expected_of(regions[i], width); broken != rule::none) {
            wanted = {broken, i};
        }
    }
    if (reaches_beyond(base, width)) { wanted = {rule::OUT_063, count}; }
    if (base % 4096 != 0) { wanted = {rule::OUT_061, count}; }
    require(got.why == wanted, "a ring breaks the rule that the catalogue says, at that entry");
    require(static_cast<bool>(got) == (wanted.broken == rule::none), "a ring without findings");

    for (size_t i = 0; i < count; ++i) {
        auto const& one = regions[i];
        uint64_t const word = one.base | uint64_t{underlying(one.size)} << 6 |
                              (one.interrupt ? 4U : 0U) | (one.stop ? 16U : 0U);
        require(got.table.entries[i].raw == (got ? word : 0), "an entry's bits");
        require(!got || topa::broken_rule(got.table.entries[i], i, {width}) == rule::none,
                "a proved entry breaks no rule");
    }
    require(got.table.entries[count].raw == (got ? base | 1 : 0), "the last entry leads back");
    require(!got || topa::broken_rule(got.table.entries[count], count, {width}) == rule::none,
            "a proved link breaks no rule");
}

void check_rings(unsigned count, unsigned width, uint64_t base, topa::region const (&r)[4]) {
    max_phys_addr const most{width};
    switch (count) {
        case 1: check_ring(topa::try_ring(most, base, r[0]), width, base, r); break;
        case 2: check_ring(topa::try_ring(most, base, r[0], r[1]), width, base, r); break;
        case 3: check_ring(topa::try_ring(most, base, r[0], r[1], r[2]), width, base, r); break;
        default:
            check_ring(topa::try_ring(most, base, r[0], r[1], r[2], r[3]), width, base, r);
            check_ring(topa::try_ring(base, r[0], r[1], r[2], r[3]), 52, base, r);
            break;
    }
}

/// Any word as an entry: the lowest rule that it breaks (OUT-060..066).
void check_entry(uint64_t word, size_t index, unsigned width) {
    bool const end = (word & 1) != 0;
    uint64_t const base = word & 0xFFFF'FFFF'FFFF'F000;
    uint64_t const size = uint64_t{4096} << ((word >> 6) & 15);
    rule wanted = rule::none;
    if (end && index == 0) { wanted = rule::OUT_066; }
    if (end && (word & 0x14) != 0) { wanted = rule::OUT_065; }
    if (reaches_beyond(base, width)) { wanted = rule::OUT_063; }
    if (!end && base % size != 0) { wanted = rule::OUT_062; }
    if ((word & 0xC2A) != 0) { wanted = rule::OUT_060; }
    require(topa::broken_rule(topa::entry{word}, index, {width}) == wanted,
            "an entry breaks the rule that the catalogue says");
}

// ------------------------------------------------------------------------------------ positions

void check_single_range(uint64_t base, uint64_t pointers, uint64_t more) {
    reg::ia32_rtit_output_base const where{base};
    reg::ia32_rtit_output_mask_ptrs const at{pointers};
    uint64_t const mask = (pointers & 0xFFFF'FFFF) | 0x7F;
    uint64_t const offset = pointers >> 32;
    require(single_range::mask_of(at) == mask, "the seven lowest bits of the mask are ones");
    require(single_range::trace_store_phys_addr(where, at) == (base & ~mask) + (offset & mask),
            "the address of the next byte");

    rule wanted = rule::none;
    if (offset > mask) { wanted = rule::OUT_024; }
    if ((base & mask) != 0) { wanted = rule::OUT_023; }
    if ((mask & (mask + 1)) != 0) { wanted = rule::OUT_022; }
    require(single_range::broken_rule(where, at) == wanted,
            "a single range breaks the rule that the catalogue says");

    // One byte after the other, and many at once.
    auto stepped = at;
    for (uint64_t i = 0; i < more % 300; ++i) {
        uint64_t const before = stepped.raw >> 32;
        stepped = single_range::advanced(stepped, 1);
        require(stepped.raw >> 32 == ((before + 1) & mask), "one byte further, or round");
        require((stepped.raw & 0xFFFF'FFFF) == (pointers & 0xFFFF'FFFF), "the mask stays");
        if (wanted == rule::none) {
            uint64_t const address = single_range::trace_store_phys_addr(where, stepped);
            require(address >= base && address - base <= mask, "no byte outside of the region");
        }
    }
    if (wanted == rule::none) {
        require(single_range::advanced(at, more % 300) == stepped, "many bytes are many times one");
        require(single_range::advanced(single_range::advanced(at, more),
                                       mask + 1 - (more & mask)) == at,
                "once round is where it began");
    }
}

void check_position(uint64_t base, uint64_t pointers, uint64_t word) {
    reg::ia32_rtit_output_base const table{base};
    reg::ia32_rtit_output_mask_ptrs const at{pointers};
    topa::entry const current{word};
    auto const where = topa::position_in(table, at);
    require(where.table == (base & ~uint64_t{0x7F}), "the table's address");
    require(where.index == (pointers & 0xFFFF'FFFF) >> 7, "the entry's number");
    require(where.offset == pointers >> 32, "the offset in the region");
    require(topa::mask_ptrs_of(where).raw == (pointers | 0x7F), "the MSR that holds the position");
    require(topa::table_pointer(where) == where.table + ((pointers & 0xFFFF'FF80) >> 4),
            "the entry's address");

    uint64_t const region = word & 0xFFFF'FFFF'FFFF'F000;
    uint64_t const size = uint64_t{4096} << ((word >> 6) & 15);
    uint64_t const left = topa::bytes_left(where, current);
    require(topa::trace_store_phys_addr(where, current) == region + where.offset,
            "the address of the next byte");
    require(left == (where.offset >= size ? 0 : size - where.offset), "what is left of the region");
    require(left == 0 || is_aligned(region, size) == false ||
                (region + where.offset + left == region + size),
            "the last byte is the region's last");

    auto const next = topa::behind(where);
    require(next.table == where.table && next.offset == 0, "the next region of the same table");
    require(next.index == (where.index == 0x1FF'FFFF ? 0 : where.index + 1),
            "the next entry, or round");
    require(topa::through(current) == topa::position{region, 0, 0}, "a link leads to entry 0");
    require(topa::link_to(base).raw == ((base & 0xFFFF'FFFF'FFFF'F000) | 1), "a link's bits");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    unsigned const choice = from.byte();
    unsigned const wide = 12 + choice / 4;
    unsigned const width = wide < 64 ? wide : 64;
    uint64_t const base = from.number();
    topa::region regions[4];
    for (topa::region& one : regions) {
        one.base = from.number();
        unsigned const bits = from.byte();
        one.size = static_cast<topa::region_size>(bits % 16);
        one.interrupt = (bits & 0x10) != 0;
        one.stop = (bits & 0x20) != 0;
    }
    check_rings(1 + choice % 4, width, base, regions);

    uint64_t const output_base = from.number();
    uint64_t const pointers = from.number();
    uint64_t const word = from.number();
    uint64_t const more = from.number();
    check_entry(word, more % 2, width);
    check_single_range(output_base, pointers, more);
    check_position(output_base, pointers, word);
    return 0;
}
