// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/clock_options.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::tsc_age_of;

TEST_CASE("the age of a TSC is one crystal cycle in TSC ticks, rounded up (GEN-201)") {
    CHECK_TWICE([](auto value) {
        return tsc_age_of(value(uint64_t{216}), 2) == 108 &&
               tsc_age_of(value(uint64_t{217}), 2) == 109 && tsc_age_of(value(uint64_t{1}), 3) == 1;
    });
}

TEST_CASE("the age is 0 if the ratio of the clocks is unknown, and at most 65535") {
    CHECK_TWICE([](auto value) {
        return tsc_age_of(value(uint64_t{0}), 2) == 0 && tsc_age_of(value(uint64_t{216}), 0) == 0 &&
               tsc_age_of(value(uint64_t{0x1'0000}), 1) == 0xFFFF &&
               tsc_age_of(value(uint64_t{0xFFFE'0001}), 0x1'0000) == 0xFFFF &&
               tsc_age_of(value(uint64_t{0xFFFE}), 1) == 0xFFFE;
    });
}
