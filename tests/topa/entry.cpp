// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>

using ptspec::max_phys_addr;
using ptspec::rule;
using ptspec::wrapped;
using namespace ptspec::topa;

namespace {

constexpr auto all = ~uint64_t{0};

}  // namespace

// ------------------------------------------------------------------------------------ sizes

TEST_CASE("a region has 4096 << Size bytes (OUT-041)") {
    CHECK_TWICE([](auto value) {
        return bytes_in(value(region_size::size_4K)) == 0x1000 &&
               bytes_in(value(region_size::size_8K)) == 0x2000 &&
               bytes_in(value(region_size::size_16K)) == 0x4000 &&
               bytes_in(value(region_size::size_32K)) == 0x8000 &&
               bytes_in(value(region_size::size_64K)) == 0x1'0000 &&
               bytes_in(value(region_size::size_128K)) == 0x2'0000 &&
               bytes_in(value(region_size::size_256K)) == 0x4'0000 &&
               bytes_in(value(region_size::size_512K)) == 0x8'0000;
    });
    CHECK_TWICE([](auto value) {
        return bytes_in(value(region_size::size_1M)) == 0x10'0000 &&
               bytes_in(value(region_size::size_2M)) == 0x20'0000 &&
               bytes_in(value(region_size::size_4M)) == 0x40'0000 &&
               bytes_in(value(region_size::size_8M)) == 0x80'0000 &&
               bytes_in(value(region_size::size_16M)) == 0x100'0000 &&
               bytes_in(value(region_size::size_32M)) == 0x200'0000 &&
               bytes_in(value(region_size::size_64M)) == 0x400'0000 &&
               bytes_in(value(region_size::size_128M)) == 0x800'0000;
    });
}

TEST_CASE("only the low four bits of a region size are used as a shift") {
    CHECK_TWICE([](auto value) {
        return bytes_in(value(region_size{16})) == 0x1000 &&
               bytes_in(value(region_size{0xFF})) == 0x800'0000;
    });
}

// ------------------------------------------------------------------------------------ the word

TEST_CASE("an entry's fields are END 0, INT 2, STOP 4, Size 9:6, Base 63:12 (OUT-040)") {
    CHECK_TWICE([](auto value) {
        auto const ones = wrapped{value(all)};
        return entry{}.with(entry::END{ones}).raw == 1 && entry{}.with(entry::INT{ones}).raw == 4 &&
               entry{}.with(entry::STOP{ones}).raw == 0x10 &&
               entry{}.with(entry::Size{ones}).raw == 0x3C0 &&
               entry{}.with(entry::Base{ones}).raw == 0xFFFF'FFFF'FFFF'F000;
    });
    CHECK_TWICE([](auto value) {
        auto const every_other = entry{value(uint64_t{0xFFFF'FFFF'FFFF'FFEB})};
        return every_other.get<entry::END>() && !every_other.get<entry::INT>() &&
               !every_other.get<entry::STOP>() &&
               every_other.get<entry::Size>() == region_size::size_128M;
    });
}

TEST_CASE("bits 1, 3, 5, 11:10 and 63:M of an entry are reserved (OUT-040)") {
    CHECK_TWICE([](auto value) {
        return entry::reserved_mask() == 0xC2A &&
               entry::reserved_mask(value(36U)) == 0xFFFF'FFF0'0000'0C2A &&
               entry::reserved_mask(value(39U)) == 0xFFFF'FF80'0000'0C2A &&
               entry::reserved_mask(value(46U)) == 0xFFFF'C000'0000'0C2A &&
               entry::reserved_mask(value(52U)) == 0xFFF0'0000'0000'0C2A &&
               entry::forced_1_mask() == 0 && entry::write_ignored_mask() == 0;
    });
}

TEST_CASE("an output entry is the word 12340104 (OUT-040,041)") {
    CHECK_TWICE([](auto value) {  // OC-46
        auto const it = entry{}.with(
            entry::END{false}, entry::Base{wrapped{value(uint64_t{0x1234'0000})}},
            entry::Size{region_size::size_64K}, entry::INT{value(true)}, entry::STOP{false});
        return it.raw == 0x1234'0104;
    });
}

TEST_CASE("the word 7FFE000254 is a legal entry where M is 39 (OUT-040,042)") {
    CHECK_TWICE([](auto value) {  // OC-48
        auto const it = entry{value(uint64_t{0x7F'FE00'0254})};
        return !it.get<entry::END>() && it.get<entry::INT>() && it.get<entry::STOP>() &&
               it.get<entry::Size>() == region_size::size_2M &&
               it.get<entry::Base>() == 0x7F'FE00'0000 &&
               broken_rule(it, {}, {{39}}) == rule::none &&
               bytes_in(it.get<entry::Size>()) == 0x20'0000;
    });
}

TEST_CASE("Base keeps address bits 51:48 (OUT-044)") {
    CHECK_TWICE([](auto value) {
        auto const it = entry{}.with(entry::Base{wrapped{value(uint64_t{0xF'8000'0000'1000})}});
        return it.raw == 0xF'8000'0000'1000 && it.get<entry::Base>() == 0xF'8000'0000'1000 &&
               broken_rule(it, {}, {{52}}) == rule::none;
    });
}

// ------------------------------------------------------------------------------------ END entries

TEST_CASE("the entry that links to the table at 5F000 is 5F001 (OUT-043)") {
    CHECK_TWICE([](auto value) {  // OC-47
        return link_to(value(uint64_t{0x5'F000})).raw == 0x5'F001;
    });
    CHECK_TWICE([](auto value) {
        auto const it = end_entry{}.with(end_entry::END{value(true)},
                                         end_entry::NextTable{0x5'F000});
        return it.raw == 0x5'F001;
    });
}

TEST_CASE("an END entry has END, Size and NextTable; INT and STOP are reserved (OUT-043)") {
    CHECK_TWICE([](auto value) {
        auto const ones = wrapped{value(all)};
        return end_entry{}.with(end_entry::END{ones}).raw == 1 &&
               end_entry{}.with(end_entry::Size{ones}).raw == 0x3C0 &&
               end_entry{}.with(end_entry::NextTable{ones}).raw == 0xFFFF'FFFF'FFFF'F000;
    });
    CHECK_TWICE([](auto value) {
        return end_entry::reserved_mask() == 0xC3E &&
               end_entry::reserved_mask(value(39U)) == 0xFFFF'FF80'0000'0C3E &&
               end_entry::forced_1_mask() == 1 && end_entry::write_ignored_mask() == 0;
    });
}

TEST_CASE("a link keeps address bits 63:12 and drops bits 11:0") {
    CHECK_TWICE([](auto value) {
        return link_to(value(uint64_t{0xF'FFFF'FFFF'F000})).raw == 0xF'FFFF'FFFF'F001 &&
               link_to(value(uint64_t{0x1FFF})).raw == 0x1001 &&
               link_to(value(uint64_t{0})).raw == 1;
    });
}

// ------------------------------------------------------------------------------------ the rules

namespace {

/// The address of the tables in these tests.
constexpr uint64_t table = 0x1'0000;

constexpr auto verdict(uint64_t word, uint32_t index = 1, unsigned width = 39) -> rule {
    return broken_rule(entry{word}, {table, index}, {{width}});
}
/// On a processor without MENTRY.
constexpr auto narrow_verdict(uint64_t word, uint32_t index) -> rule {
    return broken_rule(entry{word}, {table, index}, {{39}, false});
}

}  // namespace

TEST_CASE("a reserved bit is an error in either kind of entry (OUT-060)") {
    CHECK_TWICE([](auto value) {  // OC-23, OC-24 and the other three
        return verdict(value(uint64_t{0x40'0000})) == rule::none &&
               verdict(value(uint64_t{0x40'0002})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0008})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0020})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0400})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0800})) == rule::OUT_060;
    });
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x40'0001})) == rule::none &&
               verdict(value(uint64_t{0x40'0003})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0009})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0021})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0401})) == rule::OUT_060 &&
               verdict(value(uint64_t{0x40'0801})) == rule::OUT_060;
    });
}

TEST_CASE("a region is aligned to its own size (OUT-042,062)") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x40'1040})) == rule::OUT_062 &&  // OC-25: 8K at 4K
               verdict(value(uint64_t{0x40'2040})) == rule::none &&
               verdict(value(uint64_t{0x40'1000})) == rule::none;
    });
    CHECK_TWICE([](auto value) {  // for every size: off by half a region, and aligned
        for (uint64_t size = 1; size < 16; ++size) {
            uint64_t const bytes = value(uint64_t{0x1000}) << size;
            if (verdict(size << 6 | bytes) != rule::none ||
                verdict(size << 6 | bytes / 2) != rule::OUT_062 ||
                verdict(size << 6 | (bytes + 0x1000)) != rule::OUT_062) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("bits 20:12 of the base of a 2 MB region are 0 (OUT-140)") {
    CHECK_TWICE([](auto value) {
        for (unsigned bit = 12; bit <= 20; ++bit) {
            if (verdict(value(uint64_t{0x240}) | uint64_t{1} << bit) != rule::OUT_062) {
                return false;
            }
        }
        return verdict(value(uint64_t{0x20'0240})) == rule::none;
    });
}

TEST_CASE("the smallest region has 4 KB, the largest 128 MB (OUT-141)") {
    CHECK_TWICE([](auto value) {
        return bytes_in(entry{value(uint64_t{0})}.get<entry::Size>()) == 4 * 1024 &&
               bytes_in(entry{value(uint64_t{0x3C0})}.get<entry::Size>()) == 128 * 1024 * 1024;
    });
}

TEST_CASE("every one of the 16 sizes is legal (OUT-069)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t size = 0; size < 16; ++size) {
            if (verdict(value(size << 6)) != rule::none) { return false; }
        }
        return true;
    });
}

TEST_CASE("an address is below 2^MAXPHYADDR in either kind of entry (OUT-063)") {
    CHECK_TWICE([](auto value) {  // OC-26 and OC-28: bit 39
        return verdict(value(uint64_t{0x80'0000'0000}), 0, 39) == rule::OUT_063 &&
               verdict(value(uint64_t{0x80'0000'0000}), 0, 42) == rule::none &&
               verdict(value(uint64_t{0x7F'FFFF'F000}), 0, 39) == rule::none &&
               verdict(value(uint64_t{0x80'0000'0001}), 1, 39) == rule::OUT_063 &&
               verdict(value(uint64_t{0x7F'FFFF'F001}), 1, 39) == rule::none;
    });
    CHECK_TWICE([](auto value) {
        for (unsigned const width : {36U, 39U, 46U, 52U}) {
            uint64_t const limit = value(uint64_t{1}) << width;
            if (verdict(limit, 0, width) != rule::OUT_063 ||
                verdict(limit | 1, 1, width) != rule::OUT_063 ||
                verdict(limit - 0x1000, 0, width) != rule::none ||
                verdict(uint64_t{1} << 63, 0, width) != rule::OUT_063) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("an END entry has neither INT nor STOP, and any Size (OUT-043,065)") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x1'0001})) == rule::none &&
               verdict(value(uint64_t{0x1'0005})) == rule::OUT_065 &&  // OC-29
               verdict(value(uint64_t{0x1'0011})) == rule::OUT_065 &&
               verdict(value(uint64_t{0x1'0015})) == rule::OUT_065 &&
               verdict(value(uint64_t{0x1'03C1})) == rule::none &&
               verdict(value(uint64_t{0x1'0014})) == rule::none;
    });
}

TEST_CASE("a table does not start with END (OUT-066)") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x40'0001}), 0) == rule::OUT_066 &&  // OC-27
               verdict(value(uint64_t{0x40'0001}), 1) == rule::none &&
               verdict(value(uint64_t{0x40'0001}), 0x1FF'FFFF) == rule::none &&
               verdict(value(uint64_t{0x40'0000}), 0) == rule::none;
    });
}

TEST_CASE("of several broken rules the one with the lowest number is returned") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x8000'0000'0000'1842}), 0) == rule::OUT_060 &&
               verdict(value(uint64_t{0x8000'0000'0000'1040}), 0) == rule::OUT_062 &&
               verdict(value(uint64_t{0x8000'0000'0000'1005}), 0) == rule::OUT_063 &&
               verdict(value(uint64_t{0x1005}), 0) == rule::OUT_065;
    });
}

// ------------------------------------------------------------------------------------ all of them

namespace {

/// The broken rules, in the order in which they are reported.
struct rules {
    rule reported[8] = {};
    size_t count = 0;

    constexpr void operator()(rule broken) noexcept { reported[count++] = broken; }

    template <class... Rules>
    [[nodiscard]] constexpr auto are(Rules... wanted) const noexcept -> bool {
        size_t at = 0;
        return count == sizeof...(Rules) && (... && (reported[at++] == wanted));
    }
};

constexpr auto rules_without_place(uint64_t word, unsigned width = 39) -> rules {
    rules found;
    find_broken_rules(entry{word}, max_phys_addr{width}, found);
    return found;
}
constexpr auto at_index(uint64_t word, uint32_t index) -> rules {
    rules found;
    find_broken_rules(entry{word}, {table, index}, {{39}}, found);
    return found;
}
constexpr auto of_base(uint64_t word, uint64_t base, unsigned width = 39) -> rules {
    rules found;
    find_broken_rules_of_base(entry{word}, base, max_phys_addr{width}, found);
    return found;
}
/// On a processor without MENTRY.
constexpr auto narrow(uint64_t word, uint32_t index, uint64_t where = table) -> rules {
    rules found;
    find_broken_rules(entry{word}, {where, index}, {{39}, false}, found);
    return found;
}

}  // namespace

TEST_CASE("find_broken_rules() reports every broken rule of an entry, by number (OUT-072)") {
    CHECK_TWICE([](auto value) {
        return at_index(value(uint64_t{0x40'0000}), 0).are() &&
               at_index(value(uint64_t{0x8000'0000'0000'1842}), 0)
                   .are(rule::OUT_060, rule::OUT_062, rule::OUT_063) &&
               at_index(value(uint64_t{0x8000'0000'0000'1817}), 0)
                   .are(rule::OUT_060, rule::OUT_063, rule::OUT_065, rule::OUT_066) &&
               at_index(value(uint64_t{0x8000'0000'0000'1817}), 1)
                   .are(rule::OUT_060, rule::OUT_063, rule::OUT_065);
    });
}

TEST_CASE("most rules of an entry do not depend on its place (OUT-060,062,063,065)") {
    CHECK_TWICE([](auto value) {
        return rules_without_place(value(uint64_t{0x1'0001})).are() &&
               rules_without_place(value(uint64_t{0x8000'0000'0000'1842}))
                   .are(rule::OUT_060, rule::OUT_062, rule::OUT_063) &&
               rules_without_place(value(uint64_t{0x80'0000'0011}))
                   .are(rule::OUT_063, rule::OUT_065) &&
               rules_without_place(value(uint64_t{0x80'0000'0005}), 40).are(rule::OUT_065);
    });
}

TEST_CASE("address bits that an entry does not hold are checked, too (OUT-061,062,063)") {
    CHECK_TWICE([](auto value) {
        return of_base(1, value(uint64_t{0x5'F000})).are() &&
               of_base(1, value(uint64_t{0x5'F800})).are(rule::OUT_061) &&
               of_base(0x3C1, value(uint64_t{0x1000})).are() &&
               of_base(0, value(uint64_t{0x5'F800})).are(rule::OUT_062) &&
               of_base(0, value(uint64_t{0x5'F001})).are(rule::OUT_062) &&
               of_base(0, value(uint64_t{0x5'F000})).are() &&
               of_base(0x40, value(uint64_t{0x5'F000})).are(rule::OUT_062);
    });
    CHECK_TWICE([](auto value) {
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return of_base(0, high).are(rule::OUT_063) && of_base(0, high, 40).are() &&
               of_base(1, high | 1).are(rule::OUT_061, rule::OUT_063) &&
               of_base(0, high | 1).are(rule::OUT_062, rule::OUT_063);
    });
}

TEST_CASE("without MENTRY only entry 0 is a region (OUT-067)") {
    CHECK_TWICE([](auto value) {
        return narrow(value(uint64_t{0x80'0080}), 0).are() &&
               narrow(value(uint64_t{0x90'0000}), 1).are(rule::OUT_067) &&  // OC-41
               narrow(value(uint64_t{0x90'0000}), 0x1FF'FFFF).are(rule::OUT_067) &&
               at_index(value(uint64_t{0x90'0000}), 1).are();
    });
}

TEST_CASE("without MENTRY a table links to itself (OUT-068,100)") {
    CHECK_TWICE([](auto value) {
        return narrow(value(uint64_t{0x1'0001}), 1).are() &&
               narrow(value(uint64_t{0x2'0001}), 1).are(rule::OUT_068) &&  // OC-40
               narrow(value(uint64_t{0xF001}), 1).are(rule::OUT_068) &&
               narrow(value(uint64_t{0x2'03C1}), 1, 0x2'0000).are() &&
               at_index(value(uint64_t{0x2'0001}), 1).are();
    });
}

TEST_CASE(
    "without MENTRY the other rules still hold and come first (OUT-060,062,063,065..068,072)") {
    CHECK_TWICE([](auto value) {
        return narrow(value(uint64_t{0x8000'0000'0002'0817}), 0)
                   .are(rule::OUT_060, rule::OUT_063, rule::OUT_065, rule::OUT_066,
                        rule::OUT_068) &&
               narrow(value(uint64_t{0x8000'0000'0000'1842}), 2)
                   .are(rule::OUT_060, rule::OUT_062, rule::OUT_063, rule::OUT_067) &&
               narrow(value(uint64_t{0x1'0001}), 0).are(rule::OUT_066);
    });
    CHECK_TWICE([](auto value) {
        return narrow_verdict(value(uint64_t{0x2'0005}), 1) == rule::OUT_065 &&
               narrow_verdict(value(uint64_t{0x2'0001}), 1) == rule::OUT_068 &&
               narrow_verdict(value(uint64_t{0x2'0000}), 1) == rule::OUT_067 &&
               narrow_verdict(value(uint64_t{0x2'0000}), 0) == rule::none;
    });
}

// ------------------------------------------------------------------------------------ limits

TEST_CASE("default limits are 52 address bits and MENTRY") {
    CHECK_TWICE([](auto value) {
        auto const by_default = value(limits{});
        auto const narrow_limits = value(limits{.width = {39}, .many_entries = false});
        return by_default.width.bits == 52 && by_default.many_entries &&
               narrow_limits.width.bits == 39 && !narrow_limits.many_entries &&
               narrow_limits == limits{{39}, false} && narrow_limits != limits{{39}, true} &&
               narrow_limits != limits{{40}, false};
    });
}

TEST_CASE("places are equal when table and index are equal") {
    CHECK_TWICE([](auto value) {
        auto const it = value(position{0x1000, 2});
        return it == position{0x1000, 2} && it != position{0x1000, 1} &&
               it != position{0x2000, 2} && value(position{}) == position{0, 0};
    });
}
