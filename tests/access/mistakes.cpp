// SPDX-License-Identifier: BSL-1.0
// Mistakes that shipped in drivers, hypervisors and their headers. One test for each, named after
// the fact that it guards.
#include <ptspec/access/effect.hpp>
#include <ptspec/access/enables.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::effect_of_write;
using access::msr_state;
using access::psb_plus_generation;
using cpu::preset::P_ATM;
using cpu::preset::P_FUT;
using cpu::preset::P_SKL;

namespace {

constexpr uint32_t output_base = 0x560;
constexpr uint32_t ctl = 0x570;

constexpr auto state(uint64_t ctl_value, uint64_t status_value) -> msr_state {
    msr_state made;
    made.ctl = {ctl_value};
    made.status = {status_value};
    return made;
}

}  // namespace

TEST_CASE("STATUS bits 6 and 7 are not swapped: 6 is PendPSB, 7 PendToPAPMI (REG-065, REG-066)") {
    using status = reg::ia32_rtit_status;
    CHECK_TWICE([](auto value) {
        auto const psb = status{value(uint64_t{0x40})};
        auto const pmi = status{value(uint64_t{0x80})};
        return psb.get<status::PendPSB>() && !psb.get<status::PendToPAPMI>() &&
               pmi.get<status::PendToPAPMI>() && !pmi.get<status::PendPSB>();
    });
    // TraceEn is set with InjectPsbPmiOnEnable in the middle of a PSB period.
    CHECK_TWICE([](auto value) {
        auto const before = state(0, value(uint64_t{0x5'0000'0040}));
        auto const done = effect_of_write(P_ATM, before, ctl, 0x0100'0000'0000'2109);
        return done && done.psb == psb_plus_generation::yes && !done.pmi &&
               done.state.status.raw == 0x5'0000'0005;
    });
    CHECK_TWICE([](auto value) {
        auto const before = state(0, value(uint64_t{0x5'0000'0080}));
        auto const done = effect_of_write(P_ATM, before, ctl, 0x0100'0000'0000'2109);
        return done && done.psb == psb_plus_generation::may && done.pmi &&
               done.state.status.raw == 0x5'0000'0085;
    });
}

TEST_CASE("the output base is not limited to 36 bits: it has MAXPHYADDR bits (REG-070, OUT-044)") {
    CHECK_TWICE([](auto value) {
        auto const highest = value(uint64_t{0x000F'FFFF'FFFF'FF80});
        auto const done = effect_of_write(P_FUT, msr_state{}, output_base, highest);
        return done && done.state.output.base.raw == 0x000F'FFFF'FFFF'FF80;
    });
    CHECK_TWICE([](auto value) {
        auto const done = effect_of_write(P_SKL, msr_state{}, output_base,
                                          value(uint64_t{0x0000'0040'0000'0000}));
        return done && done.state.output.base.raw == 0x0000'0040'0000'0000;
    });
    CHECK_TWICE([](auto value) {
        using base = reg::ia32_rtit_output_base;
        auto const word = base{value(uint64_t{0x000F'F800'0000'1080})};
        return word.get<base::BasePhysAddr>() == 0x000F'F800'0000'1080;
    });
    CHECK_TWICE([](auto value) {
        auto const word = topa::entry{value(uint64_t{0x000F'8000'0000'1100})};
        return word.get<topa::entry::Base>() == 0x000F'8000'0000'1000;
    });
}

TEST_CASE("ADDR1_CFG and ADDR0_CFG are different bits (REG-037, REG-058)") {
    using word = reg::ia32_rtit_ctl;
    CHECK_TWICE([](auto value) {
        auto const one = word{value(uint64_t{0x0000'0020'0000'0000})};
        return one.get<word::ADDR0_CFG>() == reg::addr_cfg::off &&
               one.get<word::ADDR1_CFG>() == reg::addr_cfg::trace_stop &&
               word{}.with(word::ADDR1_CFG{reg::addr_cfg::trace_stop}) == one;
    });
    // Range 0 is off and range 1 is a filter: only range 1 is traced.
    CHECK_TWICE([](auto value) {
        auto now = state(value(uint64_t{0x0000'0010'0000'0000}), 0);
        now.addr[0] = {{0x1000}, {0x1FFF}};
        now.addr[1] = {{0x3000}, {0x3FFF}};
        return !access::match_ranges(now, 0x1000).filter_en &&
               access::match_ranges(now, 0x3000).filter_en;
    });
}

TEST_CASE("CTL bits 31, 55 and 56 are not refused where they are enumerated (REG-034..036)") {
    CHECK_TWICE([](auto value) {
        uint64_t const alone[] = {0x8000'0000, 0x0080'0000'0000'0000, 0x0100'0000'0000'0000};
        bool written = true;
        for (auto const one : alone) {
            auto const done = effect_of_write(P_FUT, msr_state{}, ctl, value(one));
            written = written && done && done.state.ctl.raw == one;
        }
        return written;
    });
    CHECK_TWICE([](auto value) {
        auto const done = effect_of_write(P_FUT, msr_state{}, ctl,
                                          value(uint64_t{0x0180'0000'8000'2109}));
        return done && done.state.ctl.raw == 0x0180'0000'8000'2109;
    });
    CHECK_TWICE([](auto value) {
        auto const done = effect_of_write(P_ATM, msr_state{}, ctl,
                                          value(uint64_t{0x0100'0000'0000'2109}));
        return done && done.state.ctl.raw == 0x0100'0000'0000'2109;
    });
}

TEST_CASE("a write that clears TraceEn does not fault for the other bits it changes (REG-022)") {
    CHECK_TWICE([](auto value) {
        auto const tracing = state(value(uint64_t{0x2109}), 4);
        auto const done = effect_of_write(P_SKL, tracing, ctl, value(uint64_t{0x0300'C684}));
        return done && done.state.ctl.raw == 0x0300'C684 && done.state.status.raw == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const tracing = state(value(uint64_t{0x2109}), 4);
        auto const done = effect_of_write(P_SKL, tracing, ctl, value(uint64_t{0}));
        return done && done.state.ctl.raw == 0 && done.state.status.raw == 0;
    });
}
