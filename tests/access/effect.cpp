// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::outcome;
using access::processor_context;
using access::effect;
using access::msr_state;
using access::psb_plus_generation;
using cpu::capabilities;
namespace preset = cpu::preset;

namespace {

/// A state with these values of CTL and STATUS.
constexpr auto with(uint64_t ctl, uint64_t status = 0) -> msr_state {
    msr_state now;
    now.ctl = {ctl};
    now.status = {status};
    return now;
}

/// The effect of a write of CTL at CPL 0, with the next instruction at `ip`.
constexpr auto write_ctl(capabilities const& of, msr_state const& now, uint64_t value,
                         uint64_t ip = 0) -> effect {
    return access::effect_of_write(of, now, 0x570, value, {.ip = ip});
}

constexpr auto stored(msr_state const& now, uint32_t index, uint64_t value) -> msr_state {
    return access::effect_of_write(preset::P_FUT, now, index, value).state;
}

constexpr uint64_t on = 0x2105;  // BranchEn, ToPA, OS, TraceEn
constexpr uint64_t off = 0x2104;
constexpr uint64_t inject = uint64_t{1} << 56;

}  // namespace

// ------------------------------------------------------------------------------ CTL

TEST_CASE("a write that faults changes nothing (REG-009)") {
    CHECK_TWICE([](auto value) {
        auto now = with(on, 7);
        now.output.base = {0x7000};
        uint32_t const others[] = {0x560, 0x561, 0x571, 0x572, 0x580};
        for (uint32_t const index : others) {
            auto const done = access::effect_of_write(preset::P_SKL, now, value(index), 0x80);
            if (done || done.verdict.broken != rule::REG_004 || !(done.state == now) || done.pmi ||
                done.psb != psb_plus_generation::no || done.trace_stop) {
                return false;
            }
        }
        // A reserved bit is set, and TraceEn would have been cleared.
        auto const done = write_ctl(preset::P_SKL, now, value(uint64_t{0x4'0000}));
        return !done && done.verdict.broken == rule::REG_044 && done.state == now;
    });
}

TEST_CASE(
    "above CPL 0, and in VMX operation by older texts, effects follow check_write() (REG-002)") {
    CHECK_TWICE([](auto value) {
        auto now = with(0);
        auto const user = access::effect_of_write(preset::P_SKL, now, 0x570, on,
                                                  {.cpl = value(3U)});
        now.in_vmx_operation = true;
        auto const barred = access::effect_of_write(preset::P_BDW, now, 0x570, value(off));
        auto const taken = access::effect_of_write(preset::P_BDW, now, 0x570, value(off), {},
                                                   {.only_enabling_faults_in_vmx = true});
        return user.verdict == access::verdict{outcome::general_protection, rule::REG_002} &&
               user.state == with(0) && barred.verdict.broken == rule::REG_121 &&
               barred.state == now && taken && taken.state.ctl.raw == off;
    });
}

TEST_CASE("an MSR that is not covered is not written") {
    CHECK_TWICE([](auto value) {
        auto const done = access::effect_of_write(preset::P_SKL, with(0), value(0x588U), 1);
        return done.verdict.what == outcome::not_covered && done.state == with(0);
    });
}

TEST_CASE("writing the current value of CTL has no effect (REG-020)") {
    CHECK_TWICE([](auto value) {
        // A state in which enabling would change every field that it can.
        auto now = with(on | inject, 0x80'0000'00F0);
        auto const done = write_ctl(preset::P_FUT, now, value(on | inject));
        return done && done.state == now && done.psb == psb_plus_generation::no && !done.pmi &&
               !done.trace_stop;
    });
}

TEST_CASE(
    "the write that clears TraceEn may change the rest, and clears TriggerEn (REG-022, 061)") {
    CHECK_TWICE([](auto value) {
        auto const now = with(on, 0x1'2345'0000'00C7);
        auto const done = write_ctl(preset::P_FUT, now, value(uint64_t{0x5'0000'0008}));
        auto const plain = write_ctl(preset::P_FUT, now, value(uint64_t{0x2'0000'0008}));
        return !done && plain && plain.state == with(0x2'0000'0008, 0x1'2345'0000'00C3) &&
               plain.psb == psb_plus_generation::no && !plain.pmi && !plain.trace_stop;
    });
}

TEST_CASE(
    "with TraceEn 0 before and after, CTL is written and STATUS is unchanged (REG-023, 060)") {
    CHECK_TWICE([](auto value) {
        auto const now = with(off, 0x33);
        auto const done = write_ctl(preset::P_FUT, now, value(uint64_t{0xC0C}));
        return done && done.state == with(0xC0C, 0x33) && done.psb == psb_plus_generation::no;
    });
}

TEST_CASE("TriggerEn, ContextEn and FilterEn are computed when TraceEn rises (REG-056..058)") {
    CHECK_TWICE([](auto value) {
        return write_ctl(preset::P_SKL, with(0), value(on)).state == with(on, 7) &&
               write_ctl(preset::P_SKL, with(0), value(on + 4)).state == with(on + 4, 5) &&
               // On Broadwell bit 0 has no function.
               write_ctl(preset::P_BDW, with(0), value(on)).state == with(on, 6) &&
               // Values from an earlier trace are replaced.
               write_ctl(preset::P_SKL, with(0, 3), value(uint64_t{0x2109})).state ==
                   with(0x2109, 5);
    });
}

TEST_CASE(
    "with Stopped or Error, TraceEn can be set but TriggerEn stays 0 (REG-043, REG-056, GEN-021)") {
    CHECK_TWICE([](auto value) {
        auto const stopped = write_ctl(preset::P_SKL, with(0, 0x20), value(on));
        auto const failed = write_ctl(preset::P_SKL, with(0, 0x12), value(on));
        auto const kept = write_ctl(preset::P_FUT, with(0, 0x60), value(on | inject));
        return stopped && stopped.state == with(on, 0x21) &&
               stopped.psb == psb_plus_generation::no && !stopped.trace_stop && failed &&
               failed.state == with(on, 0x13) && failed.psb == psb_plus_generation::no &&
               !failed.trace_stop &&
               kept.state == with(on | inject, 0x61);  // PendPSB stays: no PSB was emitted
    });
}

TEST_CASE("an IP filter applies to the instruction after the write (REG-058, GEN-083)") {
    CHECK_TWICE([](auto value) {
        auto now = with(0);
        now.addr[0] = {{0x1000}, {0x1FFF}};
        uint64_t const filter = on | uint64_t{1} << 32;
        return write_ctl(preset::P_SKL, now, value(filter), 0x1FFF).state.status.raw == 7 &&
               write_ctl(preset::P_SKL, now, value(filter), 0x2000).state.status.raw == 6 &&
               // With a filter and ContextEn 0, FilterEn is unchanged.
               write_ctl(preset::P_SKL, now, value(filter + 4), 0x1000).state.status.raw == 4;
    });
}

TEST_CASE("setting TraceEn inside a TraceStop range stops immediately (REG-068, GEN-088)") {
    CHECK_TWICE([](auto value) {
        auto now = with(0);
        now.addr[1] = {{0x1000}, {0x1FFF}};
        uint64_t const stop = on | uint64_t{2} << 36;
        auto const inside = write_ctl(preset::P_SKL, now, value(stop), 0x1000);
        auto const outside = write_ctl(preset::P_SKL, now, value(stop), 0x2000);
        auto const no_context = write_ctl(preset::P_SKL, now, value(stop + 4), 0x1000);
        return inside.trace_stop && inside.state.status.raw == 0x22 &&
               inside.psb == psb_plus_generation::yes && (inside.state.ctl.raw & 1) == 1 &&
               !outside.trace_stop && outside.state.status.raw == 7 && !no_context.trace_stop &&
               no_context.state.status.raw == 5;
    });
}

TEST_CASE("without EBX[1] enabling always generates a PSB+ (REG-063, GEN-162)") {
    CHECK_TWICE([](auto value) {
        return write_ctl(preset::P_BDW, with(0), value(on)).psb == psb_plus_generation::yes &&
               // An impossible STATUS: the byte count is ignored.
               write_ctl(preset::P_BDW, with(0, 0x5'0000'0000), value(on)).psb ==
                   psb_plus_generation::yes;
    });
}

TEST_CASE("with EBX[1] enabling generates a PSB+ where PacketByteCnt is 0, else it may (REG-063)") {
    CHECK_TWICE([](auto value) {
        auto const none = write_ctl(preset::P_SKL, with(0), value(on));
        auto const some = write_ctl(preset::P_SKL, with(0, 0x5'0000'0000), value(on));
        auto const most = write_ctl(preset::P_SKL, with(0, 0x1'0000'0000'0000), value(on));
        return none.psb == psb_plus_generation::yes && some.psb == psb_plus_generation::may &&
               some.state.status.raw == 0x5'0000'0007 && most.psb == psb_plus_generation::may;
    });
}

TEST_CASE(
    "with InjectPsbPmiOnEnable a pending PSB+ is emitted whatever PacketByteCnt is (REG-065)") {
    CHECK_TWICE([](auto value) {
        auto const done = write_ctl(preset::P_FUT, with(0, 0x5'0000'0040), value(on | inject));
        auto const none = write_ctl(preset::P_FUT, with(0, 0x5'0000'0000), value(on | inject));
        return done.psb == psb_plus_generation::yes && done.state.status.raw == 0x5'0000'0007 &&
               none.psb == psb_plus_generation::may;
    });
}

TEST_CASE(
    "with InjectPsbPmiOnEnable a pending PMI is raised, and its bit stays set (REG-066, OUT-086)") {
    CHECK_TWICE([](auto value) {
        auto const done = write_ctl(preset::P_FUT, with(0, 0x80), value(on | inject));
        auto const stopped = write_ctl(preset::P_FUT, with(0, 0xA0), value(on | inject));
        auto const none = write_ctl(preset::P_FUT, with(0, 0x40), value(on | inject));
        return done.pmi && done.state.status.raw == 0x87 &&
               done.state.perf_global_status.raw == uint64_t{1} << 55 && stopped.pmi &&
               stopped.state.status.raw == 0xA1 && !none.pmi &&
               none.state.perf_global_status.raw == 0;
    });
}

TEST_CASE("a processor without ToPA output raises no PMI for PendToPAPMI (REG-066, REG-204)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::P_FUT;
        caps.leaf_14_0_ecx.raw &= ~3U;
        auto const done = write_ctl(caps, with(0, 0x80), value(uint64_t{0x2005} | inject));
        return done && !done.pmi && done.state.status.raw == 0x87 &&
               done.state.perf_global_status.raw == 0;
    });
}

TEST_CASE("without InjectPsbPmiOnEnable bits 6 and 7 are neither used nor changed (REG-067)") {
    CHECK_TWICE([](auto value) {
        auto const done = write_ctl(preset::P_FUT, with(0, 0x5'0000'00C0), value(on));
        return done.psb == psb_plus_generation::may && !done.pmi &&
               done.state.status.raw == 0x5'0000'00C7 && done.state.perf_global_status.raw == 0;
    });
}

TEST_CASE("resuming takes three writes: TraceEn 0, STATUS, TraceEn 1 (REG-062)") {
    CHECK_TWICE([](auto value) {
        auto const stopped = with(on, 0x23);
        auto const early = access::effect_of_write(preset::P_SKL, stopped, 0x571, 0);
        auto const first = write_ctl(preset::P_SKL, stopped, value(off));
        auto const direct = write_ctl(preset::P_SKL, first.state, value(on));
        auto const second = access::effect_of_write(preset::P_SKL, first.state, 0x571, 0);
        auto const third = write_ctl(preset::P_SKL, second.state, value(on));
        return early.verdict.broken == rule::REG_004 && first &&
               (direct.state.status.raw & 0x24) == 0x20 && second && third &&
               third.state.status.raw == 7;
    });
}

// ------------------------------------------------------------------------------ the other MSRs

TEST_CASE("STATUS is written except for its lowest three bits (REG-050, REG-053)") {
    CHECK_TWICE([](auto value) {
        return stored(with(0, 0x3), 0x571, value(uint64_t{0x1'FFFF'0000'00F4})).status.raw ==
                   0x1'FFFF'0000'00F3 &&
               stored(with(0, 0x30), 0x571, value(uint64_t{7})).status.raw == 0 &&
               stored(with(0, 7), 0x571, value(uint64_t{0x30})).status.raw == 0x37 &&
               access::effect_of_write(preset::P_BDW, with(0), 0x571, value(uint64_t{1}))
                       .state.status.raw == 0;  // REG-051
    });
}

TEST_CASE("accepted values read back (REG-080), LowerMask as ones (REG-072)") {
    CHECK_TWICE([](auto value) {
        msr_state now;
        now = stored(now, 0x560, value(uint64_t{0x1234'0080}));
        now = stored(now, 0x561, value(uint64_t{0x7'0000'0200}));
        now = stored(now, 0x572, value(uint64_t{0xFFFF'FFFF'FFFF'FFE0}));
        for (uint32_t index = 0x580; index < 0x588; ++index) {
            now = stored(now, value(index), index - 0x500);
        }
        auto const got = [&](uint32_t index, uint64_t expected) {
            auto const read = access::read(preset::P_FUT, now, index);
            return read && read.value == expected;
        };
        for (uint32_t index = 0x580; index < 0x588; ++index) {
            if (!got(index, index - 0x500)) { return false; }
        }
        return got(0x560, 0x1234'0080) && got(0x561, 0x7'0000'027F) &&
               got(0x572, 0xFFFF'FFFF'FFFF'FFE0) && got(0x570, 0) && got(0x571, 0);
    });
}

TEST_CASE("a write of an MSR other than CTL has no further effect") {
    CHECK_TWICE([](auto value) {
        auto busy = with(off);
        busy.perf_global_status = {0xFF};
        auto const status = access::effect_of_write(preset::P_FUT, busy, 0x571,
                                                    value(uint64_t{0x30}));
        busy.status = {0x30};
        if (!(status.state == busy)) { return false; }
        auto const done = access::effect_of_write(preset::P_FUT, with(off), 0x571,
                                                  value(uint64_t{0xC0}));
        return done && done.psb == psb_plus_generation::no && !done.pmi && !done.trace_stop &&
               done.state == with(off, 0xC0);
    });
}

TEST_CASE("390H clears the bits written as 1 in GLOBAL_STATUS, and 391H sets them (REG-203, "
          "OUT-084)") {
    CHECK_TWICE([](auto value) {
        uint64_t const bit_55 = value(uint64_t{1}) << 55;
        auto now = stored(with(0), 0x391, bit_55 | 3);
        bool const set = now.perf_global_status.raw == (bit_55 | 3);
        now = stored(now, 0x391, 4);
        bool const more = now.perf_global_status.raw == (bit_55 | 7);
        now = stored(now, 0x390, bit_55 | 1);
        bool const cleared = now.perf_global_status.raw == 6;
        auto const refused = access::effect_of_write(preset::P_SKL, now, 0x38E, value(uint64_t{0}));
        return set && more && cleared && refused.verdict.broken == rule::REG_203 &&
               refused.state == now;
    });
}

TEST_CASE("IA32_XSS and IA32_DEBUGCTL are plain storage, even while tracing") {
    CHECK_TWICE([](auto value) {
        auto now = stored(with(on, 7), 0xDA0, value(uint64_t{0x100}));
        now = stored(now, 0x1D9, value(uint64_t{0x801}));
        auto expected = with(on, 7);
        expected.xss = {0x100};
        expected.debugctl = {0x801};
        return now == expected;
    });
}

// ------------------------------------------------------------------------------ RDMSR

TEST_CASE("RDMSR returns the value of the MSR, even while tracing (REG-011)") {
    CHECK_TWICE([](auto value) {
        auto now = with(on, 0x5'0000'0007);
        now.output.base = {0x7000};
        auto const got = [&](uint32_t index, uint64_t expected) {
            auto const read = access::read(preset::P_SKL, now, value(index));
            return read && read.value == expected;
        };
        return got(0x570, on) && got(0x571, 0x5'0000'0007) && got(0x560, 0x7000) &&
               got(0x561, 0x7F) && got(0x572, 0);
    });
}

TEST_CASE("a default effect means that nothing happened") {
    CHECK(effect{}.verdict == access::verdict{outcome::allowed, rule::none});
    CHECK(effect{}.state == with(0));
    CHECK(effect{}.psb == psb_plus_generation::no);
    CHECK(!effect{}.pmi);
    CHECK(!effect{}.trace_stop);
    CHECK(access::read_result{}.value == 0);
}

TEST_CASE("an RDMSR that faults returns no value (REG-001, REG-002, REG-013)") {
    CHECK_TWICE([](auto value) {
        auto now = with(on);
        now.cr3_match = {0x5000};
        auto const none = access::read(preset::P_NONE, now, value(0x570U));
        auto const user = access::read(preset::P_SKL, now, 0x570, value(3U));
        auto const absent = access::read(preset::P_SRO, now, value(0x572U));
        auto const other = access::read(preset::P_SKL, now, value(0x588U));
        return !none && none.verdict.broken == rule::REG_001 && none.value == 0 && !user &&
               user.verdict.broken == rule::REG_002 && user.value == 0 && !absent &&
               absent.verdict.broken == rule::REG_013 && absent.value == 0 && !other &&
               other.verdict.what == outcome::not_covered && other.value == 0;
    });
}
