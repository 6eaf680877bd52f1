// SPDX-License-Identifier: BSL-1.0
#include <ptspec/config/perf_config.hpp>

#include <support/check_twice.hpp>

#include <random>

using namespace ptspec::cpu;
using namespace ptspec::config;
using ptspec::wrapped;
using ptspec::reg::addr_cfg;
using ptspec::reg::ia32_rtit_ctl;

namespace {

// The bit numbers of section 4.3 of tests/spec/drivers.md.
constexpr uint64_t pt = 1U << 0;
constexpr uint64_t cyc = 1U << 1;
constexpr uint64_t pwr_evt = 1U << 4;
constexpr uint64_t fup_on_ptw = 1U << 5;
constexpr uint64_t mtc = 1U << 9;
constexpr uint64_t tsc = 1U << 10;
constexpr uint64_t noretcomp = 1U << 11;
constexpr uint64_t ptw = 1U << 12;
constexpr uint64_t branch = 1U << 13;
constexpr uint64_t mtc_period_all = 0xFU << 14;
constexpr uint64_t cyc_thresh_all = 0xFU << 19;
constexpr uint64_t psb_period_all = 0xFU << 24;
constexpr uint64_t event = 0x8000'0000;
constexpr uint64_t notnt = 0x0080'0000'0000'0000;

constexpr uint64_t known = pt | cyc | pwr_evt | fup_on_ptw | mtc | tsc | noretcomp | ptw | branch |
                           mtc_period_all | cyc_thresh_all | psb_period_all | event | notnt;

/// The CTL that Linux writes for an event, without TraceEn.
constexpr auto ctl_for(uint64_t config) -> uint64_t {
    auto const made = from_perf({.config = config});
    return made ? ctl_of(made.config).raw : ~uint64_t{0};
}

}  // namespace

TEST_CASE("an event with config 0 traces branches of user and kernel into ToPA") {
    CHECK_TWICE([](auto value) {
        return ctl_for(value(uint64_t{0})) == 0x210C &&
               from_perf({value(uint64_t{0})}).config == trace_config{.os = true, .user = true};
    });
}

TEST_CASE("each bit of config is the same bit of IA32_RTIT_CTL") {
    CHECK_TWICE([](auto value) {
        return ctl_for(value(cyc)) == (0x210C | 1U << 1) &&
               ctl_for(value(pwr_evt)) == (0x210C | 1U << 4) &&
               ctl_for(value(fup_on_ptw | ptw)) == (0x210C | 1U << 5 | 1U << 12) &&
               ctl_for(value(mtc)) == (0x210C | 1U << 9) &&
               ctl_for(value(tsc)) == (0x210C | 1U << 10) &&
               ctl_for(value(noretcomp)) == (0x210C | 1U << 11) &&
               ctl_for(value(ptw)) == (0x210C | 1U << 12) &&
               ctl_for(value(mtc_period_all)) == (0x210C | 0x3'C000) &&
               ctl_for(value(cyc_thresh_all)) == (0x210C | 0x78'0000) &&
               ctl_for(value(psb_period_all)) == (0x210C | 0xF00'0000);
    });
    CHECK_TWICE([](auto value) {
        return ctl_for(value(event)) == (0x210C | 0x8000'0000) &&
               ctl_for(value(notnt)) == (0x210C | 0x0080'0000'0000'0000) &&
               ctl_for(value(tsc | mtc | uint64_t{3} << 14 | pt | branch)) ==
                   (0x210C | 1U << 10 | 1U << 9 | 3U << 14);
    });
}

TEST_CASE("BranchEn is 1 unless bit 0 is 1 and bit 13 is 0") {
    CHECK_TWICE([](auto value) {
        return ctl_for(value(uint64_t{0})) == 0x210C && ctl_for(value(pt)) == 0x10C &&
               ctl_for(value(pt | branch)) == 0x210C &&
               from_perf({value(branch)}).error == error::branch_without_pt &&
               from_perf({value(branch | tsc)}).error == error::branch_without_pt;
    });
}

TEST_CASE("exclude_kernel and exclude_user clear OS and User") {
    CHECK_TWICE([](auto value) {
        bool const on = value(true);
        auto const ctl = [](perf_event one) { return ctl_of(from_perf(one).config).raw; };
        return ctl({.exclude_kernel = on}) == 0x2108 && ctl({.exclude_user = on}) == 0x2104 &&
               ctl({.exclude_kernel = on, .exclude_user = on}) == 0x2100;
    });
}

TEST_CASE("a bit without a meaning is refused") {
    unsigned unknown = 0;
    for (unsigned n = 0; n < 64; ++n) {
        CAPTURE(n);
        uint64_t const bit = uint64_t{1} << n;
        bool const refused = from_perf({bit | pt | ptw}).error == error::unknown_bit;
        CHECK(refused == ((known & bit) == 0));
        unknown += refused ? 1U : 0U;
    }
    CHECK(unknown == 64 - 9 - 12 - 2);
    CHECK_TWICE([](auto value) {
        return !from_perf({value(uint64_t{0x4})}) && !from_perf({value(uint64_t{0x100})}) &&
               from_perf({value(uint64_t{0x4})}).config == trace_config{} &&
               from_perf({value(known)}) &&
               from_perf({value(uint64_t{0x2004})}).error == error::unknown_bit;
    });
    CHECK_TWICE([](auto value) { return perf_config_bits == value(known); });
}

TEST_CASE("from_perf_unchecked() ignores bits without a meaning and what Linux refuses") {
    CHECK_TWICE([](auto value) {
        auto const ctl = [](perf_event one) { return ctl_of(from_perf_unchecked(one)).raw; };
        return ctl({value(~known | pt | tsc)}) == (0x10C | 1U << 10) &&
               ctl({value(branch)}) == 0x210C &&
               ctl({value(pt | fup_on_ptw), true, true}) == (0x100 | 1U << 5) &&
               from_perf_unchecked({value(ptw)}) == from_perf({ptw}).config;
    });
}

TEST_CASE("fup_on_ptw without ptw is refused (REG-032)") {
    CHECK_TWICE([](auto value) {
        auto const alone = from_perf({value(fup_on_ptw)});
        return alone.error == error::fup_without_ptwrite && !alone &&
               alone.config == trace_config{} && from_perf({value(fup_on_ptw | ptw)}) &&
               from_perf({value(ptw)}).error == error::none;
    });
}

// ------------------------------------------------------------------------------------ to perf

TEST_CASE("a usual configuration becomes the event that the perf tool would use") {
    CHECK_TWICE([](auto value) {
        auto const made = to_perf({.user = true,
                                   .tsc = true,
                                   .mtc = value(true),
                                   .mtc_every = mtc_period::encoded(3),
                                   .psb_every = psb_period::encoded(3)});
        return made && made.event.config == (tsc | mtc | 3U << 14 | 3U << 24) &&
               made.event.exclude_kernel && !made.event.exclude_user && made.lost.empty();
    });
    CHECK_TWICE([](auto value) {
        return to_perf({.os = value(true)}).event ==
                   perf_event{.config = 0, .exclude_kernel = false, .exclude_user = true} &&
               to_perf({.branches = value(false)}).event.config == pt &&
               to_perf({.ret_compression = value(false)}).event.config == noretcomp;
    });
}

TEST_CASE("an event has every member for which config has a bit") {
    CHECK_TWICE([](auto value) {
        bool const on = value(true);
        auto const made = to_perf({.os = on,
                                   .user = on,
                                   .branches = !on,
                                   .ret_compression = !on,
                                   .no_tnt = on,
                                   .tsc = on,
                                   .mtc = on,
                                   .mtc_every = mtc_period::encoded(15),
                                   .cyc = on,
                                   .cyc_after = cyc_threshold::encoded(15),
                                   .psb_every = psb_period::encoded(15),
                                   .ptwrite = on,
                                   .fup_on_ptwrite = on,
                                   .power_events = on,
                                   .event_trace = on});
        return made && made.event == perf_event{.config = known & ~branch};
    });
}

TEST_CASE("members that an event cannot express are reported") {
    auto const lost = [](trace_config const& config) {
        auto const made = to_perf(config);
        return made ? 0 : made.lost.bits;
    };
    auto const bit = [](config_member which) { return 1U << static_cast<unsigned>(which); };
    CHECK_TWICE([=](auto value) {
        auto const on = value(addr_cfg::filter);
        auto const off = addr_cfg::off;
        return lost({.cr3_filter = value(true)}) == bit(config_member::cr3_filter) &&
               lost({.inject_psb_pmi = value(true)}) == bit(config_member::inject_psb_pmi) &&
               lost({.addr = {on}}) == bit(config_member::addr_0) &&
               lost({.addr = {off, on}}) == bit(config_member::addr_1) &&
               lost({.addr = {off, off, on}}) == bit(config_member::addr_2) &&
               lost({.addr = {off, off, off, on}}) == bit(config_member::addr_3) &&
               lost({.output = output_scheme::fabric}) == bit(config_member::output) &&
               lost({.output = output_scheme::single_range}) == bit(config_member::output);
    });
    CHECK_TWICE([=](auto value) {
        return lost({.mtc_every = mtc_period::encoded(15),
                     .cyc_after = cyc_threshold::encoded(15),
                     .psb_every = psb_period::encoded(15)}) == value(0U);
    });
    CHECK_TWICE([](auto value) {
        auto const made = to_perf({.fup_on_ptwrite = value(true)});
        return !made && made.lost.empty() && made.error == error::fup_without_ptwrite &&
               made.event.config == fup_on_ptw;
    });
}

TEST_CASE(
    "to_perf() and from_perf() are inverse for accepted events and for members that are not lost") {
    std::mt19937_64 random{7};
    unsigned wrong = 0;
    unsigned whole = 0;
    for (unsigned i = 0; i < 20000; ++i) {
        perf_event const request{random() & random() & known, random() % 2 == 0, random() % 2 == 0};
        auto const made = from_perf(request);
        if (!made) { continue; }
        auto const again = to_perf(made.config);
        // Bits 0 and 13 both set mean the same as both clear.
        uint64_t const branches = (request.config & branch) != 0 ? pt | branch : 0;
        if (!again || !(again.event == perf_event{request.config & ~branches,
                                                  request.exclude_kernel, request.exclude_user})) {
            ++wrong;
        }
    }
    for (unsigned i = 0; i < 20000; ++i) {
        auto const wanted = config_of(ia32_rtit_ctl{(random() & random() & random()) | 0x100});
        auto const made = to_perf(wanted);
        auto const back = from_perf(made.event);
        if (back.error != made.error) { ++wrong; }
        if (back && (back.config == wanted) != static_cast<bool>(made)) { ++wrong; }
        whole += made ? 1U : 0U;
    }
    CHECK(wrong == 0);
    CHECK(whole > 100);
}

TEST_CASE("every error has a sentence") {
    CHECK_TWICE([](auto value) {
        using ptspec::text;
        return describe(value(error::none)) == text{"nothing is wrong"} &&
               describe(value(error::unknown_bit)) == text{"config has a bit that means nothing"} &&
               describe(value(error::branch_without_pt)) == text{"branch needs pt"} &&
               describe(value(error::fup_without_ptwrite)) == text{"fup_on_ptw needs ptw"} &&
               describe(value(error{9})) == text{"unknown error"};
    });
}
