// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/legal.hpp>

#include <ptspec/cpu/presets.hpp>
#include <support/check_twice.hpp>

#include <random>
#include <set>
#include <vector>

using namespace ptspec::cpu;
using namespace ptspec::access;
using namespace ptspec::reg;
using ptspec::rule;

namespace {

using rules = std::set<rule>;

/// The rules that a value of IA32_RTIT_CTL breaks, computed from the numbers of the catalogue:
/// REG-024..028, REG-030..037, REG-040, REG-044.
auto reference_rules(capabilities const& of, uint64_t ctl) -> rules {
    uint32_t const ebx = of.leaf_14_0_ebx.raw;
    uint32_t const ecx = of.leaf_14_0_ecx.raw;
    bool const more = of.leaf_14_0_eax.raw >= 1;
    uint32_t const eax_1 = more ? of.leaf_14_1_eax.raw : 0;
    uint32_t const ebx_1 = more ? of.leaf_14_1_ebx.raw : 0;
    auto const bit = [](uint32_t word, unsigned n) { return (word >> n & 1) != 0; };
    auto const at = [&](unsigned msb, unsigned lsb) {
        return static_cast<unsigned>(ctl >> lsb & ((uint64_t{2} << (msb - lsb)) - 1));
    };
    rules broken;
    auto const needs = [&](bool there, unsigned used, rule which) {
        if (used != 0 && !there) { broken.insert(which); }
    };
    auto const listed = [&](bool there, uint32_t bitmap, unsigned encoding) {
        if (there && encoding != 0 && !bit(bitmap, encoding)) { broken.insert(rule::REG_028); }
    };
    for (unsigned n = 0; n < 64; ++n) {
        bool const reserved = n == 18 || n == 23 || (n >= 28 && n <= 30) || (n >= 48 && n <= 54) ||
                              n >= 57;
        if (reserved && at(n, n) != 0) { broken.insert(rule::REG_044); }
    }
    needs(bit(ecx, 0), at(8, 8), rule::REG_024);
    needs(bit(ecx, 3), at(6, 6), rule::REG_026);
    needs(bit(ebx, 1), at(1, 1) | at(22, 19) | at(27, 24), rule::REG_027);
    needs(bit(ebx, 3), at(9, 9) | at(17, 14), rule::REG_030);
    needs(bit(ebx, 0), at(7, 7), rule::REG_031);
    needs(bit(ebx, 4), at(12, 12) | at(5, 5), rule::REG_032);
    needs(bit(ebx, 5), at(4, 4), rule::REG_033);
    needs(bit(ebx, 6), at(56, 56), rule::REG_034);
    needs(bit(ebx, 7), at(31, 31), rule::REG_035);
    needs(bit(ebx, 8), at(55, 55), rule::REG_036);
    listed(bit(ebx, 3), eax_1 >> 16, at(17, 14));
    listed(bit(ebx, 1), ebx_1 & 0xFFFF, at(22, 19));
    listed(bit(ebx, 1), ebx_1 >> 16, at(27, 24));
    unsigned const ranges = bit(ebx, 2) ? eax_1 & 7 : 0;
    for (unsigned n = 0; n < 4; ++n) {
        unsigned const cfg = at(35 + 4 * n, 32 + 4 * n);
        if (cfg > 2 || (cfg != 0 && n >= ranges)) { broken.insert(rule::REG_037); }
    }
    if (at(0, 0) != 0) {
        if (at(8, 8) == 0 && at(6, 6) == 0 && !bit(ecx, 2)) { broken.insert(rule::REG_025); }
        if (at(13, 13) == 0 && !bit(ebx, 3)) { broken.insert(rule::REG_040); }
    }
    return broken;
}

template <class Word>
auto rules_of(capabilities const& of, Word value) -> rules {
    rules found;
    find_broken_rules(of, value, [&](rule one) { found.insert(one); });
    return found;
}

/// Values that break few rules, some, and many.
auto values_to_try(std::mt19937_64& random) -> std::vector<uint64_t> {
    std::vector<uint64_t> values = {0, ~uint64_t{0}, 0x2109, 0x2009, 0x109, 0x2149};
    for (unsigned n = 0; n < 64; ++n) {
        values.push_back(uint64_t{1} << n);
        values.push_back(uint64_t{1} << n | 0x2109);
        values.push_back(uint64_t{1} << n | 0x1);
    }
    for (unsigned encoding = 0; encoding < 16; ++encoding) {
        for (unsigned const lsb : {14U, 19U, 24U, 32U, 36U, 40U, 44U}) {
            values.push_back(uint64_t{encoding} << lsb);
        }
    }
    for (unsigned i = 0; i < 400; ++i) {
        uint64_t const one = random();
        values.push_back(one);
        values.push_back(one & random() & random() & ~uint64_t{0xFE7F'0000'7084'0000});
        values.push_back(one & ~uint64_t{0xFE7F'CCCC'7084'0000});
    }
    return values;
}

auto processors_to_try(std::mt19937_64& random) -> std::vector<capabilities> {
    std::vector<capabilities> all;
    for (auto const& one : preset::all) { all.push_back(one.value); }
    for (unsigned i = 0; i < 40; ++i) {
        capabilities made = preset::P_FUT;
        auto const next = [&] { return static_cast<uint32_t>(random()); };
        made.leaf_14_0_eax = {next() % 3};
        made.leaf_14_0_ebx = {next() & 0x3FF};
        made.leaf_14_0_ecx = {next() & 0x8000'000F};
        made.leaf_14_1_eax = {next() & 0xFFFF'0707};
        made.leaf_14_1_ebx = {next()};
        all.push_back(made);
    }
    return all;
}

constexpr auto breaks(capabilities const& of, uint64_t ctl, rule which) -> bool {
    return broken_rule(of, ia32_rtit_ctl{ctl}) == which &&
           is_legal(of, ia32_rtit_ctl{ctl}) == (which == rule::none);
}

}  // namespace

// ------------------------------------------------------------------------------------ CTL

TEST_CASE("legality of IA32_RTIT_CTL matches the catalogue, rule by rule "
          "(REG-024..028, REG-030..037, REG-040, REG-044)") {
    std::mt19937_64 random{1};
    unsigned wrong = 0;
    for (auto const& of : processors_to_try(random)) {
        for (uint64_t const value : values_to_try(random)) {
            ia32_rtit_ctl const ctl{value};
            auto const expected = reference_rules(of, value);
            auto const first = broken_rule(of, ctl);
            if (rules_of(of, ctl) != expected || is_legal(of, ctl) != expected.empty() ||
                (expected.empty() ? first != rule::none : expected.count(first) == 0)) {
                ++wrong;
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a bit is writable where it is legal alone or in some encoding") {
    std::mt19937_64 random{2};
    unsigned wrong = 0;
    for (auto const& of : processors_to_try(random)) {
        for (unsigned n = 0; n < 64; ++n) {
            uint64_t const bit = uint64_t{1} << n;
            auto broken = reference_rules(of, bit);
            broken.erase(rule::REG_028);  // another encoding with this bit may be listed
            broken.erase(rule::REG_025);
            broken.erase(rule::REG_040);
            bool const writable = (writable_ctl_mask(of) & bit) != 0;
            if (writable != broken.empty()) { ++wrong; }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("the writable bits of the profiles") {
    CHECK_TWICE([](auto value) {
        // TraceEn, OS, User, CR3Filter, ToPA, TSCEn, DisRETC, BranchEn (REG-039).
        return writable_ctl_mask(value(preset::P_BDW)) == 0x2D8D &&
               writable_ctl_mask(value(preset::P_NONE)) == 0x2C0D;
    });
    CHECK_TWICE([](auto value) {
        return writable_ctl_mask(value(preset::P_SKL)) == 0x0000'0033'0F7B'EF8F &&
               writable_ctl_mask(value(preset::P_ATM)) == 0x0100'0033'0F7B'FFBF &&
               writable_ctl_mask(value(preset::P_FUT)) == 0x0180'3333'8F7B'FFFF &&
               writable_ctl_mask(value(preset::P_SRO)) == 0x0000'0000'0F7B'EE0F &&
               writable_ctl_mask(value(preset::P_FAB)) == 0x0000'0000'0003'EE4D;
    });
}

// The worked cases of tests/spec/registers.md that depend only on the value of CTL.

TEST_CASE("worked cases: outputs (REG-024, REG-025, REG-026)") {
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), 0x2109, rule::none) &&     // RC-09
               breaks(value(preset::P_BDW), 0x2109, rule::none) &&     // RC-25
               breaks(value(preset::P_BDW), 0x2009, rule::REG_025) &&  // RC-26
               breaks(value(preset::P_SRO), 0x2009, rule::none) &&     // RC-28
               breaks(value(preset::P_SRO), 0x2109, rule::REG_024) &&  // RC-29
               breaks(value(preset::P_SRO), 0x100, rule::REG_024) &&   // RC-30
               breaks(value(preset::P_FAB), 0x2049, rule::none) &&     // RC-31
               breaks(value(preset::P_FAB), 0x2149, rule::REG_024) &&  // RC-32
               breaks(value(preset::P_SKL), 0x2149, rule::REG_026);    // RC-33
    });
    CHECK_TWICE([](auto value) {
        // Without TraceEn no output is needed.
        return breaks(value(preset::P_BDW), 0x2008, rule::none) &&
               breaks(value(preset::P_FAB), 0x2009, rule::REG_025) &&
               breaks(value(preset::P_FAB), 0x2008, rule::none);
    });
}

TEST_CASE("worked cases: encodings (REG-027, REG-028, REG-029, REG-030)") {
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), 0xC000, rule::none) &&        // RC-17
               breaks(value(preset::P_SKL), 0x10000, rule::REG_028) &&    // RC-18
               breaks(value(preset::P_SKL), 0x680000, rule::none) &&      // RC-19
               breaks(value(preset::P_SKL), 0x700000, rule::REG_028) &&   // RC-20
               breaks(value(preset::P_SKL), 0x5000000, rule::none) &&     // RC-21
               breaks(value(preset::P_SKL), 0x6000000, rule::REG_028) &&  // RC-22
               breaks(value(preset::P_BDW), 0x2, rule::REG_027) &&        // RC-23
               breaks(value(preset::P_BDW), 0xC000, rule::REG_030) &&     //
               breaks(value(preset::P_BDW), 0, rule::none);
    });
}

TEST_CASE("worked cases: branches (REG-040)") {
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_BDW), 0x109, rule::REG_040) &&  // RC-24
               breaks(value(preset::P_SKL), 0x109, rule::none) &&     // RC-27
               breaks(value(preset::P_BDW), 0x108, rule::none);
    });
}

TEST_CASE("worked cases: ranges (REG-037)") {
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), 0x20'0000'0000, rule::none) &&      // RC-34
               breaks(value(preset::P_SKL), 0x100'0000'0000, rule::REG_037) &&  // RC-35
               breaks(value(preset::P_SKL), 0x3'0000'0000, rule::REG_037) &&    // RC-36
               breaks(value(preset::P_FUT), 0x2222'0000'0000, rule::none) &&    // RC-37
               breaks(value(preset::P_FUT), 0x3000'0000'0000, rule::REG_037) &&
               breaks(value(preset::P_FUT), 0x4000'0000'0000, rule::REG_037) &&
               breaks(value(preset::P_FUT), 0x0F00'0000'0000, rule::REG_037);
    });
}

TEST_CASE("worked cases: features (REG-031..036)") {
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), 0x1000, rule::REG_032) &&               // RC-38
               breaks(value(preset::P_ATM), 0x20, rule::none) &&                    // RC-39
               breaks(value(preset::P_ATM), 0x8000'0000, rule::REG_035) &&          // RC-40
               breaks(value(preset::P_FUT), 0x8000'0000, rule::none) &&             // RC-41
               breaks(value(preset::P_FUT), 0x80'0000'0000'0000, rule::none) &&     // RC-42
               breaks(value(preset::P_ATM), 0x80'0000'0000'0000, rule::REG_036) &&  // RC-43
               breaks(value(preset::P_ATM), 0x100'0000'0000'0000, rule::none) &&    // RC-44
               breaks(value(preset::P_SKL), 0x100'0000'0000'0000, rule::REG_034);   // RC-45
    });
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), 0x10, rule::REG_033) &&
               breaks(value(preset::P_ATM), 0x10, rule::none) &&
               breaks(value(preset::P_BDW), 0x80, rule::none) &&
               breaks(value(preset::P_SRO), 0x80, rule::REG_031);
    });
}

TEST_CASE("worked cases: reserved bits (REG-044)") {
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), 0x4'2108, rule::REG_044) &&             // RC-14
               breaks(value(preset::P_FUT), 0x40'0000'0000'0000, rule::REG_044) &&  // RC-46
               breaks(value(preset::P_FUT), 0x200'0000'0000'0000, rule::REG_044);   // RC-47
    });
}

TEST_CASE("a legal value without use never faults (REG-039, REG-041, REG-047)") {
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_FUT), 0x2101, rule::none) &&               // OS = User = 0
               breaks(value(preset::P_FUT), 0x210B, rule::none) &&               // CYCEn, no TSCEn
               breaks(value(preset::P_FUT), 0x2189, rule::none) &&               // CR3Filter
               breaks(value(preset::P_FUT), 0x80'0000'0000'0109, rule::none) &&  // DisTNT
               breaks(value(preset::P_FUT), 0x8'2109, rule::none) &&             // CycThresh
               breaks(value(preset::P_FUT), 0x2129, rule::none);                 // FUPonPTW
    });
}

TEST_CASE("features and reserved bits are checked before encodings, and what TraceEn needs last") {
    CHECK_TWICE([](auto value) {
        return broken_rule(value(preset::P_BDW), ia32_rtit_ctl{0x4'0003}) == rule::REG_044 &&
               broken_rule(value(preset::P_BDW), ia32_rtit_ctl{0x0003}) == rule::REG_027 &&
               broken_rule(value(preset::P_SKL), ia32_rtit_ctl{0x3'0001'0000}) == rule::REG_037 &&
               broken_rule(value(preset::P_FAB), ia32_rtit_ctl{0x4001}) == rule::REG_028 &&
               broken_rule(value(preset::P_BDW), ia32_rtit_ctl{0x0001}) == rule::REG_025;
    });
}

// ------------------------------------------------------------------------------------ the others

namespace {

template <class Word>
constexpr auto breaks(capabilities const& of, Word value, rule which) -> bool {
    return broken_rule(of, value) == which && is_legal(of, value) == (which == rule::none);
}

}  // namespace

TEST_CASE("worked cases: IA32_RTIT_STATUS (REG-050, REG-052..055)") {
    using status = ia32_rtit_status;
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), status{0x7}, rule::none) &&                  // RC-48
               breaks(value(preset::P_SKL), status{0x30}, rule::none) &&                 // RC-49
               breaks(value(preset::P_SKL), status{0x8}, rule::REG_052) &&               // RC-50
               breaks(value(preset::P_SKL), status{0x40}, rule::REG_054) &&              // RC-51
               breaks(value(preset::P_ATM), status{0xC0}, rule::none) &&                 // RC-52
               breaks(value(preset::P_SKL), status{0x1'FFFF'0000'0000}, rule::none) &&   // RC-53
               breaks(value(preset::P_BDW), status{0x1'0000'0000}, rule::REG_055) &&     // RC-54
               breaks(value(preset::P_SKL), status{0x2'0000'0000'0000}, rule::REG_052);  // RC-55
    });
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), status{0x80}, rule::REG_054) &&
               breaks(value(preset::P_BDW), status{0x1'0000'0000'0000}, rule::REG_055) &&
               breaks(value(preset::P_FUT), status{0x100}, rule::REG_052) &&
               breaks(value(preset::P_BDW), status{0x1}, rule::none) &&  // REG-051
               breaks(value(preset::P_BDW), status{0x1'0000'0048}, rule::REG_052);
    });
}

TEST_CASE("the bits of IA32_RTIT_STATUS that fault (REG-052, REG-054, REG-055)") {
    CHECK_TWICE([](auto value) {
        return faulting_status_mask(value(preset::P_FUT)) == 0xFFFE'0000'FFFF'FF08 &&
               faulting_status_mask(value(preset::P_SKL)) == 0xFFFE'0000'FFFF'FFC8 &&
               faulting_status_mask(value(preset::P_BDW)) == 0xFFFF'FFFF'FFFF'FFC8;
    });
    CHECK(rules_of(preset::P_BDW, ia32_rtit_status{~uint64_t{0}}) ==
          rules{rule::REG_052, rule::REG_054, rule::REG_055});
    CHECK(rules_of(preset::P_FUT, ia32_rtit_status{~uint64_t{0}}) == rules{rule::REG_052});
    CHECK(rules_of(preset::P_BDW, ia32_rtit_status{0x37}).empty());
}

TEST_CASE("worked cases: IA32_RTIT_OUTPUT_BASE (REG-070, REG-071)") {
    using base = ia32_rtit_output_base;
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), base{0x123'4080}, rule::none) &&         // RC-56
               breaks(value(preset::P_SKL), base{0x123'4040}, rule::REG_070) &&      // RC-57
               breaks(value(preset::P_SKL), base{0x80'0000'0000}, rule::REG_070) &&  // RC-58
               breaks(value(preset::P_ATM), base{0x80'0000'0000}, rule::none) &&     // RC-59
               breaks(value(preset::P_SKL), base{0x40'0000'0000}, rule::none) &&
               breaks(value(preset::P_SKL), base{0x1}, rule::REG_070);
    });
    CHECK_TWICE([](auto value) {
        auto part = value(preset::P_SKL);
        part.leaf_80000008_eax = {0};
        bool const narrow = breaks(part, base{0x10'0000'0000}, rule::REG_070) &&
                            breaks(part, base{0x8'0000'0000}, rule::none);
        part.leaf_80000008_eax = {0x30FF};  // an impossible width
        return narrow && breaks(part, base{0x8000'0000'0000'0000}, rule::none) &&
               breaks(part, base{0x40}, rule::REG_070);
    });
}

TEST_CASE("IA32_RTIT_OUTPUT_MASK_PTRS accepts every value (REG-072, REG-073)") {
    using mask_ptrs = ia32_rtit_output_mask_ptrs;
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), mask_ptrs{0}, rule::none) &&           // RC-60
               breaks(value(preset::P_SKL), mask_ptrs{~uint64_t{0}}, rule::none);  // RC-61
    });
}

TEST_CASE("worked cases: IA32_RTIT_CR3_MATCH (REG-074)") {
    using match = ia32_rtit_cr3_match;
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), match{0x1010}, rule::REG_074) &&              // RC-62
               breaks(value(preset::P_SKL), match{0xFFFF'FFFF'FFFF'FFE0}, rule::none) &&  // RC-63
               breaks(value(preset::P_SKL), match{0x1}, rule::REG_074);
    });
}

TEST_CASE("worked cases: IA32_RTIT_ADDRn (REG-076)") {
    using addr = ia32_rtit_addr;
    CHECK_TWICE([](auto value) {
        return breaks(value(preset::P_SKL), addr{0x8000'0000'0000}, rule::REG_076) &&      // RC-64
               breaks(value(preset::P_SKL), addr{0xFFFF'8000'0000'0000}, rule::none) &&    // RC-65
               breaks(value(preset::P_FUT), addr{0x8000'0000'0000}, rule::none) &&         // RC-66
               breaks(value(preset::P_FUT), addr{0x100'0000'0000'0000}, rule::REG_076) &&  // RC-67
               breaks(value(preset::P_SKL), addr{0x7FFF'FFFF'FFFF}, rule::none);
    });
}

TEST_CASE("each broken rule of the other registers is found once") {
    CHECK(rules_of(preset::P_SKL, ia32_rtit_output_base{1}) == rules{rule::REG_070});
    CHECK(rules_of(preset::P_SKL, ia32_rtit_cr3_match{1}) == rules{rule::REG_074});
    CHECK(rules_of(preset::P_SKL, ia32_rtit_addr{uint64_t{1} << 63}) == rules{rule::REG_076});
    CHECK(rules_of(preset::P_SKL, ia32_rtit_output_mask_ptrs{1}).empty());
    CHECK(rules_of(preset::P_SKL, ia32_rtit_addr{0}).empty());
}
