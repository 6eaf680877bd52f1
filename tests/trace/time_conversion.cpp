// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/time_conversion.hpp>

#include <support/check_twice.hpp>

#include <cstdint>
#include <initializer_list>

using namespace ptspec;
using trace::time_conversion;

namespace {
constexpr std::uint64_t ghz = 1'000'000'000;
}

TEST_CASE("a time is zero + TSC * mult / 2^shift") {
    CHECK_TWICE([](auto value) {
        time_conversion const half{.shift = 31, .mult = 0x4000'0000, .zero = 1'000'000'000};
        return half.time_of(value(std::uint64_t{0})) == 1'000'000'000 &&
               half.time_of(value(std::uint64_t{2'000'000})) == 1'001'000'000 &&
               half.time_of(value(std::uint64_t{2'000'001})) == 1'001'000'000 &&
               half.time_of(value(std::uint64_t{1} << 60)) == (std::uint64_t{1} << 59) + ghz;
    });
    CHECK_TWICE([](auto value) {
        // Of a Core m7-6Y75 with 1.2 GHz, recorded by Linux 4.14.
        time_conversion const skylake{value(std::uint16_t{31}), 1'789'569'706,
                                      18'446'744'041'015'200'657U};
        return skylake.time_of(value(std::uint64_t{120'000'000'000})) == 67'305'649'003;
    });
}

TEST_CASE("the conversion of a frequency has the largest multiplier of 32 bits") {
    CHECK_TWICE([](auto value) {
        auto const two = time_conversion::of_frequency(value(2 * ghz));
        auto const skylake = time_conversion::of_frequency(value(std::uint64_t{1'200'000'000}));
        auto const slow = time_conversion::of_frequency(value(std::uint64_t{400'000'000}));
        auto const slowest = time_conversion::of_frequency(value(std::uint64_t{1}));
        return two.shift == 31 && two.mult == 0x4000'0000 && two.zero == 0 && skylake.shift == 31 &&
               skylake.mult == 1'789'569'706 &&                   //
               slow.shift == 30 && slow.mult == 2'684'354'560 &&  //
               slowest.shift == 2 && slowest.mult == 4'000'000'000;
    });
    CHECK_TWICE([](auto value) {
        return time_conversion::of_frequency(value(std::uint64_t{0})).mult == 0 &&
               time_conversion::of_frequency(value(~std::uint64_t{0})).mult == 0;
    });
}

TEST_CASE("the TSC of a time is at most the ticks of a nanosecond less than the TSC that gave it") {
    CHECK_TWICE([](auto value) {
        time_conversion const skylake{value(std::uint16_t{31}), 1'789'569'706, 77'000};
        for (std::uint64_t const tsc : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{999},
                                        std::uint64_t{123'456'789'012}, std::uint64_t{1} << 50}) {
            std::uint64_t const back = skylake.tsc_of(skylake.time_of(tsc));
            if (back > tsc || tsc - back > 2) { return false; }
        }
        // 77 us after zero at 1.2 GHz.
        std::uint64_t const later = skylake.tsc_of(77'000 + 77'000);
        return later >= 92'398 && later <= 92'400 &&
               time_conversion{}.tsc_of(value(std::uint64_t{5})) == 0;
    });
}

TEST_CASE("the 56 bits of a TSC packet are those of the nearest 64-bit value (PKT-315)") {
    CHECK_TWICE([](auto value) {
        constexpr std::uint64_t half = std::uint64_t{1} << 55;
        constexpr std::uint64_t wrap = 2 * half;
        auto const is = [&](std::uint64_t low, std::uint64_t near_by, std::uint64_t wanted) {
            return trace::tsc_near(value(low), value(near_by)) == wanted;
        };
        return is(5, 0, 5) && is(5, 3 * wrap, 3 * wrap + 5) &&
               is(wrap - 5, 3 * wrap, 3 * wrap - 5) &&
               is(half - 1, 3 * wrap, 3 * wrap + half - 1) && is(half, 3 * wrap, 3 * wrap - half) &&
               is(4, 3 * wrap - 1, 3 * wrap + 4) && is(wrap - 5, 3, wrap - 5) &&  // not below 0
               is(50, 255 * wrap + 100, 255 * wrap + 50) &&  // near the highest value
               is(50, 255 * wrap + half + 100, 50) && is(7, ~std::uint64_t{0}, 7);
    });
}
