// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/psb.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;

TEST_CASE("broken_payload reports every wrong bit of a PSB (PKT-131)") {
    CHECK_TWICE([](auto value) {
        auto const good = value(wide_bits{0x8202'8202'8202'8202, 0x8202'8202'8202'8202});
        return psb::broken_payload(good) == rule::none &&
               psb::broken_payload({good.low, good.high ^ 1}) == rule::PKT_131 &&
               psb::broken_payload({good.low ^ 1, good.high}) == rule::PKT_131;
    });
}
