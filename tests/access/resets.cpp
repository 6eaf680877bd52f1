// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/resets.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::msr_state;
using access::psb_plus_generation;
using access::rsm_outcome;
namespace preset = cpu::preset;

namespace {

constexpr uint64_t on = 0x2105;  // BranchEn, ToPA, OS, TraceEn
constexpr uint64_t off = 0x2104;

/// A processor that has been tracing, with every register nonzero.
constexpr auto busy(uint64_t ctl = on, uint64_t status = 0x1'2345'0000'00F7) -> msr_state {
    msr_state now;
    now.ctl = {ctl};
    now.status = {status};
    now.output.base = {0x5000};
    now.output.mask_ptrs = {0x1'0000'00FF};
    now.cr3_match = {0x6000};
    for (unsigned n = 0; n < 4; ++n) { now.addr[n] = {{n + 0x1000ULL}, {n + 0x2000ULL}}; }
    now.xss = {0x100};
    now.perf_global_status = {uint64_t{1} << 55};
    now.debugctl = {0x800};
    return now;
}

/// The same with CTL and STATUS changed, and nothing else.
constexpr auto changed(msr_state now, uint64_t ctl, uint64_t status) -> msr_state {
    now.ctl = {ctl};
    now.status = {status};
    return now;
}

}  // namespace

// ------------------------------------------------------------------------------ resets

TEST_CASE("a cold reset sets every MSR to 0, and OUTPUT_MASK_PTRS to 7FH (REG-090)") {
    CHECK_TWICE([](auto value) {
        auto const now = access::cold_reset();
        bool zero = now.xss.raw == 0 && !now.in_vmx_operation && !now.in_smm;
        for (uint32_t index = value(0x560U); index < 0x588; ++index) {
            zero = zero && access::value_of(now, index) == (index == 0x561 ? 0x7FU : 0U);
        }
        return zero;
    });
}

TEST_CASE("with EBX[2] a warm reset clears only TraceEn and TriggerEn (REG-091, 093)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on));
        return access::warm_reset(preset::P_SKL, now) == changed(now, off, 0x1'2345'0000'00F3);
    });
}

TEST_CASE("without EBX[2] a warm reset resets the MSRs of Intel PT like a cold reset (REG-092)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on));
        auto expected = access::cold_reset();
        expected.xss = now.xss;
        expected.perf_global_status = now.perf_global_status;
        expected.debugctl = now.debugctl;
        return access::warm_reset(preset::P_BDW, now) == expected;
    });
}

TEST_CASE("a warm reset leaves SMM and VMX operation") {
    CHECK_TWICE([](auto value) {
        auto now = busy();
        now.in_vmx_operation = value(true);
        now.in_smm = value(true);
        now.smram_trace_en = true;
        auto const kept = access::warm_reset(preset::P_SKL, now);
        auto const cold = access::warm_reset(preset::P_BDW, now);
        return !kept.in_vmx_operation && !kept.in_smm && !kept.smram_trace_en &&
               !cold.in_vmx_operation && !cold.in_smm && !cold.smram_trace_en;
    });
}

TEST_CASE("INIT updates ContextEn and FilterEn for the new context and changes no MSR (REG-094)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(0x2109, 7);  // User only, as CPL was 3
        auto const to_cpl_0 = access::init(preset::P_SKL, now, {.ip = value(uint64_t{0xFFF0})});
        auto filtered = busy(on | uint64_t{1} << 32, 7);
        filtered.addr[0] = {{0x1000}, {0x1FFF}};
        auto const outside = access::init(preset::P_SKL, filtered,
                                          {.ip = value(uint64_t{0xFFFF'FFF0})});
        return to_cpl_0 == changed(now, 0x2109, 5) &&
               outside == changed(filtered, filtered.ctl.raw, 6);
    });
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(off), 3);
        return access::init(preset::P_SKL, now) == now;  // not tracing: no change (REG-060)
    });
}

// ------------------------------------------------------------------------------ SMM

TEST_CASE("an SMI saves and clears TraceEn, and changes nothing else (REG-100)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on));
        auto expected = changed(now, off, 0x1'2345'0000'00F3);
        expected.in_smm = true;
        expected.smram_trace_en = true;
        auto const idle = busy(value(off), 3);
        auto still = idle;
        still.in_smm = true;
        return access::smi(now) == expected && access::smi(idle) == still;
    });
}

TEST_CASE("in SMM an SMI stays pending") {
    CHECK_TWICE([](auto value) {
        auto now = access::smi(busy());
        now.ctl = {value(on)};
        return access::smi(now) == now;
    });
}

TEST_CASE("RSM restores TraceEn, with all effects of setting it (REG-101)") {
    CHECK_TWICE([](auto value) {
        uint64_t const ctl = value(uint64_t{1} << 56 | on);
        auto const in_smm = access::smi(busy(ctl, 0x80'0000'00C7 | uint64_t{9} << 32));
        auto const back = access::rsm(preset::P_FUT, in_smm);
        auto const user = access::rsm(preset::P_FUT, in_smm, {.cpl = value(3U)});
        auto expected = busy(ctl, 0x80'0000'0087 | uint64_t{9} << 32);
        return back && back.outcome == rsm_outcome::resumed && back.broken == rule::none &&
               back.effect.state == expected && back.effect.psb == psb_plus_generation::yes &&
               back.effect.pmi && user &&
               (user.effect.state.status.raw & 7) == 5;  // ContextEn of the resumed context
    });
}

TEST_CASE("RSM restores TraceEn into a TraceStop range (REG-101, REG-068)") {
    CHECK_TWICE([](auto value) {
        auto now = busy(on | uint64_t{2} << 32, 7);
        now.addr[0] = {{0x1000}, {0x1FFF}};
        auto const back = access::rsm(preset::P_SKL, access::smi(now),
                                      {.ip = value(uint64_t{0x1000})});
        return back && back.effect.trace_stop && back.effect.state.status.raw == 0x22;
    });
}

TEST_CASE("where TraceEn was 0, RSM changes no register (REG-101)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(off), 3);
        auto const back = access::rsm(preset::P_SKL, access::smi(now));
        return back && back.effect.state == now && back.effect.psb == psb_plus_generation::no &&
               !back.effect.pmi;
    });
}

TEST_CASE("RSM with TraceEn set shuts the processor down (REG-102)") {
    CHECK_TWICE([](auto value) {
        auto now = access::smi(busy(off, 3));
        now.ctl = {value(on)};
        auto const back = access::rsm(preset::P_SKL, now);
        return !back && back.outcome == rsm_outcome::shutdown && back.broken == rule::REG_102 &&
               back.effect.state == now;
    });
}

TEST_CASE("RSM shuts down where a WRMSR could not set TraceEn in the CTL that SMM left (REG-108)") {
    CHECK_TWICE([](auto value) {
        auto single_less = preset::P_SKL;
        single_less.leaf_14_0_ecx.raw &= ~4U;
        auto mtc_less = preset::P_SKL;
        mtc_less.leaf_14_0_ebx.raw &= ~8U;
        auto const in_smm = [&](uint64_t ctl) {
            auto now = access::smi(busy(on, 7));
            now.ctl = {value(ctl)};
            return now;
        };
        auto const shuts_down = [&](auto const& caps, msr_state const& now, rule why) {
            auto const back = access::rsm(caps, now);
            return back.outcome == rsm_outcome::shutdown && back.broken == why &&
                   back.effect.state == now;
        };
        auto vmx = in_smm(off);
        vmx.in_vmx_operation = true;
        auto idle = in_smm(0);
        idle.smram_trace_en = false;
        return shuts_down(single_less, in_smm(0), rule::REG_025) &&
               shuts_down(mtc_less, in_smm(0x104), rule::REG_040) &&
               shuts_down(preset::P_BDW, vmx, rule::REG_121) &&
               access::rsm(preset::P_SKL, in_smm(0)).effect.state.ctl.raw == 1 &&
               access::rsm(single_less, in_smm(off)) && access::rsm(mtc_less, in_smm(off)) &&
               access::rsm(single_less, idle).effect.state.ctl.raw == 0;
    });
}

TEST_CASE("RSM outside SMM is #UD") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on));
        auto const back = access::rsm(preset::P_SKL, now);
        return !back && back.outcome == rsm_outcome::undefined_opcode &&
               back.broken == rule::none && back.effect.state == now;
    });
}

TEST_CASE("RSM that would enable both Intel PT and exclusive LBR follows the policy "
          "(REG-103, PRG-201)") {
    CHECK_TWICE([](auto value) {
        auto const tracing = access::smi([&] {
            auto now = busy(on, 7);
            now.debugctl = {value(uint64_t{1})};
            return now;
        }());
        auto without_lbr = tracing;
        without_lbr.debugctl = {0x800};
        auto idle = tracing;
        idle.smram_trace_en = false;
        access::policy const suspends{.lbr_after_rsm_shuts_down = false};
        auto const shut_down = access::rsm(preset::P_SKL, tracing);
        return !shut_down && shut_down.outcome == rsm_outcome::shutdown &&
               underlying(shut_down.broken) == 1000 + 103 && shut_down.effect.state == tracing &&
               access::rsm(preset::P_SKL, tracing, {}, suspends) &&
               access::rsm(preset::P_SKL, without_lbr) && access::rsm(preset::P_SKL, idle) &&
               access::rsm(preset::skylake_x, tracing);  // no exclusion on this model
    });
}

TEST_CASE("an SMI after RSM saves the current TraceEn (REG-100, REG-101)") {
    CHECK_TWICE([](auto value) {
        auto const after_rsm = access::rsm(preset::P_SKL, access::smi(busy(value(on), 7)));
        auto now = after_rsm.effect.state;
        bool const left_smm = !now.in_smm && !now.smram_trace_en;
        now.ctl = {off};
        auto const again = access::smi(now);
        return left_smm && again.in_smm && !again.smram_trace_en;
    });
}

// ------------------------------------------------------------------------------ VMX, SMX

TEST_CASE("VMXON clears TraceEn where VMX_MISC[14] is 0 (REG-110)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on));
        auto expected = changed(now, off, 0x1'2345'0000'00F3);
        expected.in_vmx_operation = true;
        return access::vmxon(preset::P_BDW, now) == expected;
    });
}

TEST_CASE(
    "where VMX_MISC[14] is 1, VMXON changes nothing and tracing may start after it (REG-120)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on));
        auto expected = now;
        expected.in_vmx_operation = true;
        auto const root = access::vmxon(preset::skylake_x, busy(off, 3));
        return access::vmxon(preset::P_SKL, now) == expected &&
               access::vmxon(preset::ice_lake_u, now) == expected &&
               access::effect_of_write(preset::skylake_x, root, 0x570, value(on));
    });
}

TEST_CASE("where VMX_MISC[14] is 0, tracing cannot start after VMXON, but after VMXOFF (REG-110, "
          "REG-121)") {
    CHECK_TWICE([](auto value) {
        auto const root = access::vmxon(preset::P_BDW, busy(off, 0));
        auto const refused = access::effect_of_write(preset::P_BDW, root, 0x570, value(on));
        auto const outside = access::vmxoff(root);
        auto const taken = access::effect_of_write(preset::P_BDW, outside, 0x570, value(on));
        return refused.verdict.broken == rule::REG_121 && outside == busy(off, 0) && taken;
    });
}

TEST_CASE("VMXOFF changes no register") {
    CHECK_TWICE([](auto value) {
        auto now = busy(value(on));
        now.in_vmx_operation = true;
        return access::vmxoff(now) == busy(on);
    });
}

TEST_CASE("SENTER and ENTERACCS clear TraceEn and do not restore it (REG-111)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on));
        return access::measured_launch(now) == changed(now, off, 0x1'2345'0000'00F3);
    });
}

TEST_CASE("an ACM clears TraceEn without a packet and restores it (REG-112)") {
    CHECK_TWICE([](auto value) {
        msr_state const tracing{.ctl = {value(on)}, .status = {0x0000'0040'0000'0007}};
        auto const in_acm = access::acm_entry(tracing);
        auto const after = access::acm_exit(preset::P_SKL, in_acm, true);
        return in_acm.ctl.raw == off && in_acm.status.raw == 0x0000'0040'0000'0003 &&
               after == tracing;
    });
    CHECK_TWICE([](auto value) {
        msr_state const idle{.ctl = {value(off)}};
        return access::acm_exit(preset::P_SKL, access::acm_entry(idle), false) == idle;
    });
    CHECK_TWICE([](auto value) {  // REG-108
        auto caps = preset::P_SKL;
        caps.leaf_14_0_ecx.raw &= ~4U;
        msr_state const now{.ctl = {value(uint64_t{0x2004})}};
        return access::acm_exit(caps, now, true) == now;
    });
}
