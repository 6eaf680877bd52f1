// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/time.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("the core frequency between two points (PKT-316)") {
    CHECK_TWICE([](auto value) {
        return trace::core_frequency({.cycles = value(3000U), .tsc_ticks = value(2000U)},
                                     2'400'000'000) == 3'600'000'000 &&
               trace::core_frequency({.cycles = value(3000U), .tsc_ticks = value(0U)},
                                     2'400'000'000) == 0 &&
               trace::core_frequency({.cycles = uint64_t{1} << 30, .tsc_ticks = value(1U)}, 1) ==
                   uint64_t{1} << 30 &&
               trace::core_frequency(
                   {.cycles = uint64_t{3} << 50, .tsc_ticks = value(uint64_t{2} << 50)},
                   2'400'000'000) == 3'600'000'000;
    });
}

TEST_CASE("a time is absent unless a clock has set it; 0 is a relative time") {
    CHECK_TWICE([](auto value) {
        return trace::time{}.is_absent() && !trace::time{}.is_absolute() &&
               !trace::time{.tsc = value(0U)}.is_absent() && trace::time{}.tsc != 0;
    });
}

TEST_CASE("a time without bounds is not one of the time-stamp counter") {
    CHECK_TWICE([](auto value) {
        return !trace::time{.tsc = value(5U)}.is_absolute() &&
               trace::time{.tsc = value(5U), .earliest = 5}.is_absolute() &&
               trace::time{.tsc = value(5U), .latest = 9}.is_absolute();
    });
}
