// SPDX-License-Identifier: BSL-1.0
// Also tests/vmx/shadowed_guests.cpp.
#include <ptspec/vmx/shadow.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>
#include <memory>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using vmx::backing;
using vmx::output_registers;
using vmx::shadow_progress;
using access::ia32_rtit_ctl;
using access::ia32_rtit_status;

namespace {

constexpr uint64_t END = 1;
constexpr uint64_t INT = 1 << 2;
constexpr uint64_t STOP = 1 << 4;
constexpr uint64_t size_8K = 1 << 6;
constexpr uint64_t size_16K = 2 << 6;
constexpr uint64_t size_32K = 3 << 6;

// Host-physical addresses of the shadow tables.
constexpr uint64_t P = 0x7'0000'4000;
constexpr uint64_t Q = 0x7'0000'1000;
constexpr uint64_t R = 0x7'0000'2000;

// Guest-physical addresses of tables.
constexpr uint64_t A = 0x8'0000;
constexpr uint64_t B = 0x9'0000;

/// 16 pages of data from address 0 on, whose host addresses are `host`, and some words.
struct small_guest {
    struct word {
        uint64_t address;
        uint64_t value;
    };
    word words[16] = {};
    size_t count = 0;
    uint64_t host[16] = {};
    backing how[16] = {};
    uint64_t missing_table = ~uint64_t{0};  ///< a page that `load` cannot read
    uint64_t no_table = ~uint64_t{0};       ///< a page that does not exist
    unsigned loads = 0;
    unsigned translations = 0;
    uint64_t asked = 0;         ///< the bytes that the last translation asked for
    uint64_t max_bytes = 4096;  ///< that one translation covers
    bool gives_more = false;    ///< a translation covers `max_bytes`, whatever it asked for

    /// Each data page is contiguous with the next in the host.
    constexpr small_guest() {
        for (uint64_t i = 0; i < 16; ++i) { host[i] = 0x1'0010'0000 + i * 4096; }
    }
    constexpr void put(uint64_t table, std::initializer_list<uint64_t> entries) {
        for (uint64_t const one : entries) {
            words[count++] = {table, one};
            table += 8;
        }
    }
    constexpr auto load(uint64_t address) noexcept -> port_value {
        uint64_t const page = address & ~uint64_t{4095};
        if (page == missing_table || page == no_table) { return {}; }
        ++loads;
        for (size_t i = 0; i < count; ++i) {
            if (words[i].address == address) { return {true, words[i].value}; }
        }
        return {true, 0};
    }
    constexpr auto translate(uint64_t address, uint64_t bytes) noexcept -> vmx::translation {
        ++translations;
        asked = bytes;
        if (address == missing_table) { return {backing::missing}; }
        uint64_t const page = address / 4096;
        if (page >= 16 || how[page] != backing::mapped) {
            return {page < 16 ? how[page] : backing::none};
        }
        return {backing::mapped, host[page], bytes < max_bytes && !gives_more ? bytes : max_bytes};
    }
};

/// A guest, and pages for its shadow.
struct machine {
    small_guest guest;
    cpu::capabilities caps = preset::P_SKL;
    cpu::capabilities host = preset::P_SKL;
    access::msr_state now;
    vmx::shadow one;
    topa::entry entries[3][512] = {};
    topa::position origins[3][512] = {};
    vmx::shadow_page pages[3] = {
        {P, entries[0], origins[0]}, {Q, entries[1], origins[1]}, {R, entries[2], origins[2]}};

    constexpr explicit machine(uint64_t base = A, uint64_t index = 0, uint64_t offset = 0) {
        now.ctl = now.ctl.with(ia32_rtit_ctl::ToPA{true});
        place(base, index, offset);
        // Words of an earlier shadow.
        for (auto& page : entries) {
            for (auto& entry : page) { entry = {0x5555'0000}; }
        }
    }
    constexpr void place(uint64_t base, uint64_t index, uint64_t offset) {
        now.output.base = {base};
        now.output.mask_ptrs = {offset << 32 | index << 7 | 0x7F};
    }
    constexpr void place_range(uint64_t base, uint64_t size, uint64_t offset) {
        now.ctl = now.ctl.with(ia32_rtit_ctl::ToPA{false});
        now.output.base = {base};
        now.output.mask_ptrs = {offset << 32 | (size - 1)};
    }
    constexpr auto begin(size_t room = 3) -> rule {
        return one.begin(host, caps, now, pages, room);
    }
    constexpr auto build(uint64_t steps = ~uint64_t{0}) -> shadow_progress {
        return one.build(guest, steps).what;
    }
    /// Begins and completes.
    constexpr auto make() -> bool {
        return begin() == rule::none && build() == shadow_progress::complete;
    }
    /// The words of a page, and after them only entries that are errors.
    constexpr auto has(size_t page, std::initializer_list<uint64_t> words) const -> bool {
        size_t i = 0;
        for (uint64_t const word : words) {
            bool const is_error = word == error;
            if (is_error ? !is_bad(entries[page][i]) : entries[page][i].raw != word) {
                return false;
            }
            ++i;
        }
        for (; i < 512; ++i) {
            if (!is_bad(entries[page][i])) { return false; }
        }
        return true;
    }
    static constexpr uint64_t error = ~uint64_t{0};
    /// An entry that ends output with an error at any place (OUT-060).
    static constexpr auto is_bad(topa::entry which) -> bool { return (which.raw & 0xC2A) != 0; }

    constexpr auto starts_at(uint64_t base, uint64_t index, uint64_t offset) const -> bool {
        auto const made = one.host();
        return made.topa && made.at.base.raw == base &&
               made.at.mask_ptrs.raw == (offset << 32 | index << 7 | 0x7F);
    }
    /// The two positions are translated to each other.
    constexpr auto maps(uint64_t host_base, uint64_t host_pointers, uint64_t base,
                        uint64_t pointers) const -> bool {
        return shows(host_base, host_pointers, base, pointers) &&
               finds(base, pointers, host_base, host_pointers);
    }
    constexpr auto shows(uint64_t host_base, uint64_t host_pointers, uint64_t base,
                         uint64_t pointers) const -> bool {
        auto const got = one.to_guest({{host_base}, {host_pointers}});
        return got && got.at == output_registers{{base}, {pointers}};
    }
    constexpr auto finds(uint64_t base, uint64_t pointers, uint64_t host_base,
                         uint64_t host_pointers) const -> bool {
        auto const got = one.to_host({{base}, {pointers}});
        return got && got.at == output_registers{{host_base}, {host_pointers}};
    }
    constexpr auto is_unknown(uint64_t host_base, uint64_t host_pointers) const -> bool {
        return !one.to_guest({{host_base}, {host_pointers}});
    }
};

constexpr auto pointers(uint64_t index, uint64_t offset) -> uint64_t {
    return offset << 32 | index << 7 | 0x7F;
}
/// The host address of a data page.
constexpr auto H(uint64_t page) -> uint64_t { return 0x1'0010'0000 + page * 4096; }

}  // namespace

// ------------------------------------------------------------------------------------ regions

TEST_CASE("a region becomes the largest aligned pieces of contiguous pages (PRG-184, OUT-041, "
          "OUT-042)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {0 | size_32K, A | END});
        on.guest.host[0] = value(uint64_t{0x5000});
        on.guest.host[1] = 0x6000;
        on.guest.host[2] = 0x7000;
        on.guest.host[3] = 0x8000;
        on.guest.host[4] = 0x9000;
        on.guest.host[5] = 0xC000;
        on.guest.host[6] = 0xB000;
        on.guest.host[7] = 0xA000;
        return on.make() &&
               on.has(0, {0x5000, 0x6000 | size_8K, 0x8000 | size_8K, 0xC000, 0xB000, 0xA000,
                          P | END}) &&
               on.starts_at(P, 0, 0);
    });
    CHECK_TWICE([](auto value) {  // a port that translates many pages at once
        machine on;
        on.guest.put(A, {0 | size_32K, A | END});
        on.guest.max_bytes = value(uint64_t{0x10'0000});
        return on.make() && on.has(0, {H(0) | size_32K, P | END}) && on.guest.translations == 1 &&
               on.guest.asked == 0x8000;
    });
    CHECK_TWICE([](auto value) {  // it is asked for the rest of the region
        machine on;
        on.guest.put(A, {0 | size_16K, A | END});
        on.guest.max_bytes = value(uint64_t{0x3000});
        return on.make() && on.has(0, {H(0) | size_16K, P | END}) && on.guest.asked == 0x1000 &&
               on.guest.translations == 2;
    });
    CHECK_TWICE([](auto value) {  // more than asked for, and fractions of pages, are ignored
        auto const ignores = [&](uint64_t bytes, unsigned translations) {
            machine on;
            on.guest.put(A, {0 | size_16K, 0x4000, A | END});
            on.guest.max_bytes = value(bytes);
            on.guest.gives_more = true;
            return on.make() && on.has(0, {H(0) | size_16K, H(4), P | END}) &&
                   on.guest.translations == translations;
        };
        return ignores(0x1801, 5) && ignores(0x3000, 3) && ignores(0x5000, 2) && ignores(0, 5) &&
               ignores(0xFFF, 5) && ignores(~uint64_t{0}, 2);
    });
}

TEST_CASE("INT and STOP are on the last piece only (PRG-184, OUT-080, OUT-082)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {0 | size_16K | INT, 0x4000 | size_8K | INT | STOP, 0x6000});
        on.guest.host[2] = value(uint64_t{0x9000});
        on.guest.host[5] = 0x7000;
        return on.make() &&
               on.has(0,
                      {H(0) | size_8K, 0x9000, H(3) | INT, H(4), 0x7000 | INT | STOP, P | END}) &&
               on.guest.loads == 2;  // nothing after STOP is read
    });
}

TEST_CASE("every table begins on a page, and a link to an earlier table joins it (PRG-184, "
          "OUT-047, OUT-054)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {0, 0x1000, B | END});
        on.guest.put(B, {value(uint64_t{0x2000}), 0x4000 | INT, A | END | 9 << 6});
        bool const made = on.make();
        return made && on.has(0, {H(0), H(1), Q | END}) && on.has(1, {H(2), H(4) | INT, P | END}) &&
               on.guest.loads == 6 && on.one.pages_used() == 2;
    });
    CHECK_TWICE([](auto value) {  // a table after which a ring begins: A, B, B...
        machine on;
        on.guest.put(A, {value(uint64_t{0}), B | END});
        on.guest.put(B, {0x2000, B | END});
        return on.make() && on.has(0, {H(0), Q | END}) && on.has(1, {H(2), Q | END}) &&
               on.guest.loads == 4;
    });
}

TEST_CASE("a table is shadowed from the start of output, the rest only if a link leads to it "
          "(PRG-083, PRG-184, OUT-058)") {
    CHECK_TWICE([](auto value) {
        machine on{A, 1, value(uint64_t{0x10})};
        on.guest.put(A, {0, 0x1000, 0x2000 | STOP});
        return on.make() && on.has(0, {H(1), H(2) | STOP, P | END}) && on.starts_at(P, 0, 0x10) &&
               on.guest.loads == 2;
    });
    CHECK_TWICE([](auto value) {
        machine on{A, 1, value(uint64_t{0x10})};
        on.guest.put(A, {0, 0x1000, 0x2000, A | END});
        return on.make() && on.has(0, {H(1), H(2), Q | END}) && on.has(1, {H(0), P | END}) &&
               on.guest.loads == 4 && on.starts_at(P, 0, 0x10) &&
               on.maps(Q, pointers(0, 0xFFF), A, pointers(0, 0xFFF)) &&
               on.shows(Q, pointers(1, 0), A, pointers(1, 0)) &&
               on.finds(A, pointers(1, 0), P, pointers(0, 0));
    });
    CHECK_TWICE([](auto value) {  // in the middle of a region, whose entry is read once
        machine on{A, 1, value(uint64_t{0x2345})};
        on.guest.put(A, {0, 0x4000 | size_16K | INT, A | END});
        return on.make() && on.has(0, {H(6) | size_8K | INT, Q | END}) &&
               on.has(1, {H(0), H(4) | size_8K, P | END}) && on.guest.loads == 3 &&
               on.starts_at(P, 0, 0x345) &&
               on.maps(P, pointers(0, 0x345), A, pointers(1, 0x2345)) &&
               on.maps(Q, pointers(1, 0x1FFF), A, pointers(1, 0x1FFF)) &&
               on.finds(A, pointers(1, 0x2000), P, pointers(0, 0));
    });
    CHECK_TWICE([](auto value) {  // only that region is split
        machine on{A, 0, value(uint64_t{0x1000})};
        on.guest.put(A, {size_8K, 0x4000 | size_16K, A | END});
        return on.make() && on.has(0, {H(1), H(4) | size_16K, Q | END}) &&
               on.has(1, {H(0), P | END});
    });
    CHECK_TWICE([](auto value) {  // a table at address 0, which is like no table before
        machine on{0, 0, value(uint64_t{0x1000})};
        on.guest.put(0, {0x4000 | size_8K, 0 | END});
        return on.make() && on.has(0, {H(5), Q | END}) && on.has(1, {H(4), P | END}) &&
               on.guest.loads == 2;
    });
    CHECK_TWICE([](auto value) {  // the region of entry 0
        machine on{A, 0, value(uint64_t{0x3FFF})};
        on.guest.put(A, {0x4000 | size_16K, A | END});
        return on.make() && on.has(0, {H(7), Q | END}) &&
               on.has(1, {H(4) | size_8K, H(6), P | END}) && on.guest.loads == 2;
    });
}

TEST_CASE("output that is enabled at an END begins at the linked table (OUT-057)") {
    CHECK_TWICE([](auto value) {
        machine on{A, 1, value(uint64_t{0x999'9999})};
        on.guest.put(A, {0, B | END});
        on.guest.put(B, {0x1000, A | END});
        return on.make() && on.has(0, {H(1), Q | END}) && on.has(1, {H(0), P | END}) &&
               on.starts_at(P, 0, 0) && on.maps(P, pointers(0, 0), B, pointers(0, 0));
    });
}

TEST_CASE("after the last possible entry comes the first (OUT-046, OUT-055)") {
    CHECK_TWICE([](auto value) {
        machine on{A, 0x1FF'FFFF, 0};
        on.guest.put(A + 0x0FFF'FFF8, {value(uint64_t{0x3000})});
        on.guest.put(A, {0x1000, 0x2000 | STOP});
        return on.make() && on.has(0, {H(3), Q | END}) && on.has(1, {H(1), H(2) | STOP, Q | END}) &&
               on.maps(P, pointers(0, 7), A, pointers(0x1FF'FFFF, 7)) &&
               on.shows(P, pointers(1, 0), A, pointers(0, 0)) &&
               on.finds(A, pointers(0, 0), Q, pointers(0, 0)) &&
               on.finds(A, pointers(1, 0), Q, pointers(1, 0));
    });
}

TEST_CASE("more pieces than a page holds continue on the next page (PRG-184, OUT-054)") {
    auto const on = std::make_unique<machine>();
    on->guest.put(A + 8 * 520, {A | END});  // 520 entries that are 0: the first page
    CHECK(on->make());
    CHECK(on->one.pages_used() == 2);
    CHECK(on->entries[0][510].raw == H(0));
    CHECK(on->entries[0][511].raw == (Q | END));
    CHECK(on->entries[1][0].raw == H(0));
    CHECK(on->entries[1][8].raw == H(0));
    CHECK(on->entries[1][9].raw == (P | END));
    CHECK(on->maps(P, pointers(510, 5), A, pointers(510, 5)));
    CHECK(on->shows(P, pointers(511, 5), A, pointers(511, 0)));
    CHECK(on->maps(Q, pointers(0, 5), A, pointers(511, 5)));
    CHECK(on->maps(Q, pointers(8, 0xFFF), A, pointers(519, 0xFFF)));

    SUBCASE("the pieces of a region may be on two pages") {
        on->guest.count = 0;
        on->guest.put(A + 8 * 509, {size_16K | INT, A | END});
        on->guest.host[1] = 0x8000;
        on->guest.host[3] = 0x4000;
        CHECK(on->begin(1) == rule::none);
        CHECK(on->build() == shadow_progress::no_room);
        on->one.add_pages(on->pages, 2);
        CHECK(on->build() == shadow_progress::complete);
        CHECK(on->entries[0][509].raw == H(0));
        CHECK(on->entries[0][510].raw == 0x8000);
        CHECK(on->entries[0][511].raw == (Q | END));
        CHECK(on->has(1, {H(2), 0x4000 | INT, P | END}));
        CHECK(on->guest.loads == 521 + 511);
    }
    SUBCASE("511 pieces and a link fill a page") {
        on->guest.count = 0;
        on->guest.put(A + 8 * 511, {A | END});
        CHECK(on->make());
        CHECK(on->one.pages_used() == 1);
        CHECK(on->entries[0][511].raw == (P | END));
    }
}

// ------------------------------------------------------------------------------------ errors

TEST_CASE("an invalid entry is an error when output reaches it, and nothing after it is read "
          "(PRG-088, OUT-060, OUT-062, OUT-063, OUT-065)") {
    CHECK_TWICE([](auto value) {
        auto const ends = [&](uint64_t word) {
            machine on;
            on.guest.put(A, {0, value(word), A | END});
            return on.make() && on.has(0, {H(0), machine::error}) && on.guest.loads == 2 &&
                   on.maps(P, pointers(1, 0), A, pointers(1, 0));
        };
        return ends(0x1000 | 2) && ends(0x1000 | 1 << 11) && ends(0x1000 | size_8K) &&
               ends(uint64_t{1} << 39) && ends(A | END | INT) && ends(A | END | STOP) &&
               ends(A | END | 1 << 3) && ends(uint64_t{1} << 39 | END);
    });
}

TEST_CASE("nothing is output: the position stays (OUT-007, OUT-120)") {
    CHECK_TWICE([](auto value) {
        auto const stays = [&](auto const& change) {
            machine on{A, value(uint64_t{1}), 0x1000};
            change(on.now);
            return on.make() && on.has(0, {machine::error}) && on.guest.loads == 0 &&
                   on.maps(P, pointers(0, 0x1000), A, pointers(1, 0x1000)) &&
                   on.is_unknown(P, pointers(0, 0)) && on.is_unknown(Q, pointers(0, 0x1000)) &&
                   !on.one.to_host({{A}, {pointers(1, 0)}});
        };
        return stays([](auto& now) { now.status = {0x10}; }) &&
               stays([](auto& now) { now.status = {0x20}; }) &&
               stays([](auto& now) { now.ctl = now.ctl.with(ia32_rtit_ctl::FabricEn{true}); }) &&
               !stays([](auto& now) { now.status = {0x40}; });
    });
}

TEST_CASE("where there is no memory, output ends with an error (PRG-095, PRG-184)") {
    CHECK_TWICE([](auto value) {  // in the middle of a region
        machine on;
        on.guest.put(A, {0 | size_16K | INT | STOP, A | END});
        on.guest.how[3] = value(backing::none);
        return on.make() && on.has(0, {H(0) | size_8K, H(2), machine::error}) &&
               on.maps(P, pointers(2, 0), A, pointers(0, 0x3000));
    });
    CHECK_TWICE([](auto value) {  // before the start of output, in the same region
        machine on{A, 0, 0x1FFF};
        on.guest.put(A, {0 | size_8K, A | END});
        on.guest.how[0] = value(backing::none);
        return on.make() && on.has(0, {H(1), Q | END}) && on.has(1, {machine::error}) &&
               on.maps(P, pointers(0, 0xFFF), A, pointers(0, 0x1FFF)) &&
               on.maps(Q, pointers(0, 0), A, pointers(0, 0));
    });
    CHECK_TWICE([](auto value) {  // at the start of output
        machine on{A, 0, value(uint64_t{0x1FFF})};
        on.guest.put(A, {0 | size_8K, A | END});
        on.guest.how[1] = backing::none;
        return on.make() && on.has(0, {machine::error}) && on.starts_at(P, 0, 0xFFF) &&
               on.maps(P, pointers(0, 0xFFF), A, pointers(0, 0x1FFF));
    });
    CHECK_TWICE([](auto value) {  // a table reads as ones
        machine on;
        on.guest.put(A, {0, B | END});
        on.guest.no_table = value(B);
        return on.make() && on.has(0, {H(0), Q | END}) && on.has(1, {machine::error}) &&
               on.shows(Q, pointers(0, 0), B, pointers(0, 0));
    });
    CHECK_TWICE([](auto value) {
        machine on{A, 5, value(uint64_t{7})};
        on.guest.no_table = A;
        return on.make() && on.has(0, {machine::error}) &&
               on.maps(P, pointers(0, 7), A, pointers(5, 7));
    });
}

// -------------------------------------------------------------------------- single-entry tables

TEST_CASE("the interrupt of a table of one region is early: a page before its end (PRG-090, "
          "OUT-101, OUT-104)") {
    auto const single = [](cpu::capabilities of) {
        of.leaf_14_0_ecx = of.leaf_14_0_ecx.with(reg::cpuid_14h_0_ecx::MENTRY{false});
        return of;
    };
    CHECK_TWICE([=](auto value) {
        machine on;
        on.caps = single(preset::P_SKL);
        on.guest.put(A, {0 | size_32K | INT | value(STOP), A | END});
        return on.make() &&
               on.has(0, {H(0) | size_16K, H(4) | size_8K, H(6) | INT, H(7) | STOP, P | END}) &&
               on.maps(P, pointers(3, 0x1000), A, pointers(0, 0x8000));
    });
    CHECK_TWICE([=](auto value) {  // started after it: not in this lap
        machine on{A, 0, 0x3000};
        on.caps = single(preset::P_SKL);
        on.guest.put(A, {0 | size_16K | value(INT), A | END});
        return on.make() && on.has(0, {H(3), Q | END}) &&
               on.has(1, {H(0) | size_8K, H(2) | INT, P | END});
    });
    CHECK_TWICE([=](auto value) {  // without INT there is no reason to split
        machine on;
        on.caps = single(preset::P_SKL);
        on.guest.put(A, {0 | value(size_32K), A | END});
        return on.make() && on.has(0, {H(0) | size_32K, P | END});
    });
    CHECK_TWICE([=](auto value) {  // a region of one page: when it is full
        machine on;
        on.caps = single(preset::P_SKL);
        on.guest.put(A, {0 | value(INT), A | END});
        return on.make() && on.has(0, {H(0) | INT, P | END});
    });
    CHECK_TWICE([=](auto value) {  // its own rules (OUT-067, OUT-068)
        auto const ends = [&](uint64_t second) {
            machine on;
            on.caps = single(preset::P_SKL);
            on.guest.put(A, {0, value(second), A | END});
            return on.make() && on.has(0, {H(0), machine::error});
        };
        return ends(B | END) && ends(0x1000) && !ends(A | END);
    });
}

// ------------------------------------------------------------------------------------ ranges

TEST_CASE("a single range becomes a ring (PRG-185, PRG-081, OUT-021)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.place_range(0x4000, 0x4000, value(uint64_t{0}));
        on.guest.host[6] = 0x20'0000;
        return on.make() && on.has(0, {H(4) | size_8K, 0x20'0000, H(7), P | END}) &&
               on.starts_at(P, 0, 0) && on.guest.loads == 0 &&
               on.maps(P, pointers(0, 0x1FFF), 0x4000, 0x1FFF'0000'3FFF) &&
               on.maps(P, pointers(1, 5), 0x4000, 0x2005'0000'3FFF) &&
               on.maps(P, pointers(2, 0xFFF), 0x4000, 0x3FFF'0000'3FFF) &&
               on.shows(P, pointers(3, 0), 0x4000, 0x3FFF);
    });
    CHECK_TWICE([](auto value) {  // from the middle
        machine on;
        on.place_range(0x4000, 0x4000, value(uint64_t{0x2345}));
        return on.make() && on.has(0, {H(6) | size_8K, H(4) | size_8K, P | END}) &&
               on.starts_at(P, 0, 0x345) &&
               on.maps(P, pointers(0, 0x345), 0x4000, 0x2345'0000'3FFF) &&
               on.maps(P, pointers(1, 7), 0x4000, 0x7'0000'3FFF) &&
               on.shows(P, pointers(0, 0x2000), 0x4000, 0x3FFF) &&  // about to move on
               on.is_unknown(P, pointers(0, 0x2001)) &&
               !on.one.to_host({{0x4000}, {0x4000'0000'3FFF}}) &&
               !on.one.to_host({{0x4000}, {0x1FFF}}) && !on.one.to_host({{0x5000}, {0x3FFF}});
    });
    CHECK_TWICE([](auto value) {  // of one page
        machine on;
        on.place_range(0x3000, 0x1000, value(uint64_t{0xFFF}));
        return on.make() && on.has(0, {H(3), P | END}) && on.starts_at(P, 0, 0xFFF);
    });
    CHECK_TWICE([](auto value) {  // where there is no memory
        machine on;
        on.place_range(0x8000, 0x8000, value(uint64_t{0x1000}));
        on.guest.how[11] = backing::none;
        return on.make() && on.has(0, {H(9), H(10), machine::error}) &&
               on.maps(P, pointers(2, 0), 0x8000, 0x3000'0000'7FFF);
    });
    CHECK_TWICE([](auto value) {  // 4 GB: the offset wraps
        machine on;
        on.place_range(0, uint64_t{1} << 32, value(uint64_t{0xFFFF'F000}));
        for (auto& page : on.guest.how) { page = backing::mapped; }
        return on.make() && on.has(0, {machine::error}) &&  // no memory there
               on.maps(P, pointers(0, 0), 0, 0xFFFF'F000'FFFF'FFFF);
    });
}

TEST_CASE("a range in a page stays a single range (PRG-185)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.place_range(0x3780, 0x80, value(uint64_t{0x15}));
        bool const made = on.make();
        auto const host = on.one.host();
        return made && on.one.pages_used() == 0 && !host.topa &&
               host.at == output_registers{{H(3) | 0x780}, {0x15'0000'007F}} &&
               on.maps(H(3) | 0x780, 0x7F'0000'007F, 0x3780, 0x7F'0000'007F) &&
               on.is_unknown(H(3) | 0x780, 0x80'0000'007F) &&
               on.is_unknown(H(3) | 0x780, 0x15'0000'00FF) && on.is_unknown(H(3), 0x7F) &&
               !on.one.to_host({{0x3780}, {0x80'0000'007F}}) && !on.one.to_host({{0x3700}, {0x7F}});
    });
    CHECK_TWICE([](auto value) {  // half a page, or less, does not need the pages
        machine on;
        on.place_range(0x3800, value(uint64_t{0x800}), 0);
        return on.begin(0) == rule::none && on.build() == shadow_progress::complete &&
               on.one.host().at.base.raw == (H(3) | 0x800);
    });
    CHECK_TWICE([](auto value) {  // no memory: an error at once
        machine on;
        on.place_range(0x3800, 0x80, value(uint64_t{7}));
        on.guest.how[3] = backing::none;
        return on.make() && on.one.host().topa && on.has(0, {machine::error}) &&
               on.maps(P, pointers(0, 7), 0x3800, 0x7'0000'007F);
    });
    CHECK_TWICE([](auto value) {
        machine on;
        on.place_range(0x3800, 0x80, 0);
        on.guest.how[3] = value(backing::missing);
        bool const waits = on.begin() == rule::none &&
                           on.one.build(on.guest) ==
                               vmx::shadow_result{shadow_progress::missing_page, 0x3000} &&
                           on.build(0) == shadow_progress::paused && on.guest.asked == 0x1000;
        on.guest.how[3] = backing::mapped;
        on.guest.host[3] = uint64_t{1} << 39;
        bool const wide = on.one.build(on.guest) == vmx::shadow_result{shadow_progress::bad_page,
                                                                       uint64_t{1} << 39,
                                                                       rule::OUT_063};
        on.guest.host[3] = 0x1'2345'6000;
        return waits && wide && on.build(1) == shadow_progress::complete &&
               on.one.host().at.base.raw == 0x1'2345'6800;
    });
}

TEST_CASE("an invalid range is an error at once (PRG-082, PRG-185, OUT-022..024)") {
    CHECK_TWICE([](auto value) {
        auto const fails = [&](uint64_t base, uint64_t raw) {
            machine on;
            on.place_range(value(base), 0x1000, 0);
            on.now.output.mask_ptrs = {raw};
            return on.make() && on.has(0, {machine::error}) && on.guest.translations == 0 &&
                   on.shows(P, pointers(0, raw >> 32), base, raw);
        };
        return fails(0x4000, 0x17F) && fails(0x4080, 0xFFF) && fails(0x4000, 0x1000'0000'0FFF) &&
               !fails(0x4000, 0xFFF'0000'0FFF);
    });
}

// ------------------------------------------------------------------------------------ positions

TEST_CASE("a position that does not belong to the shadow is not translated (PRG-184)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {0 | size_8K, 0x4000, 0x5000 | STOP});
        auto const lost = [&](uint64_t base, uint64_t index, uint64_t offset) {
            return on.is_unknown(value(base), pointers(index, offset));
        };
        auto const unseen = [&](uint64_t base, uint64_t index, uint64_t offset) {
            return !on.one.to_host({{value(base)}, {pointers(index, offset)}});
        };
        return lost(P, 0, 0) && on.begin() == rule::none && lost(P, 0, 0) && unseen(A, 0, 0) &&
               on.build() == shadow_progress::complete && !lost(P, 0, 0) &&
               on.shows(P, pointers(0, 0x2000), A, pointers(0, 0x2000)) && lost(P, 0, 0x2001) &&
               lost(P, 3, 0) && lost(P, 4, 0) && lost(P, 511, 0) && lost(P, 512, 0) &&
               lost(Q, 0, 0) && lost(P + 0x80, 0, 0) && lost(P | 1, 0, 0) && lost(A, 0, 0) &&
               !unseen(A, 0, 0x1FFF) && unseen(A, 0, 0x2000) && unseen(A, 3, 0) &&
               unseen(B, 0, 0) && unseen(0, 0, 0) && !unseen(A, 2, 0x1000) && unseen(A, 2, 0x1001);
    });
    CHECK_TWICE([](auto value) {  // an END of the guest is a position, as is one of the shadow
        machine on;
        on.guest.put(A, {0, value(B) | END});
        on.guest.put(B, {0x2000, A | END});
        return on.make() && on.finds(A, pointers(1, 0), Q, pointers(0, 0)) &&
               !on.one.to_host({{A}, {pointers(1, 1)}}) &&
               on.shows(P, pointers(1, 77), B, pointers(0, 0)) &&
               on.shows(Q, pointers(1, 0), A, pointers(0, 0));
    });
    CHECK_TWICE([](auto value) {  // an error, whatever offset a processor leaves
        machine on;
        on.guest.put(A, {0 | size_8K, A | END});
        on.guest.how[1] = backing::none;
        return on.make() && on.maps(P, pointers(1, value(uint64_t{5})), A, pointers(0, 0x1005)) &&
               on.shows(P, pointers(1, 0xFFFF'EFFF), A, pointers(0, 0xFFFF'FFFF)) &&
               on.is_unknown(P, pointers(1, 0xFFFF'F000));
    });
    CHECK_TWICE([](auto value) {  // one of an earlier shadow
        machine on;
        on.guest.put(A, {0, 0x1000, 0x2000 | STOP});
        bool const made = on.make() && on.finds(A, pointers(2, 0), P, pointers(2, 0));
        on.guest.put(B, {value(uint64_t{STOP})});
        on.place(B, 0, 0);
        return made && on.make() && on.finds(B, pointers(0, 0), P, pointers(0, 0)) &&
               !on.one.to_host({{A}, {pointers(2, 0)}}) && on.is_unknown(P, pointers(2, 0));
    });
    CHECK_TWICE([](auto value) {  // a shadow that the host cannot make
        machine on;
        on.guest.put(A, {value(uint64_t{STOP})});
        bool const made = on.make();
        on.host = preset::P_BDW;
        return made && on.begin() == rule::OUT_067 && !on.one.is_complete() &&
               on.build() == shadow_progress::not_begun;
    });
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {value(uint64_t{0}), A | END});
        bool const made = on.make() && !on.is_unknown(P, 0x7F);
        on.one.invalidate();
        return made && on.is_unknown(P, 0x7F) && !on.one.is_complete() &&
               on.build() == shadow_progress::not_begun && !on.one.end_with_error() &&
               on.one.pages_used() == 0;
    });
}

// ------------------------------------------------------------------------------------ the VMM

TEST_CASE("the host needs tables of many entries (PRG-184, REG-024, REG-025)") {
    using ecx = reg::cpuid_14h_0_ecx;
    CHECK_TWICE([](auto value) {
        auto const rule_for = [&](auto lacks, uint64_t range) {
            machine on;
            on.guest.put(A, {0, A | END});
            on.host.leaf_14_0_ecx = on.host.leaf_14_0_ecx.with(lacks);
            if (range != 0) { on.place_range(0, range, 0); }
            rule const why = on.begin();
            return value(why == rule::none) == (on.build() == shadow_progress::complete)
                       ? why
                       : rule::GEN_006;
        };
        return rule_for(ecx::TOPAOUT{false}, 0) == rule::REG_024 &&
               rule_for(ecx::MENTRY{false}, 0) == rule::OUT_067 &&
               rule_for(ecx::SNGLRNGOUT{false}, 0) == rule::none &&
               rule_for(ecx::SNGLRNGOUT{false}, 0x1000) == rule::none &&
               rule_for(ecx::SNGLRNGOUT{false}, 0x800) == rule::REG_025 &&
               rule_for(ecx::SNGLRNGOUT{true}, 0x800) == rule::none;
    });
}

TEST_CASE("a page that is missing is asked for, and the walk continues where it stopped "
          "(PRG-184)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {0, 0x4000 | size_16K, A | END});
        on.guest.how[6] = value(backing::missing);
        bool const waits = on.begin() == rule::none &&
                           on.one.build(on.guest) ==
                               vmx::shadow_result{shadow_progress::missing_page, 0x6000} &&
                           !on.one.is_complete() && on.guest.translations == 4 &&
                           on.build() == shadow_progress::missing_page &&
                           on.guest.translations == 5 && on.guest.loads == 2;
        on.guest.how[6] = backing::mapped;
        return waits && on.build() == shadow_progress::complete && on.guest.loads == 3 &&
               on.guest.translations == 7 && on.has(0, {H(0), H(4) | size_16K, P | END});
    });
    CHECK_TWICE([](auto value) {  // a page of a table
        machine on{A, 511, 0};
        on.guest.put(A + 0xFF8, {0x1000, 0x2000 | STOP});
        on.guest.missing_table = value(A + 0x1000);
        bool const waits = on.begin() == rule::none &&
                           on.one.build(on.guest) ==
                               vmx::shadow_result{shadow_progress::missing_page, A + 0x1000} &&
                           on.one.reached() == topa::position{A, 512, 0};
        on.guest.missing_table = 0;
        return waits && on.build() == shadow_progress::complete && on.guest.loads == 2 &&
               on.has(0, {H(1), H(2) | STOP, P | END});
    });
}

TEST_CASE("the steps of a call are limited (PRG-184)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {0 | size_8K, 0x4000 | size_8K, A | END});
        bool const begun = on.begin() == rule::none && on.build(0) == shadow_progress::paused &&
                           on.guest.loads == 0;
        unsigned calls = 0;
        while (on.build(value(uint64_t{1})) == shadow_progress::paused) { ++calls; }
        return begun && calls == 6 && on.one.is_complete() && on.guest.loads == 3 &&
               on.guest.translations == 4 && on.has(0, {H(0) | size_8K, H(4) | size_8K, P | END});
    });
}

TEST_CASE("pages can be added to a shadow (PRG-184)") {
    CHECK_TWICE([](auto value) {
        machine on;
        on.guest.put(A, {0, B | END});
        on.guest.put(B, {0x2000, A | END});
        bool const none = on.begin(value(size_t{0})) == rule::none &&
                          on.build() == shadow_progress::no_room && on.one.pages_used() == 0 &&
                          on.one.reached() == topa::position{A, 0, 0} && !on.one.end_with_error();
        on.one.add_pages(on.pages, 1);
        bool const some = on.build() == shadow_progress::no_room && on.one.pages_used() == 1;
        vmx::shadow_page const more[] = {on.pages[0], on.pages[1], on.pages[2]};
        on.pages[0] = on.pages[1] = {};
        on.one.add_pages(more, 3);
        return none && some && on.build() == shadow_progress::complete &&
               on.has(0, {H(0), Q | END}) && on.has(1, {H(2), P | END}) && on.guest.loads == 4;
    });
}

TEST_CASE("a shadow can end early: output that gets there ends with an error (PRG-184)") {
    CHECK_TWICE([](auto value) {  // no room for a table
        machine on;
        on.guest.put(A, {0, B | END});
        bool const full = on.begin(value(size_t{1})) == rule::none &&
                          on.build() == shadow_progress::no_room;
        return full && on.one.end_with_error() && on.one.is_complete() && on.one.end_with_error() &&
               on.has(0, {H(0), machine::error}) && on.maps(P, pointers(1, 0), B, pointers(0, 0));
    });
    CHECK_TWICE([](auto value) {  // a page does not come: pages before it can be used
        machine on;
        on.guest.put(A, {0, 0x4000 | size_16K | STOP});
        on.guest.how[6] = value(backing::missing);
        return on.begin() == rule::none && on.build() == shadow_progress::missing_page &&
               on.one.end_with_error() && on.has(0, {H(0), H(4) | size_8K, machine::error}) &&
               on.maps(P, pointers(2, 0), A, pointers(1, 0x2000));
    });
    CHECK_TWICE([](auto value) {  // at the start
        machine on{A, 0, value(uint64_t{0x1234})};
        on.guest.put(A, {0 | size_8K, A | END});
        on.guest.how[1] = backing::missing;
        return on.begin() == rule::none && on.build() == shadow_progress::missing_page &&
               on.one.end_with_error() && on.starts_at(P, 0, 0x234) &&
               on.maps(P, pointers(0, 0x234), A, pointers(0, 0x1234));
    });
    CHECK_TWICE([](auto value) {  // before anything was read
        machine on{A, 3, value(uint64_t{0x1234})};
        return on.begin() == rule::none && on.one.end_with_error() && on.starts_at(P, 0, 0x1234) &&
               on.guest.loads == 0 && on.maps(P, pointers(0, 0x1234), A, pointers(3, 0x1234));
    });
    CHECK_TWICE([](auto value) {  // a range in a page
        machine on;
        on.place_range(0x3800, 0x80, value(uint64_t{7}));
        return on.begin() == rule::none && on.one.end_with_error() && on.one.host().topa &&
               on.maps(P, pointers(0, 7), 0x3800, 0x7'0000'007F);
    });
    // No room for a piece.
    auto const on = std::make_unique<machine>();
    on->guest.put(A + 8 * 511, {size_8K, A | END});
    CHECK(on->begin(1) == rule::none);
    CHECK(on->build() == shadow_progress::no_room);
    CHECK(on->one.end_with_error());
    CHECK(on->entries[0][510].raw == H(0));
    CHECK(machine::is_bad(on->entries[0][511]));
    CHECK(on->maps(P, pointers(511, 0), A, pointers(511, 0)));
}

TEST_CASE("pages that the VMM gives are checked (OUT-061..063)") {
    CHECK_TWICE([](auto value) {
        auto const result_for = [&](uint64_t page, uint64_t table) {
            machine on;
            on.guest.put(A, {0, A | END});
            on.guest.host[0] = value(page);
            on.pages[0].address = table;
            (void)on.begin();
            return on.one.build(on.guest);
        };
        constexpr uint64_t wide = uint64_t{1} << 39;
        auto const bad = [](uint64_t page, rule why) {
            return vmx::shadow_result{shadow_progress::bad_page, page, why};
        };
        return result_for(0x4080, P) == bad(0x4080, rule::OUT_062) &&
               result_for(0x4001, P) == bad(0x4001, rule::OUT_062) &&
               result_for(wide, P) == bad(wide, rule::OUT_063) &&
               result_for(0x4000, P + 8) == bad(P + 8, rule::OUT_061) &&
               result_for(0x4000, wide) == bad(wide, rule::OUT_063) &&
               static_cast<bool>(result_for(wide - 0x1000, P));
    });
    CHECK_TWICE([](auto value) {  // the last of several pages
        machine on;
        on.guest.put(A, {size_8K, A | END});
        on.guest.max_bytes = 0x2000;
        on.guest.host[0] = (uint64_t{1} << 39) - value(uint64_t{0x1000});
        bool const wide = on.begin() == rule::none &&
                          on.one.build(on.guest).broken == rule::OUT_063;
        on.guest.host[0] = 0x4000;  // asked again
        return wide && on.build() == shadow_progress::complete;
    });
}
