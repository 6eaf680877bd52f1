// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/with_ctl.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("IA32_RTIT_CTL says what the trace can have (REG-024..041)") {
    CHECK_TWICE([](auto value) {
        auto const of = [](uint64_t ctl) { return flow::with_ctl({}, {ctl}); };
        auto const all = of(value(uint64_t{1} << 13));
        auto const none = of(value(uint64_t{1} << 55 | 1 << 11));
        flow::walk_options const usual;
        return all.has_branches && all.has_tnt && all.has_compressed_rets && !none.has_branches &&
               !none.has_tnt && !none.has_compressed_rets && usual.has_branches && usual.has_tnt &&
               usual.has_compressed_rets;
    });
}
