// SPDX-License-Identifier: BSL-1.0
// Also tests/access/exhaustive.cpp.
#include <ptspec/access/check.hpp>
#include <ptspec/access/pt_msrs.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::outcome;
using access::msr_state;
using cpu::capabilities;
namespace preset = cpu::preset;

namespace {

constexpr msr_state cold{};
constexpr msr_state tracing{.ctl = {0x2109}};

/// True when a write raises #GP by `why`, and all functions agree on it.
constexpr auto breaks(rule why, capabilities const& of, msr_state const& now, uint32_t index,
                      uint64_t value) -> bool {
    auto const verdict = access::check_write(of, now, index, value);
    return !verdict && verdict.what == outcome::general_protection && verdict.broken == why &&
           access::write_faults(of, now, index, value) &&
           access::broken_rule(of, now, index, value) == why;
}
constexpr auto takes(capabilities const& of, msr_state const& now, uint32_t index, uint64_t value)
    -> bool {
    auto const verdict = access::check_write(of, now, index, value);
    return verdict && verdict.broken == rule::none &&
           !access::write_faults(of, now, index, value) &&
           access::broken_rule(of, now, index, value) == rule::none;
}

constexpr auto reads(capabilities const& of, uint32_t index) -> bool {
    auto const verdict = access::check_read(of, index);
    return verdict && verdict.broken == rule::none;
}

/// The rules that a write breaks, in the order in which they are found.
struct found_rules {
    rule ids[16] = {};
    unsigned count = 0;
    constexpr void operator()(rule one) { ids[count++] = one; }
};
constexpr auto all_broken(capabilities const& of, msr_state const& now, uint32_t index,
                          uint64_t value) -> found_rules {
    found_rules found;
    access::find_broken_rules(of, now, index, value, {}, found);
    return found;
}

}  // namespace

// ------------------------------------------------------------------------------ who may access

TEST_CASE("above CPL 0 every access faults before any other check (REG-002)") {
    CHECK_TWICE([](auto value) {
        for (unsigned cpl = value(1U); cpl < 4; ++cpl) {
            auto const write = access::check_write(preset::P_NONE, tracing, 0x570, 0, cpl);
            auto const legal = access::check_write(preset::P_SKL, cold, 0x570, 0, cpl);
            if (!access::check_write(preset::P_SKL, cold, 0x570, 0)) { return false; }  // CPL 0
            auto const read = access::check_read(preset::P_SKL, 0x571, cpl);
            auto const other = access::check_read(preset::P_SKL, 0xDA0, cpl);
            access::verdict const expected{outcome::general_protection, rule::REG_002};
            if (write != expected || legal != expected || read != expected || other != expected) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("55FH and 588H are not covered, at any CPL (REG-017)") {
    CHECK_TWICE([](auto value) {
        access::verdict const expected{outcome::not_covered, rule::none};
        return access::check_read(preset::P_FUT, value(0x588U)) == expected &&
               access::check_write(preset::P_FUT, cold, value(0x588U), 1) == expected &&
               access::check_write(preset::P_FUT, cold, value(0x588U), 1, 3) == expected &&
               access::check_read(preset::P_NONE, value(0x55FU), 3) == expected &&
               !access::write_faults(preset::P_NONE, cold, value(0x588U), 1);
    });
}

TEST_CASE("no check models the trigger MSRs: 588H and up are not covered (REG-218)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = 0x588; index < 0x600; ++index) {
            if (access::check_write(preset::P_FUT, cold, value(index), 0x7F).what !=
                outcome::not_covered) {
                return false;
            }
        }
        return true;
    });
}

// ------------------------------------------------------------------------------ CTL

TEST_CASE("a write of CTL faults neither for the output MSRs nor for STATUS (REG-042, 043)") {
    CHECK_TWICE([](auto value) {
        msr_state bad;
        bad.output.base = {value(uint64_t{0x80})};  // no ToPA table can start there
        bad.output.mask_ptrs = {0xFFFF'FFFF'0000'05FF};
        msr_state stopped;
        stopped.status = {value(uint64_t{0x20})};
        msr_state failed;
        failed.status = {value(uint64_t{0x10})};
        return takes(preset::P_SKL, bad, 0x570, 0x2101) &&
               takes(preset::P_SKL, bad, 0x570, 0x2001) &&
               takes(preset::P_SKL, stopped, 0x570, 0x2101) &&
               takes(preset::P_SKL, failed, 0x570, 0x2101);
    });
}

TEST_CASE("all broken rules are found, the most specific first") {
    CHECK_TWICE([](auto value) {
        auto const many = all_broken(preset::P_SKL, tracing, 0x570, value(uint64_t{0x4'4041}));
        auto const vmx = [&] {
            auto now = cold;
            now.in_vmx_operation = true;
            return all_broken(preset::P_BDW, now, 0x570, value(uint64_t{0x1}));
        }();
        auto const base = all_broken(preset::P_SKL, tracing, 0x560, value(uint64_t{0x1}));
        auto const none = all_broken(preset::P_SKL, cold, 0x560, value(uint64_t{0x1000}));
        return many.count == 4 && many.ids[0] == rule::REG_044 && many.ids[1] == rule::REG_026 &&
               many.ids[2] == rule::REG_028 && many.ids[3] == rule::REG_021 && vmx.count == 3 &&
               vmx.ids[0] == rule::REG_121 && vmx.ids[1] == rule::REG_025 &&
               vmx.ids[2] == rule::REG_040 && base.count == 2 && base.ids[0] == rule::REG_004 &&
               base.ids[1] == rule::REG_070 && none.count == 0;
    });
}

// ------------------------------------------------------------------------------ related MSRs

TEST_CASE("IA32_PERF_GLOBAL_STATUS is read-only; 390H and 391H write it (REG-203)") {
    CHECK_TWICE([](auto value) {
        uint64_t const bit_55 = value(uint64_t{1}) << 55;
        return breaks(rule::REG_203, preset::P_SKL, cold, 0x38E, 0) &&
               breaks(rule::REG_203, preset::P_NONE, cold, 0x38E, bit_55) &&
               reads(preset::P_SKL, 0x38E) && takes(preset::P_SKL, cold, 0x390, bit_55) &&
               takes(preset::P_SKL, cold, 0x391, bit_55) &&
               takes(preset::P_SKL, tracing, 0x390, bit_55);
    });
}

TEST_CASE("bit 55 exists with ToPA, whatever CTL holds, and others are reserved (REG-204, 006)") {
    CHECK_TWICE([](auto value) {
        uint64_t const bit_55 = value(uint64_t{1}) << 55;
        auto hidden = preset::P_SKL;
        hidden.leaf_07_0_ebx = {};
        uint32_t const both[] = {0x390, 0x391};
        for (uint32_t const index : both) {
            if (!breaks(rule::REG_204, preset::P_SRO, cold, index, bit_55) ||
                !breaks(rule::REG_204, preset::P_NONE, cold, index, bit_55) ||
                !breaks(rule::REG_204, hidden, cold, index, bit_55) ||
                !takes(preset::P_NONE, cold, index, 1) ||
                !breaks(rule::REG_006, preset::P_SKL, cold, index, bit_55 >> 1) ||
                !breaks(rule::REG_006, preset::P_SKL, cold, index, bit_55 | bit_55 << 1)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("bit 54 exists with architectural PEBS, and is reserved without it (REG-007, REG-203)") {
    CHECK_TWICE([](auto value) {
        uint64_t const bit_54 = value(uint64_t{1}) << 54;
        auto with_pebs = preset::P_SKL;
        with_pebs.perf_capabilities = {0xF00};
        auto with_older = preset::P_SKL;
        with_older.perf_capabilities = {0xFFFF'FFFF'FFFF'F7FF};
        uint32_t const both[] = {0x390, 0x391};
        for (uint32_t const index : both) {
            if (!takes(with_pebs, cold, index, bit_54) ||
                !breaks(rule::REG_006, with_pebs, cold, index, bit_54 >> 1) ||
                !breaks(rule::REG_006, with_older, cold, index, bit_54)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("IA32_XSS has PT_STATE where CPUID.0DH.1 enumerates it (REG-140)") {
    CHECK_TWICE([](auto value) {
        uint64_t const pt_state = value(uint64_t{0x100});
        auto without_xsaves = preset::P_SKL;
        without_xsaves.leaf_0d_1_eax = {};
        return takes(preset::P_SKL, cold, 0xDA0, pt_state) &&
               breaks(rule::REG_140, preset::P_BDW, cold, 0xDA0, pt_state) &&
               breaks(rule::REG_140, without_xsaves, cold, 0xDA0, pt_state) &&
               takes(preset::P_BDW, cold, 0xDA0, 0) && takes(preset::P_BDW, cold, 0xDA0, 0x200) &&
               takes(preset::P_SKL, tracing, 0xDA0, pt_state);  // Intel PT works without either
    });
}

TEST_CASE("a reserved bit of IA32_DEBUGCTL faults (REG-006)") {
    CHECK_TWICE([](auto value) {
        return takes(preset::P_NONE, cold, 0x1D9, value(uint64_t{0xFFC7})) &&
               takes(preset::P_SKL, tracing, 0x1D9, value(uint64_t{1})) &&
               breaks(rule::REG_006, preset::P_SKL, cold, 0x1D9, value(uint64_t{0x8})) &&
               breaks(rule::REG_006, preset::P_SKL, cold, 0x1D9, value(uint64_t{0x1'0000}));
    });
}

TEST_CASE("the covered MSRs outside Intel PT can always be read") {
    CHECK_TWICE([](auto value) {
        return reads(preset::P_NONE, value(0x38EU)) && reads(preset::P_NONE, value(0x390U)) &&
               reads(preset::P_NONE, value(0x391U)) && reads(preset::P_NONE, value(0xDA0U)) &&
               reads(preset::P_NONE, value(0x1D9U));
    });
}
