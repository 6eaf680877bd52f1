// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/core_rate.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::detail::rate_range;

TEST_CASE("a ratio multiplies counts of up to 48 bits") {
    CHECK_TWICE([](auto value) {
        auto const ratio = trace::detail::ratio::of(value(3U), 2);
        return ratio.of(value(0xFF'FFFEU)) == 0x17F'FFFD && ratio.of(1U << 24) == 3U << 23 &&
               ratio.of(value((uint64_t{1} << 40) + 6)) == (uint64_t{3} << 39) + 9;
    });
}

TEST_CASE("the range of a rate: the frequency deviates by 1 / 2^tolerance to either side") {
    CHECK_TWICE([](auto value) {
        // 2 ticks a cycle, an eighth: 1.75 and 16 / 7 = 2.2857..
        auto const range = rate_range::of(value(24U), 12, 3);
        return range.min_of(100) == 175 && range.max_of(100) == 228 && range.max_of(700) == 1600 &&
               range.min_of(1'000'000) == 1'750'000;
    });
    // 43 / 8 is exact; 24 / 7 is not: the bounds contain it.
    CHECK_TWICE([](auto value) {
        auto const exact = rate_range::of(value(43U), 8, 16);
        auto const other = rate_range::of(value(24U), 7, 16);
        return exact.min_of(65'536) == 352'256 - 6 && exact.max_of(65'535) == 352'256 &&
               other.min_of(7'000'000) < 24'000'000 && other.min_of(7'000'000) > 23'999'000 &&
               other.max_of(7'000'000) > 24'000'000 && other.max_of(7'000'000) < 24'001'000;
    });
    // Products of counts from 2^24 on.
    CHECK_TWICE([](auto value) {
        auto const range = rate_range::of(value(24U), 7, 5);
        uint64_t const count = uint64_t{7} << 40;
        uint64_t const ticks = uint64_t{24} << 40;
        return range.min_of(count) <= ticks / 32 * 31 &&
               range.min_of(count) > ticks / 32 * 31 - (ticks >> 20) &&
               range.max_of(count) >= ticks / 31 * 32 &&
               range.max_of(count) < ticks / 31 * 32 + (ticks >> 20);
    });
}

TEST_CASE("a rate without limits: no ratio, any deviation, or 256 ticks a cycle") {
    CHECK_TWICE([](auto value) {
        auto const none = rate_range::of(value(0U), 8, 5);
        return none == rate_range{} && !none.is_limited() && none.min_of(1000) == 0 &&
               none.max_of(1) == rate_range::unlimited && none.max_of(0) == 0 &&
               rate_range::of(value(24U), 0, 5) == rate_range{} &&
               !rate_range::of(value(24U), 8, 0).is_limited() &&
               rate_range::of(value(24U), 8, 0).min_of(1000) == 0 &&
               !rate_range::of(value(255U), 1, 5).is_limited() &&
               rate_range::of(value(247U), 1, 5).is_limited();
    });
}

TEST_CASE("the range of two rates contains both") {
    CHECK_TWICE([](auto value) {
        auto range = rate_range::of(value(24U), 12, 3);
        range.include(rate_range::of(24, 24, 3));
        range.include(rate_range::of(24, 16, 3));
        bool const both = range.min_of(1000) == 875 && range.max_of(700) == 1600;
        range.include({});
        return both && range == rate_range{};
    });
}
