// SPDX-License-Identifier: BSL-1.0
// tests/access/exhaustive.cpp compares the rules with an independent formulation, value by value.
#include <ptspec/access/legal.hpp>

#include <ptspec/cpu/presets.hpp>
#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>
#include <support/reference_rules.hpp>

#include <set>
#include <vector>

using namespace ptspec::cpu;
using namespace ptspec::access;
using namespace ptspec::reg;
using ptspec::rule;

namespace {

using rules = std::set<rule>;

template <class Word>
auto rules_of(capabilities const& of, Word value) -> rules {
    rules found;
    find_broken_rules(of, value, [&](rule one) { found.insert(one); });
    return found;
}

auto processors_to_try(ptspec::test::random_numbers& random) -> std::vector<capabilities> {
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

/// The numbers on which the rules about CTL depend, for the independent formulation.
auto numbers_of(capabilities const& of) -> reference::processor {
    reference::processor to;
    to.eax0 = of.leaf_14_0_eax.raw;
    to.ebx0 = of.leaf_14_0_ebx.raw;
    to.ecx0 = of.leaf_14_0_ecx.raw;
    to.eax1 = of.leaf_14_1_eax.raw;
    to.ebx1 = of.leaf_14_1_ebx.raw;
    return to;
}

}  // namespace

// ------------------------------------------------------------------------------------ CTL

TEST_CASE("a bit is writable where it is legal alone or in some encoding") {
    ptspec::test::random_numbers random{2};
    unsigned wrong = 0;
    for (auto const& of : processors_to_try(random)) {
        for (unsigned n = 0; n < 64; ++n) {
            uint64_t const bit = uint64_t{1} << n;
            auto broken = reference::broken_by_ctl(numbers_of(of), {}, bit,
                                                   reference::vmx_text::newer);
            // REG-028: another encoding with this bit may be listed.
            for (unsigned const of_more_bits : {25U, 28U, 40U}) {
                broken.bits[0] &= ~(uint64_t{1} << of_more_bits);
            }
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

TEST_CASE("features and reserved bits are checked before encodings, and what TraceEn needs last") {
    CHECK_TWICE([](auto value) {
        return broken_rule(value(preset::P_BDW), ia32_rtit_ctl{0x4'0003}) == rule::REG_044 &&
               broken_rule(value(preset::P_BDW), ia32_rtit_ctl{0x0003}) == rule::REG_027 &&
               broken_rule(value(preset::P_SKL), ia32_rtit_ctl{0x3'0001'0000}) == rule::REG_037 &&
               broken_rule(value(preset::P_FAB), ia32_rtit_ctl{0x4001}) == rule::REG_028 &&
               broken_rule(value(preset::P_BDW), ia32_rtit_ctl{0x0001}) == rule::REG_025 &&
               broken_rule(value(preset::P_BDW), ia32_rtit_status{0x1'0000'0048}) == rule::REG_052;
    });
}

// ------------------------------------------------------------------------------------ the others

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

TEST_CASE("an impossible MAXPHYADDR leaves only bits 6:0 of the output base reserved (REG-071)") {
    CHECK_TWICE([](auto value) {
        auto of = preset::P_SKL;
        of.leaf_80000008_eax = {value(0x30FFU)};
        return broken_rule(of, ia32_rtit_output_base{0x8000'0000'0000'0000}) == rule::none &&
               broken_rule(of, ia32_rtit_output_base{0x40}) == rule::REG_070;
    });
}

TEST_CASE("each broken rule of the other registers is found once") {
    CHECK(rules_of(preset::P_SKL, ia32_rtit_output_base{1}) == rules{rule::REG_070});
    CHECK(rules_of(preset::P_SKL, ia32_rtit_cr3_match{1}) == rules{rule::REG_074});
    CHECK(rules_of(preset::P_SKL, ia32_rtit_addr{uint64_t{1} << 63}) == rules{rule::REG_076});
    CHECK(rules_of(preset::P_SKL, ia32_rtit_output_mask_ptrs{1}).empty());
    CHECK(rules_of(preset::P_SKL, ia32_rtit_addr{0}).empty());
}
