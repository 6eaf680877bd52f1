// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/mtc.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("MTC is 59 and the eight bits of CTC (PKT-101)") {
    static_assert(test::rows_are<mtc>({{"CTC", 1, 0, 1, 7}}));
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("59 80")), mtc{}.with(mtc::CTC{0x80})) &&
               test::stands_for(value(hex("59 FF")), mtc{}.with(mtc::CTC{0xFF})) &&
               test::stands_for(value(hex("59 00")), mtc{});
    });
}

TEST_CASE("MTC binds to no IP, may appear in PSB+ and in a block, may have a CYC (PKT-112, "
          "PKT-205)") {
    static_assert(
        test::facts_are<mtc>(kind::mtc, "MTC", ip_binding::no, true, cyc_rule::yes, true));
}
