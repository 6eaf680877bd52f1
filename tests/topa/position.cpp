// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/position.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>

#include <map>
#include <regex>
#include <string>
#include <type_traits>
#include <vector>

using namespace ptspec;
using base_register = reg::ia32_rtit_output_base;
using pointers = reg::ia32_rtit_output_mask_ptrs;
using topa::position;

// ------------------------------------------------------------------------------------ single range

TEST_CASE("the mask of a single range is bits 31:0, of which the low seven are ones (OUT-020)") {
    CHECK_TWICE([](auto value) {
        return single_range::mask_of(pointers{value(uint64_t{0x0000'0100'001F'FFFF})}) ==
                   0x1F'FFFF &&
               single_range::mask_of(pointers{value(uint64_t{0})}) == 0x7F &&
               single_range::mask_of(pointers{value(uint64_t{0xFFFF'FFFF'0000'0000})}) == 0x7F &&
               single_range::mask_of(pointers{value(uint64_t{0xFFFF'FFFF})}) == 0xFFFF'FFFF;
    });
    CHECK_TWICE([](auto value) {  // 2^k bytes are written as MP[31:7] = 2^(k-7)-1
        for (unsigned k = 7; k <= 32; ++k) {
            uint64_t const field = (value(uint64_t{1}) << (k - 7)) - 1;
            auto const it = pointers{}.with(pointers::MaskOrTableOffset{wrapped{field}});
            if (single_range::mask_of(it) + 1 != uint64_t{1} << k) { return false; }
        }
        return true;
    });
}

TEST_CASE("a single range has 128 bytes to 4 GB (OUT-141)") {
    CHECK_TWICE([](auto value) {
        return single_range::mask_of(pointers{value(uint64_t{0})}) + 1 == 128 &&
               single_range::mask_of(pointers{value(uint64_t{0xFFFF'FFFF})}) + 1 == 0x1'0000'0000;
    });
}

namespace {

constexpr auto stored_at(uint64_t base, uint64_t mask_ptrs) -> uint64_t {
    return single_range::trace_store_phys_addr(base_register{base}, pointers{mask_ptrs});
}
constexpr auto moved(uint64_t mask_ptrs, uint64_t bytes) -> uint64_t {
    return single_range::advanced(pointers{mask_ptrs}, bytes).raw;
}
constexpr auto verdict(uint64_t base, uint64_t mask_ptrs) -> rule {
    return single_range::broken_rule(base_register{base}, pointers{mask_ptrs});
}

}  // namespace

TEST_CASE("a byte goes to the base without the mask, and the offset within it (OUT-021)") {
    CHECK_TWICE([](auto value) {
        return stored_at(value(uint64_t{0x10'0000}), value(uint64_t{0x0000'0010'0000'0FFF})) ==
                   0x10'0010 &&
               stored_at(value(uint64_t{0x10'0880}), value(uint64_t{0x0000'0010'0000'0FFF})) ==
                   0x10'0010 &&
               stored_at(value(uint64_t{0x10'0000}), value(uint64_t{0x0000'1234'0000'0FFF})) ==
                   0x10'0234 &&
               stored_at(value(uint64_t{0x1'0000'0000}), value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})) ==
                   0x1'FFFF'FFFF;
    });
}

TEST_CASE("where the base is aligned, the address is base plus offset (OUT-027)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t offset = 0; offset <= 0xFFF; offset += 0x111) {
            auto const at = stored_at(value(uint64_t{0x7F'0000'0000}), offset << 32 | 0xFFF);
            if (at != 0x7F'0000'0000 + offset) { return false; }
        }
        return true;
    });
}

TEST_CASE("the offset moves on and wraps at the range's end (OUT-021)") {
    CHECK_TWICE([](auto value) {
        return moved(value(uint64_t{0x0000'0FFE'0000'0FFF}), 1) == 0x0000'0FFF'0000'0FFF &&
               moved(value(uint64_t{0x0000'0FFF'0000'0FFF}), 1) == 0x0000'0000'0000'0FFF &&
               moved(value(uint64_t{0x0000'0FF0'0000'0FFF}), 0x20) == 0x0000'0010'0000'0FFF &&
               moved(value(uint64_t{0x0000'0000'0000'007F}), 0x80) == 0x7F &&
               moved(value(uint64_t{0x0000'0005'0000'007F}), 0) == 0x0000'0005'0000'007F &&
               moved(value(uint64_t{0xFFFF'FFFF'FFFF'FFFF}), 2) == 0x0000'0001'FFFF'FFFF;
    });
    CHECK_TWICE([](auto value) {  // n bytes are n times one byte
        auto const start = value(uint64_t{0x0000'0070'0000'007F});
        auto stepwise = start;
        for (uint64_t bytes = 0; bytes < 300; ++bytes, stepwise = moved(stepwise, 1)) {
            if (moved(start, bytes) != stepwise) { return false; }
        }
        return true;
    });
}

TEST_CASE("only the offset moves (OUT-028)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t const mask : {0x7FU, 0xFFFU, 0xFFFF'FFFFU}) {
            for (uint64_t const bytes : {1U, 0x80U, 0xFFFF'FFFFU}) {
                if ((moved(value(mask), bytes) & 0xFFFF'FFFF) != mask) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("the mask of a single range is contiguous from bit 0 (OUT-022)") {
    CHECK_TWICE([](auto value) {
        return verdict(0x10'0000, value(uint64_t{0x17F})) == rule::OUT_022 &&  // OC-05
               verdict(0, value(uint64_t{0x8000'007F})) == rule::OUT_022 &&
               verdict(0, value(uint64_t{0x1FF})) == rule::none &&
               verdict(0, value(uint64_t{0x80})) == rule::none &&
               verdict(0, value(uint64_t{0x100})) == rule::OUT_022;
    });
    CHECK_TWICE([](auto value) {
        for (unsigned size = 7; size <= 32; ++size) {
            if (verdict(0, (value(uint64_t{1}) << size) - 1) != rule::none) { return false; }
        }
        return true;
    });
}

TEST_CASE("the base of a single range is aligned to its size, bit by bit (OUT-023, REG-235)") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x80}), 0xFF) == rule::OUT_023 &&  // OC-04, OC-09
               verdict(value(uint64_t{0x18'0000}), 0xF'FFFF) == rule::OUT_023 &&
               verdict(value(uint64_t{0x80}), 0x7F) == rule::none &&
               verdict(value(uint64_t{0xF80}), 0x7F) == rule::none &&
               verdict(value(uint64_t{0x18'0000}), 0x7'FFFF) == rule::none &&
               verdict(value(uint64_t{0x8000'0000}), 0xFFFF'FFFF) == rule::OUT_023;
    });
}

TEST_CASE("the offset of a single range lies inside, its last byte too (OUT-024)") {
    CHECK_TWICE([](auto value) {
        return verdict(0x10'0000, value(uint64_t{0x0000'1000'0000'0FFF})) == rule::OUT_024 &&
               verdict(0x10'0000, value(uint64_t{0x0000'0FFF'0000'0FFF})) == rule::none &&
               verdict(0, value(uint64_t{0x0000'007F'0000'007F})) == rule::none &&
               verdict(0, value(uint64_t{0x0000'0080'0000'007F})) == rule::OUT_024 &&
               verdict(0, value(uint64_t{0x0000'007F'0000'0000})) == rule::none &&
               verdict(0, value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})) == rule::none;
    });
}

TEST_CASE("of several rules that a single range breaks the one with the lowest number is told") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x80}), 0xFFFF'FFFF'0000'017F) == rule::OUT_022 &&
               verdict(value(uint64_t{0x80}), 0xFFFF'FFFF'0000'00FF) == rule::OUT_023;
    });
}

namespace {

/// The rules that something breaks, in the order in which they are told.
struct rules {
    rule told[8] = {};
    size_t count = 0;

    constexpr void operator()(rule broken) noexcept { told[count++] = broken; }

    template <class... Rules>
    [[nodiscard]] constexpr auto are(Rules... wanted) const noexcept -> bool {
        size_t at = 0;
        return count == sizeof...(Rules) && (... && (told[at++] == wanted));
    }
};

constexpr auto all_of(uint64_t base, uint64_t mask_ptrs) -> rules {
    rules found;
    single_range::find_broken_rules(base_register{base}, pointers{mask_ptrs}, found);
    return found;
}
constexpr auto all_of(single_range::region wanted, unsigned width = 39) -> rules {
    rules found;
    single_range::find_broken_rules(wanted, max_phys_addr{width}, found);
    return found;
}
constexpr auto why_not(single_range::region wanted, unsigned width = 39) -> rule {
    auto const got = single_range::build(wanted, max_phys_addr{width});
    bool const nothing = got.base.raw == 0 && got.pointers.raw == 0x7F;
    return got || !nothing ? rule::none : got.why;
}

}  // namespace

TEST_CASE("every rule that a single range breaks is told (OUT-022..024)") {
    CHECK_TWICE([](auto value) {
        return all_of(value(uint64_t{0}), 0x7F).are() &&
               all_of(value(uint64_t{0x80}), 0xFFFF'FFFF'0000'017F)
                   .are(rule::OUT_022, rule::OUT_024) &&
               all_of(value(uint64_t{0x100}), 0xFFFF'FFFF'0000'017F)
                   .are(rule::OUT_022, rule::OUT_023, rule::OUT_024) &&
               all_of(value(uint64_t{0x80}), 0x0000'0100'0000'00FF)
                   .are(rule::OUT_023, rule::OUT_024);
    });
}

TEST_CASE("OC-49: a region of 2 MB at 600000, from byte 100 on (OUT-020)") {
    CHECK_TWICE([](auto value) {
        auto const got = single_range::build(
            {.base = value(uint64_t{0x60'0000}), .bytes = 0x20'0000, .offset = 0x100});
        return got && got.why == rule::none && got.base.raw == 0x60'0000 &&
               got.pointers.raw == 0x0000'0100'001F'FFFF;
    });
}

TEST_CASE("a region of every size that a single range can have is built (OUT-020,141)") {
    CHECK_TWICE([](auto value) {
        for (unsigned k = 7; k <= 32; ++k) {
            uint64_t const bytes = value(uint64_t{1}) << k;
            auto const got = single_range::build(
                {.base = 3 * bytes, .bytes = bytes, .offset = bytes - 1});
            if (!got || got.base.raw != 3 * bytes ||
                got.pointers.raw != ((bytes - 1) << 32 | (bytes - 1)) ||
                verdict(got.base.raw, got.pointers.raw) != rule::none) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("a request asks for nothing that it does not say") {
    CHECK_TWICE([](auto value) {
        auto const it = value(single_range::region{});
        return it.base == 0 && it.bytes == 0 && it.offset == 0;
    });
}

TEST_CASE("a region smaller than 128 bytes or larger than 4 GB is refused (OUT-020,141)") {
    CHECK_TWICE([](auto value) {
        return why_not({.bytes = value(uint64_t{0})}) == rule::OUT_020 &&
               why_not({.bytes = value(uint64_t{64})}) == rule::OUT_020 &&
               why_not({.bytes = value(uint64_t{127})}) == rule::OUT_020 &&
               why_not({.bytes = value(uint64_t{128})}) == rule::none &&
               why_not({.bytes = value(uint64_t{0x1'0000'0000})}) == rule::none &&
               why_not({.bytes = value(uint64_t{0x1'0000'0001})}) == rule::OUT_020 &&
               why_not({.bytes = value(uint64_t{0x2'0000'0000})}) == rule::OUT_020;
    });
    CHECK_TWICE([](auto value) {  // nothing else is said of a region without a byte
        return all_of({.base = value(uint64_t{0x80}), .bytes = 0, .offset = 1}).are(rule::OUT_020);
    });
}

TEST_CASE("a region that no single range can be is refused by its rule (OUT-022..024)") {
    CHECK_TWICE([](auto value) {
        return why_not({.bytes = value(uint64_t{0x300})}) == rule::OUT_022 &&
               why_not({.bytes = value(uint64_t{0xFFFF'FFFF})}) == rule::OUT_022 &&
               why_not({.base = value(uint64_t{0x80}), .bytes = 0x100}) == rule::OUT_023 &&
               why_not({.base = value(uint64_t{0x1'0040}), .bytes = 0x80}) == rule::OUT_023 &&
               why_not({.base = 0x80, .bytes = value(uint64_t{0x80})}) == rule::none &&
               why_not({.bytes = 0x100, .offset = value(uint64_t{0x100})}) == rule::OUT_024 &&
               why_not({.bytes = 0x100, .offset = value(uint64_t{0xFF})}) == rule::none &&
               why_not({.bytes = 0x100, .offset = value(uint64_t{0x1'0000'0000})}) == rule::OUT_024;
    });
}

TEST_CASE("a region beyond the physical width is refused, 2^52 unless it is said (REG-070)") {
    CHECK_TWICE([](auto value) {
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return why_not({.base = high, .bytes = 0x80}) == rule::REG_070 &&
               why_not({.base = high, .bytes = 0x80}, 40) == rule::none &&
               why_not({.base = high - 0x80, .bytes = 0x80}) == rule::none;
    });
    CHECK_TWICE([](auto value) {
        uint64_t const limit = value(uint64_t{1}) << 52;
        return single_range::build({.base = limit - 0x80, .bytes = 0x80}) &&
               single_range::build({.base = limit, .bytes = 0x80}).why == rule::REG_070;
    });
}

TEST_CASE("every rule that a region breaks is told (OUT-020..024, REG-070)") {
    CHECK_TWICE([](auto value) {
        return all_of({.base = value(uint64_t{0x80'0000'0040}), .bytes = 0x60, .offset = 0x60})
                   .are(rule::OUT_020, rule::OUT_022, rule::OUT_023, rule::OUT_024,
                        rule::REG_070) &&
               all_of({.base = value(uint64_t{0x1000}), .bytes = 0x1000}).are();
    });
}

// ------------------------------------------------------------------------------------ ToPA

namespace {

constexpr auto placed(uint64_t base, uint64_t mask_ptrs) -> position {
    return topa::position_in(base_register{base}, pointers{mask_ptrs});
}

constexpr topa::entry four_kb{0x40'0000};

}  // namespace

TEST_CASE("the MSRs hold the table, the number of the entry and the offset (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return placed(value(uint64_t{0x1'0000}), value(uint64_t{0x0000'000A'0000'03FF})) ==
                   position{0x1'0000, 7, 0xA} &&
               placed(value(uint64_t{0x1'0080}), value(uint64_t{0})) == position{0x1'0080, 0, 0} &&
               placed(value(uint64_t{0}), value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})) ==
                   position{0, 0x1FF'FFFF, 0xFFFF'FFFF};
    });
    CHECK_TWICE([](auto value) {
        return topa::mask_ptrs_of(value(position{0x1'0000, 7, 0xA})).raw == 0x0000'000A'0000'03FF &&
               topa::mask_ptrs_of(value(position{})).raw == 0x7F &&
               topa::mask_ptrs_of(value(position{0, 0x1FF'FFFF, 0xFFFF'FFFF})).raw ==
                   0xFFFF'FFFF'FFFF'FFFF;
    });
}

TEST_CASE("an entry has 8 bytes, so the current one stands at table + 8 * index (OUT-050)") {
    CHECK_TWICE([](auto value) {
        return topa::table_pointer(value(position{0x1'0000, 7, 0xA})) == 0x1'0038 &&
               topa::table_pointer(value(position{0x1'0000, 0, 0})) == 0x1'0000 &&
               topa::table_pointer(value(position{0x1'0000, 0x1FF'FFFF, 0})) == 0x1000'FFF8;
    });
}

TEST_CASE("a byte goes to the region's base plus the offset (OUT-051)") {
    CHECK_TWICE([](auto value) {
        return topa::trace_store_phys_addr(value(position{0x1'0000, 0, 0}), four_kb) == 0x40'0000 &&
               topa::trace_store_phys_addr(value(position{0x1'0000, 0, 0xFFE}), four_kb) ==
                   0x40'0FFE &&
               topa::trace_store_phys_addr(position{}, topa::entry{value(uint64_t{0x1000'0114})}) ==
                   0x1000'0000;
    });
}

TEST_CASE("a region is full when as many bytes as it has were written, not one less (OUT-052)") {
    CHECK_TWICE([](auto value) {
        return topa::bytes_left(value(position{0, 0, 0}), four_kb) == 0x1000 &&
               topa::bytes_left(value(position{0, 0, 0xFFF}), four_kb) == 1 &&
               topa::bytes_left(value(position{0, 0, 0x1000}), four_kb) == 0 &&
               topa::bytes_left(value(position{0, 0, 0x1001}), four_kb) == 0 &&
               topa::bytes_left(value(position{0, 0, 0xFFFF'FFFF}), four_kb) == 0 &&
               topa::bytes_left(value(position{0, 0, 1}), topa::entry{0x3C0}) == 0x7FF'FFFF;
    });
}

TEST_CASE("behind a full region comes the next entry, from its first byte (OUT-053)") {
    CHECK_TWICE([](auto value) {
        return topa::behind(value(position{0x1'0000, 0, 0x1000})) == position{0x1'0000, 1, 0} &&
               topa::behind(value(position{0x1'0000, 0x1FF'FFFE, 5})) ==
                   position{0x1'0000, 0x1FF'FFFF, 0};
    });
}

TEST_CASE("a table holds 2^25 entries, and behind the last comes the first (OUT-046,055)") {
    static_assert(topa::last_index == (1U << 25) - 1);
    CHECK_TWICE([](auto value) {  // OC-36
        return topa::behind(value(position{0x1'0000, 0x1FF'FFFF, 0x1000})) ==
                   position{0x1'0000, 0, 0} &&
               topa::mask_ptrs_of(topa::behind(value(position{0, 0x1FF'FFFF, 0}))).raw == 0x7F;
    });
}

TEST_CASE("an END entry leads to entry 0 of the table it names (OUT-047,054)") {
    CHECK_TWICE([](auto value) {
        return topa::through(topa::entry{value(uint64_t{0x2'0001})}) == position{0x2'0000, 0, 0} &&
               topa::through(topa::entry{value(uint64_t{0xF'FFFF'FFFF'F3C1})}) ==
                   position{0xF'FFFF'FFFF'F000, 0, 0};
    });
}

TEST_CASE("OC-12, OC-13: full regions, then END followed at once (OUT-052..054)") {
    CHECK_TWICE([](auto value) {
        topa::entry const table[] = {{0x40'0000}, {0x40'1000}, {0x1'0001}};
        auto const start = placed(value(uint64_t{0x1'0000}), 0x7F);
        auto const second = topa::behind(start);
        auto const end = topa::behind(second);
        return topa::bytes_left(start, table[0]) == 0x1000 &&
               topa::mask_ptrs_of(second).raw == 0xFF && end.index == 2 &&
               topa::through(table[end.index]) == start &&
               topa::mask_ptrs_of(topa::through(table[end.index])).raw == 0x7F;
    });
}

TEST_CASE("OC-15: 64K in X, 4K in Y, then the other table's entry 0 (OUT-142)") {
    CHECK_TWICE([](auto value) {
        topa::entry const table_a[] = {{0x1000'0100}, {0x2000'0000}, {0x2'0001}};
        topa::entry const table_b[] = {{0x3000'0050}};
        auto x = placed(value(uint64_t{0x1'0000}), 0x7F);
        bool const in_x = topa::trace_store_phys_addr(x, table_a[0]) == 0x1000'0000 &&
                          topa::bytes_left(x, table_a[0]) == 0x1'0000;
        x.offset = 0xFFFF;
        bool const last_of_x = topa::trace_store_phys_addr(x, table_a[0]) == 0x1000'FFFF;
        auto const y = topa::behind(x);
        bool const in_y = topa::trace_store_phys_addr(y, table_a[y.index]) == 0x2000'0000 &&
                          topa::bytes_left(y, table_a[y.index]) == 0x1000;
        auto const b = topa::through(table_a[topa::behind(y).index]);
        return in_x && last_of_x && in_y && b == position{0x2'0000, 0, 0} &&
               topa::trace_store_phys_addr(b, table_b[b.index]) == 0x3000'0000;
    });
}

TEST_CASE("address math holds at its extremes (OUT-153)") {
    CHECK_TWICE([](auto value) {  // mask FFFFFFFFH, M = 52
        uint64_t const base = value(uint64_t{0xF'FFFF'0000'0000});
        return stored_at(base, 0xFFFF'FFFF'FFFF'FFFF) == 0xF'FFFF'FFFF'FFFF &&
               moved(value(uint64_t{0xFFFF'FFFF'FFFF'FFFF}), 1) == 0xFFFF'FFFF &&
               moved(value(uint64_t{0xFFFF'FFFF'FFFF'FFFF}), 0x1'0000'0000) ==
                   0xFFFF'FFFF'FFFF'FFFF &&
               verdict(base, 0xFFFF'FFFF'FFFF'FFFF) == rule::none;
    });
    CHECK_TWICE([](auto value) {  // Size 15, index 1FFFFFFH, M = 52
        auto const where = value(position{0xF'FFFF'FFFF'F000, 0x1FF'FFFF, 0x7FF'FFFF});
        auto const current = topa::entry{value(uint64_t{0xF'FFFF'F800'03C0})};
        return topa::table_pointer(where) == 0x10'0000'0FFF'EFF8 &&
               topa::trace_store_phys_addr(where, current) == 0xF'FFFF'FFFF'FFFF &&
               topa::bytes_left(where, current) == 1 &&
               topa::broken_rule(current, where.index, max_phys_addr{52}) == rule::none &&
               topa::behind(where) == position{0xF'FFFF'FFFF'F000, 0, 0};
    });
}

TEST_CASE("positions are equal when table, index and offset are") {
    CHECK_TWICE([](auto value) {
        auto const it = value(position{1, 2, 3});
        return it == position{1, 2, 3} && it != position{0, 2, 3} && it != position{1, 0, 3} &&
               it != position{1, 2, 0} && value(position{}) == position{0, 0, 0};
    });
    CHECK(std::is_trivially_copyable_v<position>);
}

// ------------------------------------------------------------------------------------ the
// catalogue

namespace {

/// A row of the worked cases of tests/spec/output.md; how they are written is in notation.md.
struct worked_case {
    std::string id;
    std::string profile;
    std::string setup;
    std::string operation;
    std::string expected;
    std::string rules;
};

auto trimmed(std::string const& cell) -> std::string {
    auto const first = cell.find_first_not_of(' ');
    return first == std::string::npos ? ""
                                      : cell.substr(first, cell.find_last_not_of(' ') - first + 1);
}

/// The rows that `wanted` matches as `profile | setup | operation`.
auto cases_like(std::string const& wanted) -> std::vector<worked_case> {
    std::vector<worked_case> cases;
    std::istringstream lines{test::read_text("tests/spec/output.md")};
    std::regex const pattern{wanted};
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| OC-")) { continue; }
        std::vector<std::string> cells;
        std::istringstream row{line.substr(1)};
        for (std::string cell; std::getline(row, cell, '|');) { cells.push_back(trimmed(cell)); }
        REQUIRE_MESSAGE(cells.size() == 6, line);
        if (std::regex_match(cells[1] + " | " + cells[2] + " | " + cells[3], pattern)) {
            cases.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]});
        }
    }
    return cases;
}

auto number_of(std::string const& digits, int base = 16) -> uint64_t {
    std::size_t read = 0;
    auto const value = std::stoull(digits, &read, base);
    REQUIRE_MESSAGE(read == digits.size(), digits);
    return value;
}

/// The words `NAME=v` of a cell.
auto values_in(std::string const& cell) -> std::map<std::string, uint64_t> {
    std::map<std::string, uint64_t> values;
    std::regex const item{R"((\w+)=([0-9A-F]+)H?\b)"};
    for (std::sregex_iterator it{cell.begin(), cell.end(), item}, end; it != end; ++it) {
        CHECK(values.emplace((*it)[1], number_of((*it)[2])).second);
    }
    return values;
}

/// The number behind `before` in a cell.
auto number_behind(std::string const& before, std::string const& cell) -> uint64_t {
    std::smatch found;
    REQUIRE_MESSAGE(std::regex_search(cell, found, std::regex{before + " ([0-9A-F]+)"}), cell);
    return number_of(found[1]);
}

auto id_of(rule which) -> std::string {
    auto const id = rule_id{which};
    return {id.view().data(), id.view().size()};
}

}  // namespace

TEST_CASE("single-range cases of the catalogue (OUT-020..024)") {
    int legal = 0;
    int errors = 0;
    for (auto const& row :
         cases_like(R"(.* \| single range, BASE=\w+, MASK_PTRS=\w+ \| enable.*)")) {
        CAPTURE(row.id);
        auto const before = values_in(row.setup);
        auto const after = values_in(row.expected);
        base_register const base{before.at("BASE")};
        pointers const start{before.at("MASK_PTRS")};
        auto const broken = single_range::broken_rule(base, start);
        if (after.at("Error") == 1) {
            ++errors;
            CHECK(row.rules.find(id_of(broken)) != std::string::npos);
            continue;
        }
        ++legal;
        CHECK(broken == rule::none);
        auto const bytes = number_behind("write", row.operation);
        CHECK(single_range::trace_store_phys_addr(base, start) ==
              number_behind("first byte", row.expected));
        CHECK(single_range::trace_store_phys_addr(base, single_range::advanced(start, bytes - 1)) ==
              number_behind("last", row.expected));
        CHECK(single_range::advanced(start, bytes).raw == after.at("MASK_PTRS"));
    }
    CHECK(legal == 5);
    CHECK(errors == 4);
}

TEST_CASE("encode cases of the catalogue (OUT-040,041,043)") {
    auto const cases = cases_like(R"(- \| entry .* \| encode)");
    CHECK(cases.size() == 2);
    for (auto const& row : cases) {
        CAPTURE(row.id);
        auto const fields = values_in(row.setup);
        auto const expected = number_of(row.expected);
        if (fields.at("END") == 1) {
            CHECK(topa::link_to(fields.at("NextTable")).raw == expected);
        } else {
            auto const word = topa::entry{}.with(topa::entry::Size{wrapped{fields.at("Size")}},
                                                 topa::entry::INT{wrapped{fields.at("INT")}},
                                                 topa::entry::STOP{wrapped{fields.at("STOP")}},
                                                 topa::entry::Base{wrapped{fields.at("Base")}});
            CHECK(word.raw == expected);
        }
    }
}

TEST_CASE("decode cases of the catalogue (OUT-040,042)") {
    auto const cases = cases_like(R"(- \| word \w+, M=\d+ \| decode)");
    CHECK(cases.size() == 1);
    for (auto const& row : cases) {
        CAPTURE(row.id);
        topa::entry const word{number_behind("word", row.setup)};
        auto const width = number_of(row.setup.substr(row.setup.find("M=") + 2), 10);
        auto const fields = values_in(row.expected);
        CHECK(word.get<topa::entry::END>() == (fields.at("END") == 1));
        CHECK(word.get<topa::entry::INT>() == (fields.at("INT") == 1));
        CHECK(word.get<topa::entry::STOP>() == (fields.at("STOP") == 1));
        CHECK(underlying(word.get<topa::entry::Size>()) == fields.at("Size"));
        CHECK(word.get<topa::entry::Base>() == fields.at("Base"));
        auto const broken = topa::broken_rule(word, 1, max_phys_addr{static_cast<unsigned>(width)});
        CHECK((row.expected.find("; legal;") != std::string::npos) == (broken == rule::none));
    }
}

TEST_CASE("build and locate cases of the catalogue (OUT-020,050)") {
    auto const built = cases_like(R"(- \| single range, .* \| build)");
    CHECK(built.size() == 1);
    for (auto const& row : built) {
        CAPTURE(row.id);
        auto const wanted = values_in(row.setup);
        auto const expected = values_in(row.expected);
        base_register const base{expected.at("BASE")};
        pointers const start{expected.at("MASK_PTRS")};
        auto const got = single_range::build({.base = wanted.at("Start"),
                                              .bytes = wanted.at("Bytes"),
                                              .offset = wanted.at("Offset")});
        CHECK(got.why == rule::none);
        CHECK(got.base == base);
        CHECK(got.pointers == start);
        CHECK(single_range::mask_of(start) + 1 == wanted.at("Bytes"));
        CHECK(single_range::trace_store_phys_addr(base, start) ==
              wanted.at("Start") + wanted.at("Offset"));
        CHECK(single_range::broken_rule(base, start) == rule::none);
    }
    auto const located = cases_like(R"(- \| ToPA, .* \| locate)");
    CHECK(located.size() == 1);
    for (auto const& row : located) {
        CAPTURE(row.id);
        auto const before = values_in(row.setup);
        auto const expected = values_in(row.expected);
        auto const where = topa::position_in(base_register{before.at("BASE")},
                                             pointers{before.at("MASK_PTRS")});
        CHECK(where.index == expected.at("idx"));
        CHECK(where.offset == expected.at("off"));
        CHECK(topa::table_pointer(where) == expected.at("entry"));
        CHECK(topa::mask_ptrs_of(where).raw == before.at("MASK_PTRS"));
    }
}
