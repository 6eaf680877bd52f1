// SPDX-License-Identifier: BSL-1.0
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

/// A processor after a cold reset, with this value in CTL.
constexpr auto with_ctl(uint64_t ctl) -> msr_state {
    msr_state now;
    now.ctl = {ctl};
    return now;
}

constexpr msr_state cold{};
constexpr auto tracing = with_ctl(0x2109);

/// True when a write raises #GP by `why`, and all functions agree on it.
constexpr auto breaks(rule why, capabilities const& of, msr_state const& now, uint32_t index,
                      uint64_t value, access::policy const& how = {}) -> bool {
    auto const verdict = access::check_write(of, now, index, value, 0, how);
    return !verdict && verdict.what == outcome::general_protection && verdict.broken == why &&
           access::write_faults(of, now, index, value, how) &&
           access::broken_rule(of, now, index, value, how) == why;
}
constexpr auto takes(capabilities const& of, msr_state const& now, uint32_t index, uint64_t value,
                     access::policy const& how = {}) -> bool {
    auto const verdict = access::check_write(of, now, index, value, 0, how);
    return verdict && verdict.broken == rule::none &&
           !access::write_faults(of, now, index, value, how) &&
           access::broken_rule(of, now, index, value, how) == rule::none;
}

constexpr auto reads(capabilities const& of, uint32_t index) -> bool {
    auto const verdict = access::check_read(of, index);
    return verdict && verdict.broken == rule::none;
}
constexpr auto reads_as(rule why, capabilities const& of, uint32_t index) -> bool {
    auto const verdict = access::check_read(of, index);
    return !verdict && verdict.what == outcome::general_protection && verdict.broken == why;
}

/// True when RDMSR and WRMSR both raise #GP by `why`.
constexpr auto is_absent(rule why, capabilities const& of, uint32_t index) -> bool {
    return reads_as(why, of, index) && breaks(why, of, cold, index, 0);
}
constexpr auto is_there(capabilities const& of, uint32_t index) -> bool {
    return reads(of, index) && takes(of, cold, index, 0);
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

TEST_CASE("without Intel PT no IA32_RTIT MSR can be read or written (REG-001)") {
    CHECK_TWICE([](auto value) {
        uint32_t const named[] = {0x560, 0x561, 0x570, 0x571, 0x572, 0x580, 0x583, 0x587};
        for (uint32_t const index : named) {
            if (!is_absent(rule::REG_001, preset::P_NONE, value(index))) { return false; }
        }
        return true;
    });
}

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

TEST_CASE("while TraceEn is 1, a write of any MSR but CTL faults, the same value too (REG-004)") {
    CHECK_TWICE([](auto value) {
        uint32_t const others[] = {0x560, 0x561, 0x571, 0x572, 0x580, 0x583};
        for (uint32_t const index : others) {
            uint64_t const same = access::value_of(tracing, index);
            if (!breaks(rule::REG_004, preset::P_SKL, tracing, value(index), same) ||
                !takes(preset::P_SKL, with_ctl(0x2108), value(index), same)) {
                return false;
            }
        }
        // Only write-ignored bits.
        return breaks(rule::REG_004, preset::P_SKL, tracing, 0x571, value(uint64_t{7}));
    });
}

TEST_CASE("reading never faults because of TraceEn (REG-011)") {
    CHECK_TWICE([](auto value) {
        return reads(preset::P_SKL, value(0x560U)) && reads(preset::P_SKL, value(0x561U)) &&
               reads(preset::P_SKL, value(0x570U)) && reads(preset::P_SKL, value(0x571U)) &&
               reads(preset::P_SKL, value(0x572U)) && reads(preset::P_SKL, value(0x580U));
    });
}

TEST_CASE("the output MSRs exist with ToPA or single-range output (REG-012)") {
    CHECK_TWICE([](auto value) {
        auto const base = value(0x560U);
        auto const pointers = value(0x561U);
        return is_there(preset::P_BDW, base) && is_there(preset::P_BDW, pointers) &&  // ToPA
               is_there(preset::P_SRO, base) && is_there(preset::P_SRO, pointers) &&  // single
               is_absent(rule::REG_012, preset::P_FAB, base) &&
               is_absent(rule::REG_012, preset::P_FAB, pointers);
    });
}

TEST_CASE("CR3_MATCH exists where EBX[0] is 1, whatever EBX[1] is (REG-013, REG-232)") {
    CHECK_TWICE([](auto value) {
        return is_there(preset::P_BDW, value(0x572U)) &&                // EBX[1:0] = 01
               is_absent(rule::REG_013, preset::P_SRO, value(0x572U));  // 10
    });
}

TEST_CASE("the ADDRn MSRs exist by EBX[2] and RANGECNT of EAX (REG-014, REG-231)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = value(0x580U); index < 0x588; ++index) {
            bool const skl = index < 0x584 ? is_there(preset::P_SKL, index)
                                           : is_absent(rule::REG_014, preset::P_SKL, index);
            if (!skl || !is_there(preset::P_FUT, index) ||
                !is_absent(rule::REG_014, preset::P_BDW, index) ||
                !is_absent(rule::REG_014, preset::P_SRO, index)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("CTL and STATUS exist wherever Intel PT does (REG-015)") {
    CHECK_TWICE([](auto value) {
        return is_there(preset::P_BDW, value(0x570U)) && is_there(preset::P_BDW, value(0x571U)) &&
               is_there(preset::P_FAB, value(0x570U)) && is_there(preset::P_FAB, value(0x571U));
    });
}

TEST_CASE("the other indices up to 587H fault, and 588H is not covered (REG-017)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = value(0x562U); index < 0x580; ++index) {
            bool const named = 0x570 <= index && index <= 0x572;
            if (!named && (!is_absent(rule::REG_017, preset::P_FUT, index) ||
                           !is_absent(rule::REG_017, preset::P_NONE, index) ||
                           !breaks(rule::REG_017, preset::P_FUT, tracing, index, 0))) {
                return false;
            }
        }
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

TEST_CASE("writing the current value of CTL never faults (REG-020)") {
    CHECK_TWICE([](auto value) {
        return takes(preset::P_SKL, tracing, 0x570, value(uint64_t{0x2109})) &&
               takes(preset::P_SKL, with_ctl(0x40000), 0x570, value(uint64_t{0x40000}));
    });
}

TEST_CASE("while TraceEn stays 1, no other bit of CTL may change (REG-021)") {
    CHECK_TWICE([](auto value) {
        for (unsigned bit = value(1U); bit < 64; ++bit) {
            if (!access::write_faults(preset::P_FUT, tracing, 0x570,
                                      0x2109 ^ (uint64_t{1} << bit))) {
                return false;
            }
        }
        return breaks(rule::REG_021, preset::P_SKL, tracing, 0x570, value(uint64_t{0x210D}));
    });
}

TEST_CASE("the write that clears TraceEn may change other bits to any legal value (REG-022)") {
    CHECK_TWICE([](auto value) {
        return takes(preset::P_SKL, tracing, 0x570, value(uint64_t{0})) &&
               takes(preset::P_SKL, tracing, 0x570, value(uint64_t{0x2108})) &&
               takes(preset::P_SKL, tracing, 0x570, value(uint64_t{0xCE86})) &&
               breaks(rule::REG_044, preset::P_SKL, tracing, 0x570, value(uint64_t{0x42108})) &&
               breaks(rule::REG_028, preset::P_SKL, tracing, 0x570, value(uint64_t{0x4000}));
    });
}

TEST_CASE("with TraceEn 0 every field may be written, TraceEn included (REG-023)") {
    CHECK_TWICE([](auto value) {
        return takes(preset::P_FUT, with_ctl(0x2108), 0x570,
                     value(uint64_t{0x0180'2212'800B'FFFF})) &&
               takes(preset::P_FUT, with_ctl(0x1FFE), 0x570, value(uint64_t{0x2001}));
    });
}

TEST_CASE("ToPA needs ECX[0], even with TraceEn 0 or FabricEn 1 (REG-024)") {
    CHECK_TWICE([](auto value) {
        return breaks(rule::REG_024, preset::P_SRO, cold, 0x570, value(uint64_t{0x100})) &&
               breaks(rule::REG_024, preset::P_FAB, cold, 0x570, value(uint64_t{0x2141})) &&
               takes(preset::P_BDW, cold, 0x570, value(uint64_t{0x100}));
    });
}

TEST_CASE("tracing without ToPA and FabricEn needs ECX[2] (REG-025, REG-045)") {
    CHECK_TWICE([](auto value) {
        return breaks(rule::REG_025, preset::P_BDW, cold, 0x570, value(uint64_t{0x2001})) &&
               breaks(rule::REG_025, preset::P_FAB, cold, 0x570, value(uint64_t{0x2001})) &&
               takes(preset::P_BDW, cold, 0x570, value(uint64_t{0x2000})) &&
               takes(preset::P_BDW, cold, 0x570, value(uint64_t{0x2101})) &&
               takes(preset::P_FAB, cold, 0x570, value(uint64_t{0x2041})) &&
               takes(preset::P_SKL, cold, 0x570, value(uint64_t{0x2001}));
    });
}

TEST_CASE("FabricEn needs ECX[3], not EBX[3] (REG-026, REG-230)") {
    CHECK_TWICE([](auto value) {
        return breaks(rule::REG_026, preset::P_SKL, cold, 0x570, value(uint64_t{0x40})) &&
               takes(preset::P_FAB, cold, 0x570, value(uint64_t{0x40}));
    });
}

TEST_CASE("CYCEn, CycThresh and PSBFreq need EBX[1] (REG-027)") {
    CHECK_TWICE([](auto value) {
        uint64_t const each[] = {0x2, 0x8'0000, 0x100'0000};
        for (uint64_t const bits : each) {
            if (!breaks(rule::REG_027, preset::P_BDW, cold, 0x570, value(bits)) ||
                !takes(preset::P_SKL, cold, 0x570, value(bits))) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("CPUID lists the encodings of MTCFreq, CycThresh and PSBFreq (REG-028, REG-008)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t code = value(uint64_t{1}); code < 16; ++code) {
            // 0249H, 3FFFH, 003FH.
            bool const mtc = code == 3 || code == 6 || code == 9;
            bool const cyc = code < 14;
            bool const psb = code < 6;
            if (access::write_faults(preset::P_SKL, cold, 0x570, code << 14) == mtc ||
                access::write_faults(preset::P_SKL, cold, 0x570, code << 19) == cyc ||
                access::write_faults(preset::P_SKL, cold, 0x570, code << 24) == psb) {
                return false;
            }
        }
        return breaks(rule::REG_028, preset::P_SKL, cold, 0x570, value(uint64_t{0x1'0000}));
    });
}

TEST_CASE("encoding 0 is always accepted, even where bit 0 of the bitmap is 0 (REG-029)") {
    CHECK_TWICE([](auto value) {
        auto of = preset::P_SKL;
        of.leaf_14_1_eax = {value(0x0248'0002U)};
        of.leaf_14_1_ebx = {value(0x003E'3FFEU)};
        return takes(of, cold, 0x570, 0) && takes(of, tracing, 0x570, 0x2108) &&
               takes(of, cold, 0x570, 0x410'C000);
    });
}

TEST_CASE("MTCEn and MTCFreq need EBX[3] (REG-030)") {
    CHECK_TWICE([](auto value) {
        return breaks(rule::REG_030, preset::P_BDW, cold, 0x570, value(uint64_t{0x200})) &&
               breaks(rule::REG_030, preset::P_BDW, cold, 0x570, value(uint64_t{0xC000})) &&
               takes(preset::P_SKL, cold, 0x570, value(uint64_t{0xC200}));
    });
}

TEST_CASE("a flag needs its capability bit (REG-007, REG-031..036)") {
    CHECK_TWICE([](auto value) {
        struct {
            rule why;
            uint64_t bits;
            capabilities const& lacks;
            capabilities const& has;
        } const flags[] = {{rule::REG_031, 0x80, preset::P_SRO, preset::P_BDW},
                           {rule::REG_032, 0x1000, preset::P_SKL, preset::P_ATM},
                           {rule::REG_032, 0x20, preset::P_SKL, preset::P_ATM},
                           {rule::REG_033, 0x10, preset::P_SKL, preset::P_ATM},
                           {rule::REG_034, 0x100'0000'0000'0000, preset::P_SKL, preset::P_ATM},
                           {rule::REG_035, 0x8000'0000, preset::P_ATM, preset::P_FUT},
                           {rule::REG_036, 0x80'0000'0000'0000, preset::P_ATM, preset::P_FUT}};
        for (auto const& flag : flags) {
            if (!breaks(flag.why, flag.lacks, cold, 0x570, value(flag.bits)) ||
                !takes(flag.has, cold, 0x570, value(flag.bits))) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("ADDRn_CFG is 0, 1 or 2, and 0 beyond RANGECNT (REG-037, REG-038)") {
    CHECK_TWICE([](auto value) {
        for (unsigned n = 0; n < 4; ++n) {
            for (uint64_t code = value(uint64_t{1}); code < 16; ++code) {
                uint64_t const written = code << (32 + 4 * n);
                bool const skl = n < 2 && code <= 2
                                     ? takes(preset::P_SKL, cold, 0x570, written)
                                     : breaks(rule::REG_037, preset::P_SKL, cold, 0x570, written);
                bool const fut = code <= 2
                                     ? takes(preset::P_FUT, cold, 0x570, written)
                                     : breaks(rule::REG_037, preset::P_FUT, cold, 0x570, written);
                if (!skl || !fut || !breaks(rule::REG_037, preset::P_BDW, cold, 0x570, written)) {
                    return false;
                }
            }
        }
        return true;
    });
}

TEST_CASE("TraceEn, OS, User, TSCEn and DisRETC need no capability (REG-039)") {
    CHECK_TWICE([](auto value) {
        capabilities least;
        least.leaf_07_0_ebx = {1U << 25};
        least.leaf_14_0_ecx = {1U};  // an output scheme
        return takes(least, cold, 0x570, value(uint64_t{0x2D0D})) &&
               takes(least, with_ctl(0x2D0D), 0x570, value(uint64_t{0xC0C})) &&
               breaks(rule::REG_031, least, cold, 0x570, value(uint64_t{0x2D8D}));
    });
}

TEST_CASE("TraceEn without BranchEn needs EBX[3]; BranchEn alone needs nothing (REG-040)") {
    CHECK_TWICE([](auto value) {
        return breaks(rule::REG_040, preset::P_BDW, cold, 0x570, value(uint64_t{0x101})) &&
               takes(preset::P_BDW, cold, 0x570, value(uint64_t{0x2101})) &&
               takes(preset::P_BDW, cold, 0x570, value(uint64_t{0x2000})) &&
               takes(preset::P_BDW, cold, 0x570, value(uint64_t{0x100})) &&
               takes(preset::P_SKL, cold, 0x570, value(uint64_t{0x101}));
    });
}

TEST_CASE("TraceEn with neither OS nor User is legal (REG-041)") {
    CHECK_TWICE(
        [](auto value) { return takes(preset::P_SKL, cold, 0x570, value(uint64_t{0x2101})); });
}

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

TEST_CASE("bits 18, 23, 30:28, 54:48 and 63:57 are reserved everywhere (REG-006, REG-044)") {
    CHECK_TWICE([](auto value) {
        uint64_t const reserved = value(uint64_t{0xFE7F'0000'7084'0000});
        for (unsigned bit = 0; bit < 64; ++bit) {
            bool const is_reserved = (reserved >> bit & 1) != 0;
            // BranchEn and ToPA: TraceEn requires them.
            uint64_t const written = uint64_t{0x2100} ^ uint64_t { 1 } << bit;
            if (is_reserved ? !breaks(rule::REG_044, preset::P_FUT, cold, 0x570, written)
                            : !takes(preset::P_FUT, cold, 0x570, written) &&
                                  (bit < 32 || bit > 47 || bit % 4 < 2)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("without sub-leaf 1 no range exists and only encoding 0 is legal (REG-046)") {
    CHECK_TWICE([](auto value) {
        auto of = preset::P_FUT;
        of.leaf_14_0_eax = {value(0U)};
        return breaks(rule::REG_028, of, cold, 0x570, 0x4000) &&
               breaks(rule::REG_028, of, cold, 0x570, 0x8'0000) &&
               breaks(rule::REG_028, of, cold, 0x570, 0x100'0000) &&
               breaks(rule::REG_037, of, cold, 0x570, uint64_t{1} << 32) &&
               is_absent(rule::REG_014, of, 0x580) && takes(of, cold, 0x570, 0x2101);
    });
}

TEST_CASE("a legal value without use does not fault (REG-047)") {
    CHECK_TWICE([](auto value) {
        auto upside_down = cold;
        upside_down.addr[0] = {{0x2000}, {0x1000}};
        return takes(preset::P_SKL, cold, 0x570, value(uint64_t{0x2103})) &&  // CYCEn, no TSCEn
               takes(preset::P_SKL, cold, 0x570, value(uint64_t{0x2181})) &&  // CR3_MATCH is 0
               takes(preset::P_SKL, upside_down, 0x570, value(uint64_t{0x1'0000'2101})) &&
               takes(preset::P_FUT, cold, 0x570, value(uint64_t{0x80'0000'0000'0101})) &&
               takes(preset::P_SKL, cold, 0x570, value(uint64_t{0x8'2101}));  // CycThresh alone
    });
}

TEST_CASE("FUPonPTW without PTWEn does not fault (REG-032)") {
    CHECK_TWICE(
        [](auto value) { return takes(preset::P_ATM, cold, 0x570, value(uint64_t{0x2121})); });
}

TEST_CASE("in VMX operation CTL accepts any legal value where VMX_MISC[14] is 1 (REG-120)") {
    CHECK_TWICE([](auto value) {
        auto now = cold;
        now.in_vmx_operation = value(true);
        return takes(preset::P_SKL, now, 0x570, 0x2109) && takes(preset::P_SKL, now, 0x570, 0) &&
               breaks(rule::REG_044, preset::P_SKL, now, 0x570, 0x4'0000);
    });
}

TEST_CASE("where it is 0, setting TraceEn faults; in newer texts any value does (REG-121)") {
    CHECK_TWICE([](auto value) {
        auto now = cold;
        now.in_vmx_operation = value(true);
        access::policy const older{.only_enabling_faults_in_vmx = true};
        return breaks(rule::REG_121, preset::P_BDW, now, 0x570, 0x2109) &&
               breaks(rule::REG_121, preset::P_BDW, now, 0x570, 0x2109, older) &&
               breaks(rule::REG_121, preset::P_BDW, now, 0x570, 0x2108) &&
               breaks(rule::REG_121, preset::P_BDW, now, 0x570, 0) &&  // before REG-020
               takes(preset::P_BDW, now, 0x570, 0x2108, older) &&
               takes(preset::P_BDW, now, 0x570, 0, older) &&
               takes(preset::P_BDW, now, 0x571, 0x30) && takes(preset::P_BDW, cold, 0x570, 0x2109);
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

// ------------------------------------------------------------------------------ the other MSRs

TEST_CASE(
    "any value of FilterEn, ContextEn and TriggerEn may be written to STATUS (REG-050, 051)") {
    CHECK_TWICE([](auto value) {
        return takes(preset::P_SKL, cold, 0x571, value(uint64_t{7})) &&
               takes(preset::P_BDW, cold, 0x571, value(uint64_t{7}));
    });
}

TEST_CASE("bits 3, 31:8 and 63:49 of STATUS are reserved (REG-052)") {
    CHECK_TWICE([](auto value) {
        uint64_t const reserved = value(uint64_t{0xFFFE'0000'FFFF'FF08});
        for (unsigned bit = 0; bit < 64; ++bit) {
            uint64_t const written = uint64_t{1} << bit;
            if ((reserved >> bit & 1) != 0
                    ? !breaks(rule::REG_052, preset::P_FUT, cold, 0x571, written)
                    : !takes(preset::P_FUT, cold, 0x571, written)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("Error and Stopped may be set and cleared while TraceEn is 0 (REG-053)") {
    CHECK_TWICE([](auto value) {
        auto set = cold;
        set.status = {0x30};
        return takes(preset::P_BDW, cold, 0x571, value(uint64_t{0x30})) &&
               takes(preset::P_BDW, set, 0x571, value(uint64_t{0}));
    });
}

TEST_CASE("PendPSB and PendToPAPMI need EBX[6], whatever CTL holds (REG-054)") {
    CHECK_TWICE([](auto value) {
        uint64_t const each[] = {0x40, 0x80};
        for (uint64_t const bits : each) {
            if (!breaks(rule::REG_054, preset::P_SKL, cold, 0x571, value(bits)) ||
                !takes(preset::P_ATM, cold, 0x571, value(bits)) ||
                !takes(preset::P_ATM, with_ctl(uint64_t{1} << 56), 0x571, value(bits))) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("PacketByteCnt needs EBX[1] (REG-055)") {
    CHECK_TWICE([](auto value) {
        return breaks(rule::REG_055, preset::P_BDW, cold, 0x571, value(uint64_t{1} << 32)) &&
               breaks(rule::REG_055, preset::P_BDW, cold, 0x571, value(uint64_t{1} << 48)) &&
               takes(preset::P_SKL, cold, 0x571, value(uint64_t{0x1'FFFF'0000'0000}));
    });
}

TEST_CASE("the output base is a multiple of 128 below 2^MAXPHYADDR (REG-070, REG-071)") {
    CHECK_TWICE([](auto value) {
        for (unsigned bit = 0; bit < 64; ++bit) {
            uint64_t const written = value(uint64_t{1}) << bit;
            auto absent_leaf = preset::P_SKL;
            absent_leaf.leaf_80000008_eax = {};
            bool const at_39 = bit >= 7 && bit < 39;
            bool const at_36 = bit >= 7 && bit < 36;
            if (at_39 != takes(preset::P_SKL, cold, 0x560, written) ||
                at_39 == breaks(rule::REG_070, preset::P_SKL, cold, 0x560, written) ||
                at_36 != takes(absent_leaf, cold, 0x560, written)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("OUTPUT_MASK_PTRS accepts every value (REG-072, REG-073)") {
    CHECK_TWICE([](auto value) {
        return takes(preset::P_SKL, cold, 0x561, value(uint64_t{0})) &&
               takes(preset::P_SKL, cold, 0x561, value(~uint64_t{0})) &&
               takes(preset::P_SKL, cold, 0x561, value(uint64_t{0xFFFF'FFFF'5555'5500}));
    });
}

TEST_CASE("only bits 4:0 of CR3_MATCH are reserved (REG-074)") {
    CHECK_TWICE([](auto value) {
        for (unsigned bit = 0; bit < 64; ++bit) {
            uint64_t const written = value(uint64_t{1}) << bit;
            if (bit < 5 ? !breaks(rule::REG_074, preset::P_SKL, cold, 0x572, written)
                        : !takes(preset::P_SKL, cold, 0x572, written)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("both ends of a range must be canonical for the supported width (REG-076)") {
    CHECK_TWICE([](auto value) {
        uint64_t const low_48 = value(uint64_t{0x7FFF'FFFF'FFFF});
        uint64_t const low_57 = value(uint64_t{0xFF'FFFF'FFFF'FFFF});
        return takes(preset::P_SKL, cold, 0x580, low_48) &&
               breaks(rule::REG_076, preset::P_SKL, cold, 0x580, low_48 + 1) &&
               takes(preset::P_SKL, cold, 0x583, ~low_48) &&
               breaks(rule::REG_076, preset::P_SKL, cold, 0x583, ~low_48 - 1) &&
               takes(preset::P_FUT, cold, 0x587, low_57) &&
               breaks(rule::REG_076, preset::P_FUT, cold, 0x587, low_57 + 1) &&
               takes(preset::P_FUT, cold, 0x586, ~low_57);
    });
}

TEST_CASE("the two ends of a range are not compared with each other (REG-077)") {
    CHECK_TWICE([](auto value) {
        auto now = cold;
        now.addr[0].a = {value(uint64_t{0x2000})};
        return takes(preset::P_SKL, now, 0x581, 0x1000) && takes(preset::P_SKL, now, 0x581, 0x2000);
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
