// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/clock_options_of.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("the options of a configuration on a processor (PKT-101,102, REG-168)") {
    CHECK_TWICE([](auto value) {
        cpu::capabilities caps{};
        caps.leaf_15_eax.raw = 2;
        caps.leaf_15_ebx.raw = 216;
        caps.platform_info.raw = value(uint64_t{26} << 8);
        using ctl = reg::ia32_rtit_ctl;
        auto const how = trace::clock_options_of(ctl{}.with(ctl::MTCFreq{6}, ctl::CycThresh{4}),
                                                 caps);
        return how.mtc_freq == 6 && how.cyc_thresh == 4 && how.max_non_turbo_ratio == 26 &&
               how.tsc_numerator == 216 && how.tsc_denominator == 2 && how.tsc_age == 108;
    });
}
