// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/clock.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>

#include <initializer_list>

using namespace ptspec;
using packet::cbr;
using packet::cyc;
using packet::mtc;
using packet::tma;
using packet::tsc;
using trace::clock_options;
using trace::time;

namespace {

/// A clock that takes packets by their values.
struct fed : trace::clock {
    constexpr explicit fed(clock_options const& how) : clock{how} {}

    constexpr auto tsc(uint64_t value) -> fed& {
        last = add(packet::tsc{}.with(packet::tsc::TSC{wrapped{value}}));
        return *this;
    }
    constexpr auto tma(uint64_t ctc, uint64_t fc) -> fed& {
        last = add(
            packet::tma{}.with(packet::tma::CTC{wrapped{ctc}}, packet::tma::FC{wrapped{fc}}));
        return *this;
    }
    constexpr auto mtc(uint64_t ctc) -> fed& {
        last = add(packet::mtc{}.with(packet::mtc::CTC{wrapped{ctc}}));
        return *this;
    }
    constexpr auto cbr(uint64_t ratio) -> fed& {
        last = add(packet::cbr{}.with(packet::cbr::CoreBusRatio{wrapped{ratio}}));
        return *this;
    }
    constexpr auto pip(bool non_root) -> fed& {
        last = add(packet::pip{}.with(packet::pip::NR{non_root}));
        return *this;
    }
    constexpr auto cyc(uint64_t count) -> fed& {
        last = add(packet::cyc::of(count));
        return *this;
    }
    template <class Packet>
    constexpr auto other() -> fed& {
        last = add(Packet{});
        return *this;
    }
    [[nodiscard]] constexpr auto at() const -> uint64_t { return now().tsc; }

    rule last = rule::none;
};

/// 2 TSC ticks in a crystal cycle, an MTC every 8 crystal cycles.
constexpr clock_options simple{
    .mtc_freq = 3, .max_non_turbo_ratio = 24, .tsc_numerator = 2, .tsc_denominator = 1};

constexpr auto ticks_of_500_cycles(fed clock) -> uint64_t {
    uint64_t const before = clock.at();
    return clock.cyc(500).at() - before;
}

constexpr auto with(clock_options how, auto change) -> clock_options {
    change(how);
    return how;
}

}  // namespace

TEST_CASE("the example of PKT-305: the sum of MTC steps is converted, not each (PKT-300,303,304)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(clock_options{.mtc_freq = 3, .tsc_numerator = 250, .tsc_denominator = 3})};
        clock.tsc(0x10'0000).tma(0x1234, 0x50);
        bool const starts = clock.at() == 0x10'0000;
        return starts && clock.mtc(0x47).at() == 0x10'00FD && clock.mtc(0x48).at() == 0x10'0398 &&
               clock.mtc(0x49).at() == 0x10'0632 && clock.mtc(0x4A).at() == 0x10'08CD;
    });
}

TEST_CASE("the examples of PKT-308: MTCs with more bits than TMA (GEN-207)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(clock_options{.mtc_freq = 9, .tsc_numerator = 168, .tsc_denominator = 2})};
        clock.tsc(0x10'0000).tma(0xFFF0, 0);
        return clock.mtc(0x01).at() == 0x10'AD40 && clock.mtc(0x02).at() == 0x11'5540;
    });
    // The upper bits of the counter: CTC 12340H, and MTC 12400H = 92H << 9.
    CHECK_TWICE([](auto value) {
        fed clock{value(clock_options{.mtc_freq = 9, .tsc_numerator = 1, .tsc_denominator = 1})};
        return clock.tsc(0x10'0000).tma(0x2340, 0).mtc(0x92).at() == 0x10'0000 + 0xC0;
    });
}

TEST_CASE("a TSC restarts; MTCs before its TMA are ignored (PKT-302, GEN-171,218)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(1000).tma(0x10, 0).mtc(3);  // CTC 18H
        bool const before = clock.at() == 1016;
        clock.tsc(5000).mtc(9);
        bool const ignored = clock.at() == 5000;
        clock.tma(0x40, 1);  // the edge was at 4999
        return before && ignored && clock.at() == 5000 && clock.mtc(9).at() == 5015;
    });
}

TEST_CASE("a TSC with another VMX offset changes the times of the MTCs after it (PKT-317)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(900'000).tma(0x10, 0).mtc(3);
        // VM entry: the guest's TSC is lower. MTCs before its TSC have the host's.
        bool const host = clock.mtc(4).at() == 900'032;
        clock.tsc(5000).tma(0x22, 0);
        return host && clock.mtc(5).at() == 5000 + 12 && clock.mtc(6).at() == 5000 + 28;
    });
}

TEST_CASE("a TMA without a TSC, and a second one, are refused (PKT-303)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        bool const first = clock.tma(1, 1).last == rule::PKT_303;
        bool const second = clock.tsc(1000).tma(0, 0).last == rule::none &&
                            clock.tma(8, 0).last == rule::PKT_303;
        return first && second && clock.mtc(1).at() == 1016;  // by the first TMA
    });
}

TEST_CASE("MTCs wrap after 256, and up to 255 may be lost (PKT-306,307, GEN-206)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(1000).tma(0x7F0, 0);
        clock.mtc(0xFF).mtc(0x00);
        bool const wraps = clock.at() == 1000 + 32 && clock.missing_mtcs() == 0;
        clock.mtc(0x04);
        bool const lost = clock.at() == 1000 + 96 && clock.missing_mtcs() == 3;
        clock.mtc(0x03);
        return wraps && lost && clock.at() == 1000 + 96 + 255 * 16 &&
               clock.missing_mtcs() == 3 + 254 && clock.mtc(3).at() == 1000 + 96 + 255 * 16;
    });
    // The same where a period is no number of TSC ticks.
    CHECK_TWICE([](auto value) {
        fed clock{value(clock_options{.mtc_freq = 3, .tsc_numerator = 250, .tsc_denominator = 3})};
        clock.tsc(1000).tma(0x7F8, 0).mtc(0x00);
        return clock.mtc(0x04).missing_mtcs() == 3 && clock.at() == 1000 + 40 * 250 / 3;
    });
}

TEST_CASE("without CPUID.15H there is no time from MTC, and nothing is divided (PKT-301)") {
    CHECK_TWICE([](auto value) {
        fed none{value(clock_options{.mtc_freq = 3, .tsc_numerator = 84})};
        fed other{value(clock_options{.mtc_freq = 3, .tsc_denominator = 2})};
        return none.tsc(77).tma(1, 1).mtc(9).at() == 77 &&
               other.tsc(77).tma(1, 1).mtc(9).at() == 77;
    });
}

TEST_CASE("MTCs without a TSC give relative times (PKT-310)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        bool const starts = clock.mtc(7).at() == 0 && !clock.is_absolute();
        bool const goes_on = clock.mtc(8).now() == time{16, 0, time::unbounded, 0} &&
                             !clock.now().is_absolute();
        return starts && goes_on && clock.tsc(500).is_absolute() && clock.now().is_absolute();
    });
}

TEST_CASE("an MTC of the edge before the TSC does not take the time back (PKT-309)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(1001).tma(8, 1).mtc(1);
        bool const kept = clock.now() == time{1001, 1001, 1000 + 32, 0};
        return kept && clock.mtc(2).at() == 1016;  // it counts from the edge
    });
}

TEST_CASE("an estimate goes back where measured cycles are too many, the monotonic one does not") {
    CHECK_TWICE([](auto value) {
        auto const how = with(simple, [](auto& of) { of.tolerance = 1; });
        fed plain{value(how)};
        fed monotonic{value(with(how, [](auto& of) { of.monotonic = true; }))};
        auto const before = plain.tsc(1000).tma(0, 0).cbr(24).cyc(18).at();
        bool const goes_back = plain.mtc(1).at() < before;
        auto const kept = monotonic.tsc(1000).tma(0, 0).cbr(24).cyc(18).at();
        return goes_back && monotonic.mtc(1).at() == kept;
    });
}

TEST_CASE("a CYC advances by its cycles at the ratio of CBR: the example of PKT-311 (GEN-208)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        return clock.tsc(1000).cbr(30).cyc(100).at() == 1080 && clock.cyc(50).at() == 1120 &&
               clock.cycles() == 150 && clock.now().cycles == 150;
    });
    // The greatest ratio.
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.max_non_turbo_ratio = 255; }))};
        return clock.tsc(1000).cbr(1).cyc(10).at() == 1000 + 2550;
    });
    // Every product below 2^24 cycles is exact, and larger ones do not wrap.
    CHECK_TWICE([](auto value) {
        for (uint64_t const core : {1U, 7U, 30U, 36U, 255U}) {
            for (uint64_t const count : {1U, 255U, 65'536U, 1'234'567U, 16'777'215U}) {
                fed clock{value(simple)};
                clock.tsc(1000).cbr(core).cyc(count);
                if (clock.at() != 1000 + count * 24 / core) { return false; }
            }
        }
        fed clock{value(simple)};
        clock.tsc(1000).cbr(24).cyc(uint64_t{1} << 40);
        return clock.at() == 1000 + (uint64_t{1} << 40);
    });
    // A CYC of any size, and any number of them, stays bounded.
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(1000).cbr(24).cyc(~uint64_t{0}).cyc(~uint64_t{0}).cyc(3);
        return clock.at() >= 1000 && clock.now().earliest <= clock.at() &&
               clock.at() <= clock.now().latest;
    });
}

TEST_CASE("without CBR or MaxNonTurboRatio a CYC gives no time, and is counted (PKT-106,311)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        fed without{value(with(simple, [](auto& how) { how.max_non_turbo_ratio = 0; }))};
        bool const none = clock.tsc(1000).cyc(9).at() == 1000 && clock.unused_cycs() == 1 &&
                          clock.cbr(0).cyc(9).at() == 1000 && clock.unused_cycs() == 2;
        return none && without.tsc(1000).cbr(30).cyc(9).at() == 1000 && without.unused_cycs() == 1;
    });
}

TEST_CASE("the ratio is measured between two MTCs, and a CBR replaces it (PKT-312)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.tsc_numerator = 100; }))};
        clock.tsc(0).tma(0, 0).cbr(24).cyc(700).mtc(1);
        bool const not_yet = ticks_of_500_cycles(clock) == 500;  // from a TSC to an MTC
        clock.cyc(1000).mtc(2);                                  // 800 ticks
        bool const measured = clock.cyc(500).at() == 1600 + 400;
        clock.other<packet::psb>().cbr(24).other<packet::psbend>();
        bool const kept = ticks_of_500_cycles(clock) == 400;  // inside a PSB+
        clock.cbr(24);
        return not_yet && measured && kept && clock.cyc(500).at() == 1600 + 1000;
    });
    // A measurement that is far from the ratio of CBR is none: the clocks were off.
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(0).tma(0, 0).cbr(24);
        auto const before = ticks_of_500_cycles(clock);
        return ticks_of_500_cycles(clock.cyc(10).mtc(1).cyc(10).mtc(2)) == before;
    });
}

TEST_CASE("MTC and TSC replace the time of CYCs (PKT-313)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.lost_mtcs = 200; }))};
        clock.tsc(1000).tma(0, 0).cbr(24).cyc(900);
        bool const ahead = clock.at() == 1900;
        return ahead && clock.mtc(1).at() == 1016 && clock.cyc(50).tsc(1040).at() == 1040;
    });
}

TEST_CASE("with a threshold, a CYC has cycles of before the last MTC (PKT-115,314, GEN-212)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) {
            how.tsc_numerator = 100;
            how.cyc_thresh = 9;  // 256 cycles
        }))};
        clock.tsc(0).tma(0, 0).cbr(24).cyc(300).other<packet::tip>();
        // 500 cycles after the CYC comes the MTC without one; 700 after it, a packet with one.
        clock.mtc(1);
        bool const at_mtc = clock.at() == 800;
        clock.cyc(700);
        auto const now = clock.now();
        // At most 255 of the 700 cycles lie before the MTC.
        return at_mtc && now.earliest <= 800 + 445 && now.latest >= 800 + 700 &&
               now.earliest >= 800 + 380;
    });
    // A packet without a CYC is less than 256 cycles after the last.
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.cyc_thresh = 9; }))};
        clock.tsc(0).cbr(24).cyc(300);
        bool const exact = clock.cycle() == trace::cycle_time{300, 0} && clock.now().latest < 330;
        clock.other<packet::tip>();
        return exact && clock.cycle() == trace::cycle_time{300, 255} &&
               clock.now().latest >= 300 + 255 && clock.now().tsc == 300;
    });
}

TEST_CASE(
    "the cycle of a packet: CYCs add up, and one serves several (PKT-113,114, GEN-215..217)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.cyc(7);
        bool const first = clock.cycle() == trace::cycle_time{7, 0};
        clock.other<packet::pip>().other<packet::tip>();
        bool const same = clock.cycle() == trace::cycle_time{7, 0};
        clock.cyc(4000).cyc(5).mtc(1);
        return first && same && clock.cycle() == trace::cycle_time{4012, 0} &&
               clock.other<packet::tnt_short>().cycle() == trace::cycle_time{4012, 0};
    });
}

TEST_CASE("the bounds of a time: from the last MTC to the next, or the one after it (GEN-203)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        fed strict{value(with(simple, [](auto& how) { how.lost_mtcs = 0; }))};
        clock.tsc(1000);
        bool const open = clock.now() == time{1000, 1000, time::unbounded, 0};
        clock.tma(4, 0);
        bool const after_tma = clock.now() == time{1000, 1000, 1000 + 8 + 16, 0};
        clock.mtc(1);
        strict.tsc(1000).tma(4, 0).mtc(1);
        return open && after_tma && clock.now() == time{1008, 1008, 1008 + 32, 0} &&
               strict.now() == time{1008, 1008, 1008 + 16, 0};
    });
}

TEST_CASE("the bounds of a CYC: the deviation of the core clock, a cycle and rounding (PKT-311)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.tolerance = 3; }))};
        // A cycle has 2 ticks, and between 2 * 7 / 8 and 2 * 8 / 7; 100 cycles may be 99 or 101.
        auto const first = clock.tsc(1000).cbr(12).cyc(100).now();
        bool const is_first = first.tsc == 1200 && first.earliest == 1000 + 99 * 7 / 4 &&
                              first.latest == 1000 + 1 + 101 * 16 / 7 + 1;
        auto const then = clock.cyc(1).now();
        return is_first && then.tsc == 1202 && then.earliest == 1000 + 100 * 7 / 4 - 1 &&
               then.latest == 1000 + 1 + 102 * 16 / 7 - 1 + 1 && then.cycles == 101;
    });
    // Any frequency: only lower bounds.
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.tolerance = 0; }))};
        auto const now = clock.tsc(1000).cbr(12).cyc(100).now();
        return now.tsc == 1200 && now.earliest == 1000 && now.latest == time::unbounded;
    });
}

TEST_CASE("a ratio measured over few cycles limits nothing (PKT-312)") {
    CHECK_TWICE([](auto value) {
        // 5.375 ticks in a cycle. The second TSC is 3 whole cycles and parts of two later.
        fed clock{value(clock_options{.max_non_turbo_ratio = 43})};
        clock.tsc(999'000).cbr(8).cyc(186).tsc(1'000'000).cyc(3).tsc(1'000'017).cyc(10'000);
        uint64_t const truth = 1'000'017 + 53'750;
        return clock.now().earliest <= truth && truth <= clock.now().latest;
    });
}

TEST_CASE("the core clock may deviate to one side, and then to the other (PKT-312)") {
    CHECK_TWICE([](auto value) {
        auto const how = with(simple, [](auto& of) { of.tsc_numerator = 100; });
        fed slow{value(how)};
        slow.tsc(0).tma(0, 0).cbr(24).cyc(800).mtc(1).cyc(823).mtc(2).cyc(776);
        fed fast{value(how)};
        fast.tsc(0).tma(0, 0).cbr(24).cyc(800).mtc(1).cyc(777).mtc(2).cyc(823);
        return slow.now().earliest < 2399 && slow.now().latest >= 2399 &&
               fast.now().earliest < 2399 && fast.now().latest >= 2399;
    });
}

TEST_CASE("after an OVF, a CBR may be lost: the ratio may be any until the next (GEN-225)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        auto const open = clock.tsc(1000).cbr(24).cyc(10).other<packet::ovf>().tsc(5000).cyc(100);
        auto const now = open.now();
        bool const any = now.tsc == 5100 && now.earliest <= 5000 + 100 * 24 / 255 &&
                         now.latest >= 5000 + 100 * 24 && now.latest < 5000 + 200 * 24;
        clock.other<packet::psb>().tsc(6000).cbr(12).other<packet::psbend>().cyc(100);
        return any && clock.now().earliest > 6180 && clock.now().latest < 6220;
    });
    // Outside a PSB+ it may tell of a change after the TSC.
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(1000).cbr(24).cyc(10).other<packet::ovf>().tsc(5000).cbr(12).cyc(100);
        bool const any = clock.now().earliest <= 5000 + 100 * 24 / 255 &&
                         clock.now().latest >= 5000 + 100 * 24;
        return any && clock.cyc(100).now().earliest > 5180;
    });
    // The CYC before it has cycles of the overflow: no lower bound follows from them.
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        return clock.tsc(1000).cbr(24).cyc(9000).other<packet::ovf>().now().earliest == 1000;
    });
}

TEST_CASE("the lower bound goes back only where the TSC does (PKT-302)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        auto const first = clock.tsc(1000).cbr(24).cyc(1000).now().earliest;
        auto const then = clock.cbr(12).cyc(1).now().earliest;
        auto const last = clock.cbr(48).cyc(1).now().earliest;
        return first > 1900 && then >= first && last >= then &&
               clock.tsc(500).now().earliest == 500;
    });
    CHECK_TWICE([](auto value) {
        fed clock{value(clock_options{
            .mtc_freq = 3, .max_non_turbo_ratio = 24, .tsc_numerator = 250, .tsc_denominator = 3})};
        uint64_t last = clock.tsc(1000).tma(0, 0).cbr(24).now().earliest;
        for (unsigned i = 1; i < 40; ++i) {
            auto const before = clock.cyc(667).now().earliest;
            auto const after = clock.mtc(i).now().earliest;
            if (before < last || after < before) { return false; }
            last = after;
        }
        return true;
    });
}

TEST_CASE("a frequency changes inside a cycle: both of its ends may have either ratio (PKT-278)") {
    CHECK_TWICE([](auto value) {
        // 1 tick a cycle; the cycle of the CYC begins just before the CBR; then 8 ticks.
        fed clock{value(with(simple, [](auto& how) { how.tolerance = 16; }))};
        clock.tsc(1000).cbr(24).cyc(100).cbr(3).cyc(1).cyc(1);
        bool const slower = clock.now().earliest <= 1102 && clock.now().latest >= 1117;
        clock.tsc(2000).cbr(24).cyc(1).cyc(1);
        return slower && clock.now().earliest <= 2001 && clock.now().latest >= 2010;
    });
}

TEST_CASE("the MTC of the next edge may stand before the TSC and the TMA (GEN-218)") {
    CHECK_TWICE([](auto value) {
        auto const how = with(simple, [](auto& of) { of.lost_mtcs = 0; });
        fed before{value(how)};
        before.tsc(1000).tma(0, 0).mtc(1).tsc(1015).tma(7, 1);
        bool const is_next = before.now() == time{1015, 1015, 1032, 0};
        fed between{value(how)};
        between.tsc(1015).mtc(1).tma(7, 1);
        fed neither{value(how)};
        neither.tsc(1015).mtc(0).tma(7, 1);
        return is_next && between.now().latest == 1032 && neither.now().latest == 1016;
    });
    // TMA has bits 15:0 of the counter, this MTC bits 16:9.
    CHECK_TWICE([](auto value) {
        fed clock{value(clock_options{
            .mtc_freq = 9, .tsc_numerator = 1, .tsc_denominator = 1, .lost_mtcs = 0})};
        clock.tsc(1000).mtc(0x81).tma(0x1FF, 0);
        return clock.now().latest == 1000 + 1 + 512;
    });
}

TEST_CASE("the value of a TSC packet may be older than the packet (GEN-201)") {
    CHECK_TWICE([](auto value) {
        auto const how = with(simple, [](auto& of) { of.tolerance = 16; });
        fed exact{value(how)};
        fed old{value(with(how, [](auto& of) { of.tsc_age = 140; }))};
        exact.tsc(1000).cbr(24).cyc(20);
        old.tsc(1000).cbr(24).cyc(20);
        return exact.now().latest < 1025 && old.now().latest == exact.now().latest + 140 &&
               old.now().earliest == exact.now().earliest && old.at() == 1020;
    });
}

TEST_CASE("with a threshold, a CYC before a packet without one stands alone (GEN-214,217)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.cyc_thresh = 9; }))};
        clock.tsc(0).cbr(24).cyc(300);
        bool const exact = clock.cycle().slack == 0;
        bool const alone = clock.other<packet::psb>().cycle().slack == 255;
        // The counter restarts at an OVF: the TSC after it may be later in its period.
        return exact && alone && clock.cyc(300).other<packet::ovf>().cycle().slack == 255;
    });
}

TEST_CASE("after an OVF no time is limited until the next TSC (PKT-117,318, GEN-220,225)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(1000).tma(0, 0).cbr(24).mtc(1).other<packet::ovf>();
        bool const open = clock.now().latest == time::unbounded && clock.now().earliest == 1016;
        clock.mtc(5).cyc(3);
        bool const still = clock.now().latest == time::unbounded && clock.missing_mtcs() == 0;
        clock.tsc(9000).tma(0, 0);
        return open && still && clock.now().latest != time::unbounded;
    });
}

TEST_CASE("a CYC after an OVF without one may count from the CYC before it (GEN-210,212,220)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.cyc_thresh = 9; }))};
        clock.tsc(1000).tma(0, 0).cbr(24).cyc(256).mtc(20).mtc(36).other<packet::ovf>();
        auto const before = clock.now().earliest;
        // 255 of the 258 cycles may have passed before the last MTC.
        return before == 1576 && clock.cyc(258).now().earliest <= before + 3 &&
               clock.now().earliest >= before && clock.now().latest == time::unbounded;
    });
}

TEST_CASE("a CYC before a PSBEND times no packet after it (GEN-213,214)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.cyc_thresh = 9; }))};
        clock.tsc(1000).tma(0, 0).cbr(24).template other<packet::psb>().cyc(300);
        bool const exact = clock.cycle().slack == 0;
        return exact && clock.template other<packet::psbend>().cycle().slack == 255;
    });
}

TEST_CASE("the frequency changes at a CBR, somewhere in the next CYC (PKT-278,319)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(1000).cbr(24).cyc(100).cbr(12).cyc(100);
        // 100 cycles at 1 tick, or at 2.
        auto const now = clock.now();
        return now.earliest <= 1200 && now.latest >= 1300 && now.tsc == 1300 &&
               clock.cyc(50).at() == 1400;
    });
}

TEST_CASE("a TSC has 56 bits: the nearest to the last time, or to a reference (PKT-315)") {
    CHECK_TWICE([](auto value) {
        constexpr uint64_t wrap = uint64_t{1} << 56;
        fed clock{value(with(simple, [](auto& how) { how.tsc_reference = 3 * wrap - 5; }))};
        bool const before = clock.tsc(wrap - 9).at() == 3 * wrap - 9;
        bool const after = clock.tsc(4).at() == 3 * wrap + 4;
        bool const back = clock.tsc(2).at() == 3 * wrap + 2;
        fed without{value(simple)};
        bool const first = fed{simple}.tsc(wrap - 9).at() == wrap - 9;
        without.tsc(5);
        return first && before && after && back && without.at() == 5 && without.tsc(3).at() == 3 &&
               without.tsc(wrap - 1).at() == wrap - 1;
    });
}

TEST_CASE("CYC and MTC in a PSB+ mean the same; SKL168 loses some before it (PKT-116)") {
    CHECK_TWICE([](auto value) {
        auto const how = with(simple, [](auto& of) { of.tsc_numerator = 100; });
        auto const ticks_after_psb = [&](clock_options const& of) {
            fed clock{of};
            clock.tsc(0).tma(0, 0).cbr(24).cyc(1).mtc(1).cyc(500).other<packet::psb>().cyc(500).mtc(
                2);
            return clock.at() == 1600 ? ticks_of_500_cycles(clock) : 0;
        };
        return ticks_after_psb(value(how)) == 400 &&
               ticks_after_psb(value(with(
                   how, [](auto& of) { of.quirks = cpu::quirks(cpu::quirk::skl168); }))) == 500;
    });
}

TEST_CASE("a change of frequency keeps the estimate and its lower bound (PKT-311,314)") {
    CHECK_TWICE([](auto value) {
        fed clock{{.max_non_turbo_ratio = 20}};
        clock.tsc(1000).cbr(value(10U)).cyc(100).cbr(20);  // 2 ticks a cycle, then 1
        time const then = clock.now();
        clock.cyc(50);
        auto const later = clock.now();
        return then.tsc == 1200 && then.earliest <= 1200 && then.earliest > 1100 &&
               then.latest >= 1200 && then.latest < 1300 && later.tsc == 1250 &&
               later.earliest <= 1250 && later.earliest > 1150;
    });
}

TEST_CASE("after an OVF a TMA gives no upper bound (GEN-203)") {
    CHECK_TWICE([](auto value) {
        fed clock{simple};
        clock.tsc(1000).tma(value(0x10U), 0);
        bool const bounded = clock.now().latest != time::unbounded;
        clock.tsc(2000).other<packet::ovf>().tma(value(0x20U), 0);
        return bounded && clock.last == rule::none && clock.now().latest == time::unbounded;
    });
}

TEST_CASE("a time is a guest's from the first TSC with NR=1 to the next without (PKT-082,317)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        bool const host = !clock.tsc(900'000).tma(0, 0).now().is_guest;
        // Between VM entry and the guest's TSC, and between VM exit and the host's.
        bool const stays = !clock.pip(true).mtc(1).now().is_guest && clock.at() == 900'016;
        bool const guest = clock.tsc(5000).tma(0x10, 0).now().is_guest && clock.at() == 5000 &&
                           clock.mtc(3).now().is_guest && clock.mtc(4).now().is_guest;
        bool const ends = clock.pip(false).mtc(5).now().is_guest;
        return host && stays && guest && ends && !clock.tsc(900'100).now().is_guest;
    });
    // Without PIPs the caller says it.
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) { how.is_guest = true; }))};
        return clock.tsc(1000).now().is_guest && clock.cbr(24).cyc(9).now().is_guest &&
               !clock.pip(false).tsc(1000).now().is_guest;
    });
}

TEST_CASE("in a PSB+ the PIP may follow the TSC: both are of one moment (PKT-136,GEN-171)") {
    CHECK_TWICE([](auto value) {
        fed clock{value(simple)};
        clock.tsc(900'000).other<packet::psb>().tsc(5000).tma(0x10, 0).cbr(24).pip(true);
        bool const guest = clock.now().is_guest && clock.now_of_psb_plus().is_guest;
        clock.other<packet::psbend>().pip(false);
        return guest && clock.now().is_guest;
    });
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& how) {
            how.has_guest_tsc = true;
            how.guest_tsc.offset = 0 - uint64_t{895'000};
        }))};
        clock.tsc(900'000).other<packet::psb>().tsc(5020).tma(0x10, 0).cbr(24).pip(true);
        auto const now = clock.other<packet::psbend>().now();
        return now == time{900'020, 900'020, 900'020 + 32, 0} && clock.mtc(3).at() == 900'036;
    });
}

TEST_CASE("with its offset and multiplier, the times of a guest are the host's (PKT-317)") {
    CHECK_TWICE([](auto value) {
        auto const how = with(simple, [](auto& of) {
            of.has_guest_tsc = true;
            of.guest_tsc.offset = 0 - uint64_t{895'000};
        });
        fed clock{value(how)};
        clock.tsc(900'000).tma(0, 0).mtc(1).pip(true).tsc(5020).tma(0x0A, 0);
        bool const same = clock.now() == time{900'020, 900'020, 900'020 + 12 + 16, 0};
        // The guest's TSC is below 0: 56 bits of it.
        clock.tsc((uint64_t{1} << 56) - 10);
        return same && clock.at() == 894'990 && clock.pip(false).tsc(900'100).at() == 900'100;
    });
    // Half the frequency: each guest's tick is two of the host. TMA is not used.
    CHECK_TWICE([](auto value) {
        fed clock{value(with(simple, [](auto& of) {
            of.has_guest_tsc = true;
            of.guest_tsc = {uint64_t{1} << 47, 70, 0};
        }))};
        clock.tsc(900'000).pip(true).tsc(70 + 450'100).tma(0, 0);
        bool const start = clock.now() == time{900'200, 900'200, time::unbounded, 0};
        auto const now = clock.mtc(1).cbr(24).cyc(32).now();
        return start && now.tsc == 900'232 && now.earliest <= 900'231 && now.latest >= 900'235;
    });
}

TEST_CASE("a packet of any type is read as the packet of its own type") {
    test::random_numbers random{11};
    for (unsigned round = 0; round < 400; ++round) {
        clock_options how{.mtc_freq = 3,
                          .cyc_thresh = static_cast<uint8_t>(random.below(3)),
                          .max_non_turbo_ratio = 24,
                          .tsc_numerator = 168,
                          .tsc_denominator = 2,
                          .is_guest = random.one_in(4),
                          .has_guest_tsc = random.one_in(3)};
        if (random.one_in(2)) { how.quirks = cpu::quirks(cpu::quirk::skl168, cpu::quirk::skz84); }
        trace::clock typed{how};
        trace::clock any{how};
        for (unsigned i = 0; i < 60; ++i) {
            auto const drawn = random.one_in(2) ? random.below(5)
                                                : random.below(packet::kind_count);
            using packet::kind;
            kind const timing[] = {kind::tsc, kind::tma, kind::mtc, kind::cyc, kind::cbr};
            kind const which = drawn < 5 && random.one_in(2) ? timing[drawn]
                                                             : static_cast<kind>(drawn);
            auto const bits = random();
            auto const same = packet::for_kind(
                which,
                [&]<class Packet>() {
                    if constexpr (one_of<Packet, packet::tsc, packet::tma, packet::mtc, packet::cbr,
                                         packet::pip>) {
                        Packet const one{static_cast<typename Packet::raw_type>(bits)};
                        return typed.add(one) == any.add(packet::any_packet{one, 8});
                    } else if constexpr (same_as<Packet, packet::cyc>) {
                        auto const one = packet::cyc::of(bits % 100'000);
                        return typed.add(one) == any.add(packet::any_packet{one});
                    } else {
                        return typed.add(Packet{}) == any.add(packet::any_packet{Packet{}, 1});
                    }
                },
                packet::all{});
            INFO("round " << round << ", packet " << i << ", kind " << unsigned(which));
            REQUIRE(same);
            REQUIRE(typed.now() == any.now());
            REQUIRE(typed.now_without_cyc() == any.now_without_cyc());
            REQUIRE(typed.now_of_psb_plus() == any.now_of_psb_plus());
        }
    }
}
