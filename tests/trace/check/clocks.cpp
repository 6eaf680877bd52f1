// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/check/clocks.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::clock_checker;

namespace {

constexpr uint8_t any_freq = trace::check_options::unknown_freq;

constexpr auto tsc(clock_checker& to, uint64_t value) -> rule { return to.add_tsc(value); }
constexpr auto tma(clock_checker& to, uint64_t ctc, uint64_t fc = 0) -> rule {
    return to.add_tma(ctc, fc);
}
constexpr auto mtc(clock_checker& to, uint64_t value, uint64_t offset = 0) -> rule {
    return to.add_mtc(value, offset);
}
/// The result of an MTC after TSC and TMA.
constexpr auto mtc_after(uint8_t freq, uint64_t ctc, uint64_t value) -> rule {
    clock_checker now{freq, 0};
    (void)tsc(now, 1000);
    (void)tma(now, ctc);
    return mtc(now, value);
}

}  // namespace

TEST_CASE("TSC does not fall (PKT-278)") {
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, 0};
        bool const rises = tsc(now, value(uint64_t{5})) == rule::none &&
                           tsc(now, value(uint64_t{5})) == rule::none &&
                           tsc(now, value(uint64_t{9})) == rule::none;
        bool const falls = tsc(now, value(uint64_t{8})) == rule::PKT_278;
        bool const goes_on = tsc(now, value(uint64_t{8})) == rule::none;
        now.lose();
        bool const is_known = tsc(now, value(uint64_t{7})) == rule::PKT_278;
        now.restart();
        return rises && falls && goes_on && is_known && tsc(now, 1) == rule::none;
    });
}

TEST_CASE("an MTC is the last one and 1, or 2 after a loss; more before a TSC (GEN-203)") {
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, 0};
        auto const add = [&](uint64_t one) { return mtc(now, value(one)); };
        if (add(0) != rule::none) { return false; }
        now.lose();
        return add(254) == rule::none && add(255) == rule::none && add(1) == rule::none &&
               add(1) == rule::GEN_203 && add(2) == rule::none && !now.take_jump();
    });
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, 0};
        (void)mtc(now, 1);
        (void)mtc(now, value(uint64_t{4}), 7);
        bool const unknown = !now.take_jump();  // without TSC the clocks may have been off
        (void)tsc(now, 1);
        (void)mtc(now, 1);
        bool const found = mtc(now, value(uint64_t{4}), 7) == rule::none && now.take_jump() &&
                           now.jump() == 7 && !now.take_jump();
        (void)mtc(now, value(uint64_t{7}), 8);
        (void)mtc(now, value(uint64_t{10}), 9);
        bool const first = now.take_jump() && now.jump() == 8;
        (void)mtc(now, value(uint64_t{20}), 10);
        (void)tsc(now, 2);
        return unknown && found && first && !now.take_jump();
    });
}

TEST_CASE("the MTC after a TMA is the next or next but one (GEN-206,218)") {
    CHECK_TWICE([](auto value) {
        uint64_t const ctc = value(uint64_t{0x1FF8});
        return mtc_after(3, ctc, 0x00) == rule::none && mtc_after(3, ctc, 0x01) == rule::none &&
               mtc_after(3, ctc, 0xFF) == rule::GEN_206 && mtc_after(3, ctc, 2) == rule::GEN_206;
    });
    // With N = 14, TMA has two of the bits of an MTC (GEN-207).
    CHECK_TWICE([](auto value) {
        uint64_t const ctc = value(uint64_t{0x8000});
        return mtc_after(14, ctc, 0xFF) == rule::none && mtc_after(14, ctc, 0x10) == rule::none &&
               mtc_after(14, ctc, 0x11) == rule::GEN_206 &&
               mtc_after(15, ctc, 0x11) == rule::none && mtc_after(0, 0x80, 0x81) == rule::none &&
               mtc_after(0, 0x80, 0x83) == rule::GEN_206 &&
               mtc_after(9, 0x200, 0x02) == rule::none && mtc_after(9, 0x200, 0x83) == rule::none &&
               mtc_after(9, 0x200, 0x04) == rule::GEN_206;
    });
    // An MTC directly before TSC or TMA is not repeated after it.
    CHECK_TWICE([](auto value) {
        clock_checker now{3, 0};
        (void)mtc(now, 3);
        (void)tsc(now, 1);
        (void)tma(now, value(uint64_t{16}));
        bool const before_tsc = mtc(now, 3) == rule::GEN_203;
        now.lose();
        (void)tsc(now, 1);
        (void)mtc(now, 3);
        (void)tma(now, value(uint64_t{16}));
        bool const before_tma = mtc(now, 3) == rule::GEN_203;
        now.lose();
        (void)mtc(now, 3);
        now.separate();
        (void)tsc(now, 1);
        (void)tma(now, value(uint64_t{16}));
        return before_tsc && before_tma && mtc(now, 3) == rule::none;
    });
}

TEST_CASE("MTCFreq follows from the stream (GEN-206)") {
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, 0};
        auto const add = [&](uint64_t ctc, uint64_t payload) {
            (void)tsc(now, 1);
            (void)tma(now, value(ctc));
            return mtc(now, payload);
        };
        bool const shown = add(0x1230, 0x47) == rule::none && add(0x1238, 0x48) == rule::none &&
                           add(0x2240, 0x4A) == rule::none;
        return shown && add(0x1230, 0x24) == rule::GEN_206 && add(0x1230, 0x48) == rule::none;
    });
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, 0};
        auto const add = [&](uint64_t ctc, uint64_t payload) {
            (void)tsc(now, 1);
            (void)tma(now, value(ctc));
            return mtc(now, payload);
        };
        return add(0x80, 0x81) == rule::none && add(0x90, 0x91) == rule::none &&
               add(0xA0, 0xA1) == rule::none && add(0xB0, 0xC0) == rule::GEN_206;
    });
    // With N = 12 no value below 9 fits, so that values above stay possible.
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, 0};
        auto const add = [&](uint64_t ctc, uint64_t payload) {
            (void)tsc(now, 1);
            (void)tma(now, value(ctc));
            return mtc(now, payload);
        };
        return add(0x1000, 0x92) == rule::none && add(0x2000, 0xA3) == rule::none &&
               add(0x3000, 0xB4) == rule::none && add(0x4000, 0xC5) == rule::none;
    });
}

TEST_CASE("TMA (PKT-103,135, GEN-206)") {
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, 0};
        bool const without = tma(now, value(uint64_t{1})) == rule::PKT_135;
        (void)tsc(now, 1);
        bool const with = tma(now, 1, 511) == rule::none && tma(now, 1) == rule::PKT_135;
        (void)tsc(now, 1);
        now.separate();
        bool const separate = tma(now, 1) == rule::PKT_135;
        return without && with && separate;
    });
    // 50 TSC ticks in a period.
    CHECK_TWICE([](auto value) {
        clock_checker now{any_freq, value(uint32_t{50})};
        auto const add = [&](uint64_t time, uint64_t ctc, uint64_t fc) {
            (void)tsc(now, time);
            return tma(now, ctc, fc);
        };
        return add(1049, 0xFFFF, 49) == rule::none && add(1100, 0, 50) == rule::PKT_103 &&
               add(1150, 2, 0) == rule::none && add(1151, 2, 1) == rule::none &&
               add(1152, 2, 1) == rule::GEN_206 && add(1201, 4, 0) == rule::GEN_206 &&
               add(1301, 5, 0) == rule::GEN_206 && add(1301, 4, 0) == rule::GEN_206 &&
               add(1301, 4, 0) == rule::none && add(1301 + 50 * 0x10000, 4, 0) == rule::none;
    });
}
