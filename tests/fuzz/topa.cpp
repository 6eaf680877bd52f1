// SPDX-License-Identifier: BSL-1.0
// Fuzzes ToPA tables and the math of output positions, against a direct transcription of the rules
// in the catalogue's chapter on trace output.
//
//   byte 0       bits 1:0 the number of regions minus 1, bits 7:2 MAXPHYADDR minus 12, at most 64
//   8 bytes      the address of the table
//   9 bytes each for four regions: the base; size in bits 3:0, INT in bit 4, STOP in bit 5
//   8 bytes each two MSRs, an entry, a number of bytes
//   byte         bit 0: without MENTRY; bit 1: the table links to itself; bit 2: it has no link;
//                bits 7:4 modulo 5 the regions of a table whose length is known only at run time
//   8 bytes      the address of the next table

#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/single_range.hpp>

#include <fuzz/check.hpp>

namespace {

using fuzz::require;
using namespace ptspec;

auto reaches_beyond(uint64_t address, unsigned width) -> bool {
    return width < 64 && (address >> width) != 0;
}

// ------------------------------------------------------------------------------------ tables

/// A requested table, with the entries that a builder adds.
struct request {
    unsigned width;
    bool many_entries;
    uint64_t base;
    topa::region regions[4];
    size_t count;
    bool is_linked;
    uint64_t next;

    [[nodiscard]] auto at() const -> topa::table_site { return {base, {{width}, many_entries}}; }
};

auto table_rule(uint64_t base, unsigned width) -> rule {
    return base % 4096 != 0              ? rule::OUT_061
           : reaches_beyond(base, width) ? rule::OUT_063
                                         : rule::none;
}

/// The rule that a region breaks as entry `index`, or `none`.
auto region_rule(request const& of, size_t index) -> rule {
    topa::region const& one = of.regions[index];
    uint64_t const size = uint64_t{4096} << underlying(one.size);
    return one.base.value % size != 0                 ? rule::OUT_062
           : reaches_beyond(one.base.value, of.width) ? rule::OUT_063
           : !of.many_entries && index != 0           ? rule::OUT_067
                                                      : rule::none;
}

/// The rule that the end of a table breaks, or `none`.
auto end_rule(request const& of) -> rule {
    if (!of.is_linked) {
        return !of.regions[of.count - 1].stop ? rule::OUT_056
               : !of.many_entries             ? rule::OUT_067
                                              : rule::none;
    }
    rule const broken = table_rule(of.next, of.width);
    if (broken != rule::none) { return broken; }
    return !of.many_entries && of.next != of.base ? rule::OUT_068 : rule::none;
}

auto finding_of(request const& of) -> topa::violation {
    topa::violation found{rule::none, {of.base, static_cast<uint32_t>(of.count)}};
    found.broken = table_rule(of.base, of.width);
    if (found.broken != rule::none) { return found; }
    if (of.count == 0) { return {rule::OUT_066, {of.base, 0}}; }
    for (uint32_t i = 0; i < of.count; ++i) {
        if (rule const broken = region_rule(of, i); broken != rule::none) {
            return {broken, {of.base, i}};
        }
    }
    found.broken = end_rule(of);
    return found.broken == rule::none ? topa::violation{} : found;
}

/// The word of a region or of the link.
auto word_of(request const& of, size_t index) -> uint64_t {
    if (index == of.count) { return of.next | 1; }
    topa::region const& one = of.regions[index];
    return one.base.value | uint64_t{underlying(one.size)} << 6 | (one.interrupt ? 4U : 0U) |
           (one.stop ? 16U : 0U);
}

/// Checks for the requested table, or for `empty` words and the finding.
void check_table(topa::violation const& why, topa::entry const* entries, size_t room,
                 request const& wanted, uint64_t empty) {
    auto const expected = finding_of(wanted);
    bool const good = expected.broken == rule::none;
    size_t const size = wanted.count + (wanted.is_linked ? 1 : 0);
    require(why == expected, "a table breaks the rule of the catalogue, at that entry");
    for (size_t i = 0; i < room; ++i) {
        bool const is_written = good && i < size;
        require(entries[i].raw == (is_written ? word_of(wanted, i) : empty), "an entry's bits");
        topa::position const at{wanted.base, static_cast<uint32_t>(i)};
        require(!is_written || topa::broken_rule(entries[i], at, wanted.at().limits) == rule::none,
                "an entry of a valid table breaks no rule");
    }
}
template <size_t Entries>
void check_built(topa::built<Entries> const& got, request const& wanted) {
    require(static_cast<bool>(got) == (got.violated.broken == rule::none), "a table or a finding");
    check_table(got.violated, got.table.entries, Entries, wanted, 0);
}

/// Checks that too few regions for an interrupt before the last are reported first.
template <size_t Entries>
void check_too_few(topa::built<Entries> const& got, request const& wanted, size_t count) {
    require(!got && got.violated ==
                        topa::violation{rule::OUT_093, {wanted.base, static_cast<uint32_t>(count)}},
            "an interrupt before the last region needs two regions");
    for (topa::entry const& one : got.table.entries) { require(one.raw == 0, "an empty table"); }
}

/// Checks every builder on the same regions.
template <class... Regions>
void check_builders(request wanted, Regions... regions) {
    constexpr size_t count = sizeof...(Regions);
    auto const at = wanted.at();
    wanted.count = count;
    wanted.is_linked = true;
    check_built(topa::try_linked(at, wanted.next, regions...), wanted);
    wanted.next = wanted.base;
    check_built(topa::try_ring(at, regions...), wanted);
    if constexpr (count == 1) {
        auto narrow = wanted;
        narrow.many_entries = false;
        check_built(topa::try_single_entry(at, regions...), narrow);
    }

    auto interrupts = wanted;
    if constexpr (count < 2) {
        check_too_few(topa::try_interrupt_on_full(at, regions...), wanted, count);
        check_too_few(topa::try_interrupt_and_stop(at, regions...), wanted, count);
    } else {
        interrupts.regions[count - 2].interrupt = true;
        check_built(topa::try_interrupt_on_full(at, regions...), interrupts);
        interrupts.is_linked = false;
        interrupts.regions[count - 1].interrupt = true;
        interrupts.regions[count - 1].stop = true;
        check_built(topa::try_interrupt_and_stop(at, regions...), interrupts);
    }

    wanted.is_linked = false;
    if constexpr (count != 0) { wanted.regions[count - 1].stop = true; }
    check_built(topa::try_stop_on_full(at, regions...), wanted);
}

void check_all_builders(request const& of, unsigned count) {
    auto const& r = of.regions;
    check_builders(of);
    switch (count) {
        case 1: check_builders(of, r[0]); break;
        case 2: check_builders(of, r[0], r[1]); break;
        case 3: check_builders(of, r[0], r[1], r[2]); break;
        default: check_builders(of, r[0], r[1], r[2], r[3]); break;
    }
}

/// Checks a chain of three tables, which reports the first mistake of the first invalid table.
void check_chain(request const& of) {
    auto const& r = of.regions;
    uint64_t const third = of.base ^ of.next;
    request const parts[] = {
        {of.width, of.many_entries, of.base, {r[0]}, 1, true, of.next},
        {of.width, of.many_entries, of.next, {r[1], r[2]}, 2, true, third},
        {of.width, of.many_entries, third, {r[3]}, 1, true, of.base},
    };
    auto const got = topa::try_chain(topa::table_at(parts[0].at(), r[0]),
                                     topa::table_at(parts[1].at(), r[1], r[2]),
                                     topa::table_at(parts[2].at(), r[3]));
    size_t wrong = 0;
    while (wrong != 3 && finding_of(parts[wrong]).broken == rule::none) { ++wrong; }
    if (wrong == 3) {
        require(static_cast<bool>(got), "a chain of valid tables is valid");
        check_table({}, got.tables.get<0>().entries, 2, parts[0], 0);
        check_table({}, got.tables.get<1>().entries, 3, parts[1], 0);
        check_table({}, got.tables.get<2>().entries, 2, parts[2], 0);
        return;
    }
    require(!got && got.number == wrong && got.violated == finding_of(parts[wrong]),
            "a chain reports the first table that breaks a rule");
    require(got.tables == topa::tables<2, 3, 2>{}, "no table is built");
}

/// Checks write_table, where the number of regions is known only at run time, over old entries.
void check_written(request const& wanted) {
    constexpr uint64_t old = 0x5A5A'5A5A'5A5A'5A5A;
    topa::entry to[6] = {{old}, {old}, {old}, {old}, {old}, {old}};
    topa::ending const end = wanted.is_linked ? topa::link(wanted.next) : topa::no_link;
    auto const why = topa::write_table(wanted.at().limits, wanted.base, wanted.regions,
                                       wanted.count, end, to);
    check_table(why, to, 6, wanted, old);
}

/// Checks that any word as an entry reports the lowest rule that it breaks (OUT-060..068).
void check_entry(uint64_t word, uint32_t index, request const& of) {
    bool const end = (word & 1) != 0;
    uint64_t const base = word & 0xFFFF'FFFF'FFFF'F000;
    uint64_t const size = uint64_t{4096} << ((word >> 6) & 15);
    rule wanted = rule::none;
    if (end && base != of.base && !of.many_entries) { wanted = rule::OUT_068; }
    if (!end && index != 0 && !of.many_entries) { wanted = rule::OUT_067; }
    if (end && index == 0) { wanted = rule::OUT_066; }
    if (end && (word & 0x14) != 0) { wanted = rule::OUT_065; }
    if (reaches_beyond(base, of.width)) { wanted = rule::OUT_063; }
    if (!end && base % size != 0) { wanted = rule::OUT_062; }
    if ((word & 0xC2A) != 0) { wanted = rule::OUT_060; }
    require(topa::broken_rule(topa::entry{word}, {of.base, index}, of.at().limits) == wanted,
            "an entry breaks the rule of the catalogue");
}

// ------------------------------------------------------------------------------------ positions

void check_single_range(uint64_t base, uint64_t pointers, uint64_t more) {
    reg::ia32_rtit_output_base const where{base};
    reg::ia32_rtit_output_mask_ptrs const at{pointers};
    uint64_t const mask = (pointers & 0xFFFF'FFFF) | 0x7F;
    uint64_t const offset = pointers >> 32;
    require(single_range::mask_of(at) == mask, "the seven lowest bits of the mask are 1");
    require(single_range::trace_store_phys_addr(where, at) == (base & ~mask) + (offset & mask),
            "the address of the next byte");

    require(single_range::bytes_left(at) == (offset > mask ? 0 : mask - offset + 1),
            "the bytes before the offset wraps");

    rule wanted = rule::none;
    if (offset > mask) { wanted = rule::OUT_024; }
    if ((base & mask) != 0) { wanted = rule::OUT_023; }
    if ((mask & (mask + 1)) != 0) { wanted = rule::OUT_022; }
    require(single_range::broken_rule(where, at) == wanted,
            "a single range breaks the rule of the catalogue");

    // Steps of one byte, and one step of many bytes.
    auto stepped = at;
    for (uint64_t i = 0; i < more % 300; ++i) {
        uint64_t const before = stepped.raw >> 32;
        stepped = single_range::advanced(stepped, 1);
        require(stepped.raw >> 32 == ((before + 1) & mask), "the next byte, or wrap to 0");
        require((stepped.raw & 0xFFFF'FFFF) == (pointers & 0xFFFF'FFFF), "the mask is unchanged");
        if (wanted == rule::none) {
            phys_addr const address = single_range::trace_store_phys_addr(where, stepped);
            require(address >= base && address - base <= mask, "no byte outside the region");
        }
    }
    if (wanted == rule::none) {
        require(single_range::advanced(at, more % 300) == stepped, "n bytes are n single bytes");
        require(single_range::advanced(single_range::advanced(at, more),
                                       mask + 1 - (more & mask)) == at,
                "a full lap returns to the start");
    }
}

void check_position(uint64_t base, uint64_t pointers, uint64_t word, uint64_t more) {
    reg::ia32_rtit_output_base const table{base};
    reg::ia32_rtit_output_mask_ptrs const at{pointers};
    topa::entry const current{word};
    auto const where = topa::position_in(table, at);
    require(where.table == (base & ~uint64_t{0x7F}), "the table's address");
    require(where.index == (pointers & 0xFFFF'FFFF) >> 7, "the entry's index");
    require(where.offset == pointers >> 32, "the offset in the region");
    require(topa::mask_ptrs_of(where).raw == (pointers | 0x7F), "the MSR of index and offset");
    require(topa::base_of(where).raw == where.table, "the MSR of the table address");
    require(topa::table_pointer(where) == where.table + ((pointers & 0xFFFF'FF80) >> 4),
            "the entry's address");

    uint64_t const region = word & 0xFFFF'FFFF'FFFF'F000;
    uint64_t const size = uint64_t{4096} << ((word >> 6) & 15);
    uint64_t const left = topa::bytes_left(where, current);
    require(topa::trace_store_phys_addr(where, current) == region + where.offset,
            "the address of the next byte");
    require(left == (where.offset >= size ? 0 : size - where.offset), "the rest of the region");
    require(left == 0 || is_aligned(region, size) == false ||
                (region + where.offset + left == region + size),
            "the last byte is the region's last");

    auto const next = topa::next_entry(where);
    require(next.table == where.table && next.offset == 0, "the next region of the same table");
    require(next.index == (where.index == 0x1FF'FFFF ? 0 : where.index + 1),
            "the next entry, or wrap to 0");
    require(topa::follow_end(current) == topa::position{region, 0, 0}, "END continues at entry 0");
    if (left != 0) {
        uint64_t const bytes = more % (left + 1);
        auto moved = where;
        moved.offset += static_cast<uint32_t>(bytes);
        require(topa::advanced(where, current, bytes) == (bytes == left ? next : moved),
                "further in the region, or at the next entry");
    }
    require(topa::link_to(base).raw == ((base & 0xFFFF'FFFF'FFFF'F000) | 1), "the bits of a link");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    unsigned const choice = from.byte();
    unsigned const wide = 12 + choice / 4;
    request wanted{};
    wanted.width = wide < 64 ? wide : 64;
    wanted.base = from.number();
    for (topa::region& one : wanted.regions) {
        one.base = from.number();
        unsigned const bits = from.byte();
        one.size = static_cast<topa::region_size>(bits % 16);
        one.interrupt = (bits & 0x10) != 0;
        one.stop = (bits & 0x20) != 0;
    }
    uint64_t const output_base = from.number();
    uint64_t const pointers = from.number();
    uint64_t const word = from.number();
    uint64_t const more = from.number();

    unsigned const more_choices = from.byte();
    wanted.many_entries = (more_choices & 1) == 0;
    wanted.next = from.number();
    if ((more_choices & 2) != 0) { wanted.next = wanted.base; }
    wanted.is_linked = (more_choices & 4) == 0;
    wanted.count = (more_choices >> 4) % 5;

    check_written(wanted);
    check_all_builders(wanted, 1 + choice % 4);
    check_chain(wanted);
    check_entry(word, more % 2, wanted);
    check_single_range(output_base, pointers, more);
    check_position(output_base, pointers, word, more);
    return 0;
}
