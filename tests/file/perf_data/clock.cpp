// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/clock.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;

TEST_CASE("the conversion is that of AUXTRACE_INFO, or unknown") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](uint64_t shift, uint64_t mult, uint64_t has_zero) {
            auxtrace_info_record info;
            info.TIME_SHIFT = value(shift);
            info.TIME_MULT = value(mult);
            info.TIME_ZERO = value(uint64_t{77});
            info.CAP_USER_TIME_ZERO = value(has_zero);
            return time_conversion_of(info);
        };
        constexpr uint64_t large = uint64_t{1} << 32;
        return of(1, 6, 1) == time_conversion{1, 6, 77} && of(1, 6, 1).time_of(10) == 107 &&
               of(63, large - 1, 1).mult == large - 1 && of(64, 6, 1).mult == 0 &&
               of(1, large, 1).mult == 0 && of(1, 6, 0).mult == 0;
    });
}
