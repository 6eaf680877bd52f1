// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/xsave.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::outcome;
using access::msr_state;
using access::psb_plus_generation;
using reg::xsave_pt_state;
namespace preset = cpu::preset;

namespace {

constexpr uint64_t on = 0x2105;  // BranchEn, ToPA, OS, TraceEn
constexpr uint64_t off = 0x2104;

/// A processor with a different value in each of the nine MSRs and in those that the image does not
/// hold.
constexpr auto busy(uint64_t ctl, uint64_t status) -> msr_state {
    msr_state now;
    now.ctl = {ctl};
    now.status = {status};
    now.output.base = {0x7000};
    now.output.mask_ptrs = {0x2'0000'00FF};
    now.cr3_match = {0x3000};
    for (unsigned n = 0; n < 4; ++n) { now.addr[n] = {{n + 0x1000ULL}, {n + 0x2000ULL}}; }
    now.xss = {0x100};
    return now;
}

/// The quadwords of a component image with these values of CTL, OUTPUT_BASE, OUTPUT_MASK_PTRS,
/// STATUS.
constexpr auto image_of(uint64_t ctl, uint64_t base, uint64_t mask_ptrs, uint64_t status)
    -> xsave_pt_state {
    xsave_pt_state image;
    image.quadwords[0] = ctl;
    image.quadwords[1] = base;
    image.quadwords[2] = mask_ptrs;
    image.quadwords[3] = status;
    return image;
}

constexpr auto with(xsave_pt_state image, unsigned quadword, uint64_t value) -> xsave_pt_state {
    image.quadwords[quadword] = value;
    return image;
}

/// True when XRSTORS faults by `why`, names the MSR and its rule, and leaves the state unchanged.
constexpr auto refuses(cpu::capabilities const& of, msr_state const& now,
                       xsave_pt_state const& image, rule why, uint32_t msr, rule of_msr) -> bool {
    auto const back = access::xrstors(of, now, image);
    return !back && back.effect.verdict == access::verdict{outcome::general_protection, why} &&
           back.effect.state == now && back.violated.msr == msr && back.violated.broken == of_msr &&
           back.effect.psb == psb_plus_generation::no && !back.effect.pmi &&
           !back.effect.trace_stop;
}

constexpr msr_state cold{};

}  // namespace

// ------------------------------------------------------------------------------ XSAVES

TEST_CASE("XSAVES stores CTL with its TraceEn, then clears it, then stores the rest (REG-142)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on), 0x1'2345'0000'00F7);
        auto const saved = access::xsaves(preset::P_FUT, now);
        auto expected = now;
        expected.ctl = {off};
        expected.status = {0x1'2345'0000'00F3};
        return saved.state == expected && saved.image.quadwords[0] == on &&
               saved.image.quadwords[3] == 0x1'2345'0000'00F3;
    });
}

TEST_CASE("the image is nine MSRs in order, and the rest is 0 (REG-141)") {
    CHECK_TWICE([](auto value) {
        auto const saved = access::xsaves(preset::P_FUT, busy(value(off), 0x30));
        uint64_t const expected[16] = {off,    0x7000, 0x2'0000'00FF, 0x30,  0x3000,
                                       0x1000, 0x2000, 0x1001,        0x2001};
        for (unsigned i = 0; i < 16; ++i) {
            if (saved.image.quadwords[i] != expected[i]) { return false; }
        }
        return true;
    });
}

TEST_CASE("ranges 2 and 3 are not in the image and keep their values (REG-141)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(off), 3);
        auto const saved = access::xsaves(preset::P_FUT, now);
        auto const back = access::xrstors(preset::P_FUT, cold, saved.image);
        return saved.state == now && back && back.effect.state.addr[1] == now.addr[1] &&
               back.effect.state.addr[2] == access::address_range{} &&
               back.effect.state.addr[3] == access::address_range{};
    });
}

TEST_CASE("an MSR that the processor lacks is stored as 0 (REG-141)") {
    CHECK_TWICE([](auto value) {
        auto const saved = access::xsaves(preset::P_FAB, busy(value(uint64_t{0x2048}), 0));
        for (unsigned i = 1; i < 16; ++i) {
            if (saved.image.quadwords[i] != 0) { return false; }
        }
        return saved.image.quadwords[0] == 0x2048;
    });
}

TEST_CASE("an image of 0 is initial, also with 7FH in OUTPUT_MASK_PTRS (REG-147)") {
    CHECK_TWICE([](auto value) {
        xsave_pt_state const zero{};
        if (!access::is_initial(zero) ||
            !access::is_initial(with(zero, 2, value(uint64_t{0x7F}))) ||
            access::is_initial(with(zero, 2, value(uint64_t{0x17F}))) ||
            access::is_initial(with(zero, 2, value(uint64_t{0x7E})))) {
            return false;
        }
        for (unsigned i = 0; i < 9; ++i) {
            uint64_t const something = i == 2 ? 0xFF : 0x7F;
            if (access::is_initial(with(zero, i, value(something)))) { return false; }
        }
        return access::is_initial(access::xsaves(preset::P_SKL, cold).image);
    });
}

// ------------------------------------------------------------------------------ the header

TEST_CASE("XRSTORS requires a compacted area, with XSTATE_BV inside XCOMP_BV (REG-148)") {
    CHECK_TWICE([](auto value) {
        uint64_t const compacted = value(uint64_t{1}) << 63;
        reg::ia32_xss const allowed{0x100};
        access::verdict const refused{outcome::general_protection, rule::REG_148};
        return access::check_header({0x100}, {compacted | 0x100}, allowed) &&
               access::check_header({0}, {compacted | 0x100}, allowed) &&
               access::check_header({3}, {compacted | 0x103}, allowed) &&
               access::check_header({compacted >> 1}, {compacted | compacted >> 1}, allowed) &&
               access::check_header({0x100}, {0x100}, allowed) == refused &&
               access::check_header({0}, {0}, allowed) == refused &&
               access::check_header({0x100}, {compacted}, allowed) == refused &&
               access::check_header({0x102}, {compacted | 0x101}, allowed) == refused &&
               access::check_header({compacted | 0x100}, {compacted | 0x100}, allowed);
    });
}

TEST_CASE("XCOMP_BV[8] requires IA32_XSS[8] (REG-148)") {
    CHECK_TWICE([](auto value) {
        uint64_t const compacted = value(uint64_t{1}) << 63;
        reg::ia32_xss const denied{~uint64_t{0x100}};
        access::verdict const refused{outcome::general_protection, rule::REG_148};
        return access::check_header({0}, {compacted | 0x100}, denied) == refused &&
               access::check_header({3}, {compacted | 3}, denied);
    });
}

// ------------------------------------------------------------------------------ XRSTORS

TEST_CASE("XRSTORS while TraceEn is 1 faults before anything changes (REG-143)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on), 7);
        auto const init = access::xrstors_init(now);
        return refuses(preset::P_SKL, now, {}, rule::REG_143, 0, rule::none) &&
               refuses(preset::P_SKL, now, with({}, 15, 1), rule::REG_143, 0, rule::none) &&
               !init &&
               init.effect.verdict == access::verdict{outcome::general_protection, rule::REG_143} &&
               init.effect.state == now;
    });
}

TEST_CASE("XRSTORS refuses reserved bytes that are not 0 (REG-144)") {
    CHECK_TWICE([](auto value) {
        for (unsigned i = 9; i < 16; ++i) {
            auto const image = with({}, i, value(uint64_t{1}) << 63);
            if (!refuses(preset::P_FUT, cold, image, rule::REG_144, 0, rule::none)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("XRSTORS checks every quadword like WRMSR (REG-144)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(off, 3);
        auto const image = image_of(on, 0x8000, 0x7F, 0);
        struct {
            unsigned quadword;
            uint64_t value;
            uint32_t msr;
            rule why;
        } const rows[] = {{0, 0x4'0000, 0x570, rule::REG_044},
                          {0, 0x2041, 0x570, rule::REG_026},
                          {1, 0x40, 0x560, rule::REG_070},
                          {3, 0x8, 0x571, rule::REG_052},
                          {3, 0x40, 0x571, rule::REG_054},
                          {4, 0x10, 0x572, rule::REG_074},
                          {5, uint64_t{1} << 47, 0x580, rule::REG_076},
                          {6, uint64_t{1} << 47, 0x581, rule::REG_076},
                          {7, uint64_t{1} << 47, 0x582, rule::REG_076},
                          {8, uint64_t{1} << 47, 0x583, rule::REG_076}};
        for (auto const& row : rows) {
            if (!refuses(preset::P_SKL, now, with(image, row.quadword, value(row.value)),
                         rule::REG_144, row.msr, row.why)) {
                return false;
            }
        }
        return static_cast<bool>(access::xrstors(preset::P_SKL, now, image));
    });
}

TEST_CASE("a zero for an MSR that the processor lacks is skipped, another value faults (REG-144)") {
    CHECK_TWICE([](auto value) {
        auto const plain = image_of(on, 0x8000, 0x7F, 0);
        auto const back = access::xrstors(preset::P_BDW, cold, plain);
        auto const fabric = access::xrstors(preset::P_FAB, cold, image_of(0x2045, 0, 0, 0));
        return back && back.violated.msr == 0 && back.violated.broken == rule::none && fabric &&
               fabric.effect.state.output.mask_ptrs.raw == 0x7F &&
               refuses(preset::P_BDW, cold, with(plain, 5, value(uint64_t{0x1000})), rule::REG_144,
                       0x580, rule::REG_014) &&
               refuses(preset::P_FAB, cold, image_of(0x2045, 0, value(uint64_t{0x7F}), 0),
                       rule::REG_144, 0x561, rule::REG_012) &&
               refuses(preset::P_SRO, cold, with({}, 4, value(uint64_t{0x3000})), rule::REG_144,
                       0x572, rule::REG_013);
    });
}

TEST_CASE("XRSTORS does not change an MSR that the processor lacks (REG-144)") {
    CHECK_TWICE([](auto value) {
        auto now = cold;
        now.addr[0] = {{value(uint64_t{0x1000})}, {0x2000}};  // impossible on a real processor
        auto const back = access::xrstors(preset::P_BDW, now, image_of(off, 0x8000, 0x7F, 0));
        return back && back.effect.state.addr[0] == now.addr[0];
    });
}

TEST_CASE("write-ignored STATUS bits are ignored, and LowerMask reads as ones (REG-144)") {
    CHECK_TWICE([](auto value) {
        auto const back = access::xrstors(preset::P_SKL, busy(off, 3),
                                          image_of(off, 0x8000, value(uint64_t{0x100}), 0x14));
        return back && back.effect.state.output.mask_ptrs.raw == 0x17F &&
               back.effect.state.status.raw == 0x13;
    });
}

TEST_CASE("XRSTORS loads all nine MSRs, and sets TraceEn last (REG-145)") {
    CHECK_TWICE([](auto value) {
        auto image = image_of(on | uint64_t{1} << 32, 0x8000, 0x3'0000'007F, 0x5'0000'0000);
        uint64_t const rest[] = {0x6000, 0x4000, 0x4FFF, 0x5000, 0x5FFF};
        for (unsigned i = 0; i < 5; ++i) { image.quadwords[4 + i] = rest[i]; }
        auto const now = busy(off, 0);
        auto const back = access::xrstors(preset::P_SKL, now, image,
                                          {.ip = value(uint64_t{0x4800})});
        auto expected = now;
        expected.ctl = {on | uint64_t{1} << 32};
        expected.output.base = {0x8000};
        expected.output.mask_ptrs = {0x3'0000'007F};
        expected.status = {0x5'0000'0007};  // FilterEn from the range just loaded
        expected.cr3_match = {0x6000};
        expected.addr[0] = {{0x4000}, {0x4FFF}};
        expected.addr[1] = {{0x5000}, {0x5FFF}};
        return back && back.effect.state == expected && back.effect.psb == psb_plus_generation::may;
    });
}

TEST_CASE("XRSTORS that faults leaves TraceEn 0 (REG-145)") {
    CHECK_TWICE([](auto value) {
        auto const back = access::xrstors(
            preset::P_SKL, cold, with(image_of(on, 0, 0x7F, 0), 8, value(~uint64_t{0} >> 1)));
        return !back && (back.effect.state.ctl.raw & 1) == 0;
    });
}

TEST_CASE("TraceEn set by XRSTORS has the effects of TraceEn set by WRMSR (REG-144, OUT-089)") {
    CHECK_TWICE([](auto value) {
        uint64_t const ctl = value(uint64_t{1} << 56 | on);
        auto const back = access::xrstors(preset::P_FUT, cold, image_of(ctl, 0, 0x7F, 0xC0));
        auto const stopped = access::xrstors(preset::P_SKL, cold, image_of(on, 0, 0x7F, 0x20));
        return back && back.effect.pmi && back.effect.psb == psb_plus_generation::yes &&
               back.effect.state.status.raw == 0x87 && stopped &&
               stopped.effect.state.status.raw == 0x21 &&
               stopped.effect.psb == psb_plus_generation::no;
    });
}

TEST_CASE("XRSTORS in VMX operation follows the rules of WRMSR there (REG-010, REG-121, REG-144)") {
    CHECK_TWICE([](auto value) {
        auto now = cold;
        now.in_vmx_operation = value(true);
        auto const image = image_of(off, 0x8000, 0x7F, 0);
        auto const older = access::xrstors(preset::P_BDW, now, image, {},
                                           {.only_enabling_faults_in_vmx = true});
        return refuses(preset::P_BDW, now, image, rule::REG_144, 0x570, rule::REG_121) && older &&
               older.effect.state.ctl.raw == off;
    });
}

TEST_CASE("XRSTORS of the initial configuration resets all nine MSRs (REG-146)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(off), 0x33);
        auto const back = access::xrstors_init(now);
        auto expected = cold;
        expected.addr[2] = now.addr[2];
        expected.addr[3] = now.addr[3];
        expected.xss = now.xss;
        return back && back.effect.state == expected && back.effect.psb == psb_plus_generation::no;
    });
}

TEST_CASE("XRSTORS restores what XSAVES stored (REG-142, REG-145)") {
    CHECK_TWICE([](auto value) {
        auto const now = busy(value(on), 0x5'0000'0003);
        auto const saved = access::xsaves(preset::P_SKL, now);
        auto const back = access::xrstors(preset::P_SKL, saved.state, saved.image);
        auto expected = now;
        expected.status = {0x5'0000'0007};
        return back && back.effect.state == expected;
    });
}
