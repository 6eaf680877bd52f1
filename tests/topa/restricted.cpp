// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/restricted.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>

#include <random>
#include <vector>

using namespace ptspec;
using topa::phys_range;
using topa::restricted_memory;
using topa::address_run;

namespace {

constexpr uint64_t top = 0xFFFF'FFFF'FFFF'FFFF;
constexpr uint64_t last_of_4_GB = 0xFFFF'FFFF;

constexpr auto smrr(uint64_t base, uint64_t mask) -> restricted_memory {
    return {.smrr_physbase = {base}, .smrr_physmask = {mask}};
}

constexpr auto is_restricted_at(restricted_memory const& of, uint64_t address) -> bool {
    return of.run_from(address).restricted;
}
constexpr auto is(address_run const& got, bool restricted, uint64_t last) -> bool {
    return got.restricted == restricted && got.last == last;
}

/// The first address after `address` where the answer changes.
constexpr auto next_change(restricted_memory const& of, uint64_t address) -> uint64_t {
    bool const restricted = is_restricted_at(of, address);
    while (is_restricted_at(of, address) == restricted) {
        address = of.run_from(address).last.value + 1;
    }
    return address;
}

}  // namespace

TEST_CASE("without a range nothing is restricted") {
    CHECK_TWICE([](auto value) {
        auto const none = value(restricted_memory{});
        return is(none.run_from(0), false, top) && is(none.run_from(top), false, top) &&
               is(none.run_from(0x8000'0000), false, top) && !none.touches(0, top) &&
               !none.touches(top, 1) && none.extra == nullptr && none.extra_count == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const it = value(address_run{});
        auto const span = value(phys_range{});
        return is(it, false, 0) && span.first == 0 && span.last == 0;
    });
}

TEST_CASE("is_empty() needs SMRR to be invalid and extra_count to be 0") {
    CHECK_TWICE([](auto value) {
        phys_range const extra[] = {{value(uint64_t{1}), 0}};
        return value(restricted_memory{}).is_empty() &&
               smrr(value(uint64_t{0x8000'0000}), 0xFF80'07FF).is_empty() &&
               !smrr(value(uint64_t{0}), 0x800).is_empty() &&
               restricted_memory{.extra = extra, .extra_count = 0}.is_empty() &&
               !restricted_memory{.extra = extra, .extra_count = 1}.is_empty();
    });
}

// ------------------------------------------------------------------------------------ SMRR

TEST_CASE("an address is in SMRR when it equals PhysBase in the bits of PhysMask (OUT-110)") {
    CHECK_TWICE([](auto value) {
        auto const it = smrr(value(uint64_t{0x8000'0006}), 0xFF80'0800);  // OC-43: 8 MB
        return !is_restricted_at(it, 0x7FFF'FFFF) && is_restricted_at(it, 0x8000'0000) &&
               is_restricted_at(it, 0x8000'1FFF) && is_restricted_at(it, 0x807F'FFFF) &&
               !is_restricted_at(it, 0x8080'0000) && !is_restricted_at(it, 0) &&
               !is_restricted_at(it, last_of_4_GB);
    });
    CHECK_TWICE([](auto value) {  // base bits outside the mask are ignored
        auto const it = smrr(value(uint64_t{0x8012'3000}), 0xFF80'0800);
        return is_restricted_at(it, 0x8000'0000) && is_restricted_at(it, 0x807F'FFFF) &&
               !is_restricted_at(it, 0x7FFF'FFFF) && !is_restricted_at(it, 0x8080'0000);
    });
    CHECK_TWICE([](auto value) {  // the last page below 4 GB, and the first
        return is_restricted_at(smrr(value(uint64_t{0xFFFF'F000}), 0xFFFF'F800), last_of_4_GB) &&
               !is_restricted_at(smrr(value(uint64_t{0xFFFF'F000}), 0xFFFF'F800), 0xFFFF'EFFF) &&
               is_restricted_at(smrr(value(uint64_t{0}), 0xFFFF'F800), 0xFFF) &&
               !is_restricted_at(smrr(value(uint64_t{0}), 0xFFFF'F800), 0x1000);
    });
}

TEST_CASE("an address above 4 GB is never in SMRR: 180000000 is not 80000000 (OUT-110)") {
    CHECK_TWICE([](auto value) {
        auto const it = smrr(value(uint64_t{0x8000'0000}), 0xFF80'0800);  // OC-45
        return is_restricted_at(it, 0x8000'0000) && is(it.run_from(0x1'8000'0000), false, top) &&
               !it.touches(0x1'8000'0000, 0x10) && !it.touches(0x1'0000'0000, top - last_of_4_GB) &&
               !is_restricted_at(it, 0xF'0000'8000'0000);
    });
    CHECK_TWICE([](auto value) {  // a mask of 0 matches everything below 4 GB
        auto const it = smrr(value(uint64_t{0x8000'0000}), 0x800);
        return is(it.run_from(0), true, last_of_4_GB) &&
               is(it.run_from(last_of_4_GB), true, last_of_4_GB) &&
               is(it.run_from(0x1'0000'0000), false, top) && next_change(it, 0) == 0x1'0000'0000;
    });
}

TEST_CASE("SMRR is in effect only while bit 11 of PhysMask, Valid, is 1 (OUT-110)") {
    CHECK_TWICE([](auto value) {
        auto const off = smrr(value(uint64_t{0x8000'0000}), 0xFF80'0000);
        auto const other_bits = smrr(value(uint64_t{0x8000'0000}), 0xFF80'07FF);
        auto const on = smrr(value(uint64_t{0x8000'0000}), 0xFF80'0800);
        return is(off.run_from(0x8000'0000), false, top) && !off.touches(0, top) &&
               !is_restricted_at(other_bits, 0x8000'0000) && is_restricted_at(on, 0x8000'0000);
    });
}

TEST_CASE("FFFE00000H is the mask of 200000H to 3FFFFFH (OUT-144)") {
    CHECK_TWICE([](auto value) {
        // Of these 36 bits the register holds those below 4 GB.
        auto const it = smrr(value(uint64_t{0x20'0000}), 0xF'FFE0'0800);
        return next_change(it, 0) == 0x20'0000 && next_change(it, 0x20'0000) == 0x40'0000 &&
               is_restricted_at(it, 0x20'0000) && is_restricted_at(it, 0x3F'FFFF) &&
               !is_restricted_at(it, 0x40'0000) && !is_restricted_at(it, 0x1F'FFFF) &&
               it.run_from(0x2F'0123).last == 0x3F'FFFF;
    });
}

TEST_CASE("a mask with gaps matches several runs of addresses (OUT-110)") {
    CHECK_TWICE([](auto value) {
        // Bit 13 is not compared: two of every four pages match.
        auto const it = smrr(value(uint64_t{0x5000}), 0xFFFF'D800);
        return next_change(it, 0) == 0x5000 && next_change(it, 0x5000) == 0x6000 &&
               next_change(it, 0x6000) == 0x7000 && next_change(it, 0x7000) == 0x8000 &&
               is_restricted_at(it, 0x5FFF) && !is_restricted_at(it, 0x6FFF) &&
               is_restricted_at(it, 0x7000) && !is_restricted_at(it, 0x8000) &&
               !is_restricted_at(it, 0xD000);
    });
    CHECK_TWICE([](auto value) {  // only bit 12 is compared: every other page
        auto const it = smrr(value(uint64_t{0x1000}), 0x1800);
        return is(it.run_from(0x7'0234), false, 0x7'0FFF) &&
               is(it.run_from(0x7'1234), true, 0x7'1FFF) && is_restricted_at(it, last_of_4_GB) &&
               is(it.run_from(0x1'0000'1000), false, top) && it.touches(0xFFF, 2) &&
               !it.touches(0, 0x1000) && !it.touches(0xFFF, 1);
    });
}

// ------------------------------------------------------------------------------------ other ranges

TEST_CASE("platform ranges are restricted from their first byte to their last (OUT-116)") {
    CHECK_TWICE([](auto value) {
        phys_range const extra[] = {{value(uint64_t{0x1'2345'6789}), 0x1'2345'678B},
                                    {value(uint64_t{0x777}), 0x777}};
        restricted_memory const it{.extra = extra, .extra_count = 2};
        return is(it.run_from(0), false, 0x776) && is(it.run_from(0x777), true, 0x777) &&
               is(it.run_from(0x778), false, 0x1'2345'6788) &&
               is(it.run_from(0x1'2345'6789), true, 0x1'2345'678B) &&
               is(it.run_from(0x1'2345'678B), true, 0x1'2345'678B) &&
               is(it.run_from(0x1'2345'678C), false, top);
    });
    CHECK_TWICE([](auto value) {  // only `extra_count` of them
        phys_range const extra[] = {{value(uint64_t{0x10}), 0x1F}, {0x20, 0x2F}};
        restricted_memory const it{.extra = extra, .extra_count = 1};
        return it.touches(0x1F, 1) && !it.touches(0x20, 0x10);
    });
}

TEST_CASE("platform ranges may touch, overlap, be empty, or end at the last address (OUT-116)") {
    CHECK_TWICE([](auto value) {
        phys_range const extra[] = {{value(top - 1), top},   {0x2000, 0x3FFF}, {0x3000, 0x3007},
                                    {0x4000, 0x4FFF},        {0x9000, 0x8FFF}, {0x9100, 0x90FF},
                                    {value(uint64_t{1}), 0}, {top, 0x2000}};
        restricted_memory const it{.extra = extra, .extra_count = 8};
        return next_change(it, 0) == 0x2000 && next_change(it, 0x2000) == 0x5000 &&
               is_restricted_at(it, 0x3FFF) && is_restricted_at(it, 0x4000) &&
               next_change(it, 0x5000) == top - 1 && is(it.run_from(top), true, top) &&
               !is_restricted_at(it, top - 2) && it.touches(0x1FFF, 2) &&
               !it.touches(0x5000, 0x1'0000) && it.touches(top - 2, 2);
    });
}

TEST_CASE("SMRR and platform ranges are both restricted (OUT-110, OUT-116)") {
    CHECK_TWICE([](auto value) {
        phys_range const extra[] = {{value(uint64_t{0x807F'FFF0}), 0x8080'000F},
                                    {0x8000'0100, 0x8000'01FF},
                                    {0xFFFF'FFFF, 0x1'0000'0000}};
        restricted_memory const it{.smrr_physbase = {0x8000'0000},
                                   .smrr_physmask = {0xFF80'0800},
                                   .extra = extra,
                                   .extra_count = 3};
        return next_change(it, 0) == 0x8000'0000 && next_change(it, 0x8000'0000) == 0x8080'0010 &&
               next_change(it, 0x8080'0010) == 0xFFFF'FFFF &&
               next_change(it, 0xFFFF'FFFF) == 0x1'0000'0001 &&
               is(it.run_from(0x1'0000'0001), false, top);
    });
}

// ------------------------------------------------------------------------------------ stretches

TEST_CASE("bytes touch restricted memory when one of them is inside") {
    CHECK_TWICE([](auto value) {
        auto const it = smrr(value(uint64_t{0x8000'0000}), 0xFF80'0800);
        return it.touches(0x7FFF'FFFF, 2) && !it.touches(0x7FFF'FFFF, 1) &&
               it.touches(0x807F'FFFF, 1) && !it.touches(0x8080'0000, 1) &&
               it.touches(0x7FFF'F000, 0x1001) && !it.touches(0x7FFF'F000, 0x1000) &&
               it.touches(0, 0x1'0000'0000) && it.touches(0, top) && it.touches(0x8012'3456, 1) &&
               !it.touches(0x8080'0000, 0x7F80'0000) && !it.touches(0x8080'0000, top >> 1);
    });
    CHECK_TWICE([](auto value) {  // in the last of several runs, or after it
        phys_range const extra[] = {{value(uint64_t{0x4000}), 0x4000}, {0x10, 0xF}};
        restricted_memory const it{.smrr_physbase = {0x9000},
                                   .smrr_physmask = {0xFFFF'F800},
                                   .extra = extra,
                                   .extra_count = 2};
        return !it.touches(0, 0x4000) && it.touches(0, 0x4001) && !it.touches(0x4001, 0x4FFF) &&
               it.touches(0x4001, 0x5000) && !it.touches(0xA000, 0x1000);
    });
}

namespace {

/// OUT-110 and OUT-116 for one byte.
auto byte_is_restricted(restricted_memory const& of, uint64_t address) -> bool {
    uint64_t const base = of.smrr_physbase.raw & 0xFFFF'F000;
    uint64_t const mask = of.smrr_physmask.raw & 0xFFFF'F000;
    bool const valid = (of.smrr_physmask.raw >> 11) % 2 == 1;
    bool inside = valid && address < 0x1'0000'0000 && (address & mask) == (base & mask);
    for (size_t i = 0; i < of.extra_count; ++i) {
        inside = inside || (of.extra[i].first <= address && address <= of.extra[i].last);
    }
    return inside;
}

}  // namespace

TEST_CASE("stretch_from() and touches() agree with a check byte by byte (OUT-110, OUT-116)") {
    std::mt19937_64 random{3};
    for (unsigned round = 0; round < 300; ++round) {
        // All ranges are within 64 pages, often at 4 GB or at the last address. The high bits of
        // the mask may have gaps, too.
        uint64_t const first = round % 3 == 0   ? 0xFFFE'0000
                               : round % 3 == 1 ? (random() & 0xFFF0'0000)
                                                : (random() % 2 == 0 ? top - 0x3'FFFF : 0);
        uint64_t const mask = (random() | (random() & 0xFFFC'0000)) & 0xFFFF'FFFF;
        uint64_t const base = first + (random() & 0x3'FFFF);
        std::vector<phys_range> extra;
        for (uint64_t i = random() % 4; i != 0; --i) {
            uint64_t const from = first + random() % 0x4'0000;
            uint64_t const length = random() % 3 == 0 ? random() % 8 : random() % 0x6000;
            extra.push_back({from, from + length < from ? top : from + length - 2});
        }
        restricted_memory const it{.smrr_physbase = {base & 0xFFFF'FFFF},
                                   .smrr_physmask = {mask},
                                   .extra = extra.data(),
                                   .extra_count = extra.size()};
        // The places where the answer may change, and the bytes around them.
        std::vector<uint64_t> places;
        for (uint64_t page = 0; page < 64; ++page) {
            places.push_back(first + page * 0x1000);
            places.push_back(first + page * 0x1000 + 0xFFF);
        }
        for (auto const& span : extra) {
            uint64_t const start = span.first.value;
            uint64_t const end = span.last.value;
            for (uint64_t const place : {start - 1, start, end, end + 1}) {
                if (place - first < 0x4'0000) { places.push_back(place); }
            }
        }
        for (uint64_t const from : places) {
            auto const got = it.run_from(from);
            bool const inside = byte_is_restricted(it, from);
            REQUIRE(got.restricted == inside);
            REQUIRE(got.last >= from);
            for (uint64_t const place : places) {
                if (from <= place && place <= got.last) {
                    REQUIRE(byte_is_restricted(it, place) == inside);
                }
            }
            uint64_t const bytes = 1 + (random() >> random() % 64) % (0x4'0000 - (from - first));
            bool touched = byte_is_restricted(it, from) ||
                           byte_is_restricted(it, from + (bytes - 1));
            for (uint64_t const place : places) {
                bool const in_bytes = from <= place && place - from < bytes;
                touched = touched || (in_bytes && byte_is_restricted(it, place));
            }
            REQUIRE(it.touches(from, bytes) == touched);
        }
    }
}

// ------------------------------------------------------------------------------------ the APIC

TEST_CASE("bytes touch the APIC when they are in its page of 4 KB (OUT-113, PRG-096)") {
    CHECK_TWICE([](auto value) {
        reg::ia32_apic_base const apic{value(uint64_t{0xFEE0'0900})};  // enabled, bootstrap
        return topa::touches(apic, 0xFEE0'0000, 1) && topa::touches(apic, 0xFEE0'0FFF, 1) &&
               !topa::touches(apic, 0xFEE0'1000, 1) && !topa::touches(apic, 0xFEDF'FFFF, 1) &&
               topa::touches(apic, 0xFEDF'FFFF, 2) && !topa::touches(apic, 0xFEDF'F000, 0x1000) &&
               topa::touches(apic, 0xFEDF'F000, 0x1001) && topa::touches(apic, 0, 0x1'0000'0000) &&
               topa::touches(apic, 0xFEE0'0340, 4) &&
               !topa::touches(apic, 0xFEE0'1000, top - 0xFEE0'0FFF) &&
               !topa::touches(apic, 0x1'FEE0'0000, 0x1000);
    });
    CHECK_TWICE([](auto value) {  // for any page
        reg::ia32_apic_base const high{value(uint64_t{0xF'FFFF'FFFF'F800})};
        reg::ia32_apic_base const at_0{value(uint64_t{0x800})};
        return topa::touches(high, 0xF'FFFF'FFFF'FFFF, 1) &&
               topa::touches(high, 0xF'FFFF'F800'0000, 0x800'0000) &&
               !topa::touches(high, 0xF'FFFF'F000'0000, 0x800'0000) && topa::touches(at_0, 0, 1) &&
               topa::touches(at_0, 0xFFF, top) && !topa::touches(at_0, 0x1000, 1);
    });
}

TEST_CASE("an APIC that is not enabled has no page") {
    CHECK_TWICE([](auto value) {
        reg::ia32_apic_base const off{value(uint64_t{0xFEE0'0500})};
        return !topa::touches(off, 0xFEE0'0000, 0x1000) && !topa::touches(off, 0, top) &&
               !topa::touches(reg::ia32_apic_base{}, 0, 0x1000);
    });
}

// ------------------------------------------------------------------------------------ software

TEST_CASE("software outside SMM reads ones from restricted memory (OUT-111, PRG-095)") {
    CHECK_TWICE([](auto value) {
        simulate::memory_model<32> ram{0x1000, {}};
        for (uint64_t i = 0; i < 32; ++i) { (void)ram.store(0x1000 + i, byte_array<1>{{0x11}}); }
        phys_range const spans[] = {{value(uint64_t{0x1004}), 0x100B}, {0x2000, 0x2FFF}};
        restricted_memory const it{.extra = spans, .extra_count = 2};
        topa::memory_outside_smm seen{ram, it};
        return seen.load(0x1000) == port_value{true, 0xFFFF'FFFF'1111'1111} &&
               seen.load(0x1008) == port_value{true, 0x1111'1111'FFFF'FFFF} &&
               seen.load(0x1004) == port_value{true, ~uint64_t{0}} &&
               seen.load(0x100C) == port_value{true, 0x1111'1111'1111'1111} &&
               seen.load(0x2800) == port_value{true, ~uint64_t{0}} &&  // not even accessed
               !seen.load(0x3000);
    });
}

TEST_CASE("stores of software outside SMM into restricted memory are dropped (OUT-111)") {
    CHECK_TWICE([](auto value) {
        simulate::memory_model<32> ram{0x1000, {}};
        phys_range const spans[] = {{value(uint64_t{0x1004}), 0x1007}};
        restricted_memory const it{.extra = spans, .extra_count = 1};
        topa::memory_outside_smm seen{ram, it};
        uint8_t const bytes[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        bool const all = seen.store(0x1002, bytes) == 12;
        bool good = all && ram.bytes[0x01] == 0 && ram.bytes[0x02] == 1 && ram.bytes[0x03] == 2 &&
                    ram.bytes[0x04] == 0 && ram.bytes[0x07] == 0 && ram.bytes[0x08] == 7 &&
                    ram.bytes[0x0D] == 12;
        // A fault after the restricted bytes counts them as stored.
        phys_range const last[] = {{0x101C, 0x1023}};
        restricted_memory const end{.extra = last, .extra_count = 1};
        topa::memory_outside_smm past{ram, end};
        return good && past.store(0x101A, bytes) == 10 && ram.bytes[0x1B] == 2;
    });
}
