// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/rtit_addr.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using addr = ptspec::reg::ia32_rtit_addr;
using ptspec::wrapped;
using ptspec::reg::range_end;
using ptspec::test::has_field_at;

TEST_CASE("the ends of the four address ranges are MSRs 580H to 587H (REG-018)") {
    CHECK(addr::count == 4);
    CHECK_TWICE([](auto value) {
        return addr::address(value(0U), range_end::a) == 0x580 &&
               addr::address(value(0U), range_end::b) == 0x581 &&
               addr::address(value(1U), range_end::a) == 0x582 &&
               addr::address(value(1U), range_end::b) == 0x583 &&
               addr::address(value(2U), range_end::a) == 0x584 &&
               addr::address(value(2U), range_end::b) == 0x585 &&
               addr::address(value(3U), range_end::a) == 0x586 &&
               addr::address(value(3U), range_end::b) == 0x587;
    });
}

TEST_CASE("a range end is only an address: no bit is reserved at any MAXPHYADDR") {
    CHECK_TWICE([](auto value) { return has_field_at<addr, addr::Address>(value, 63, 0); });
    CHECK_TWICE([](auto value) {
        return addr{value(uint64_t{0xFFFF'8000'0000'0001})}.get<addr::Address>() ==
                   0xFFFF'8000'0000'0001 &&
               addr{}.with(addr::Address{wrapped{value(~uint64_t{0})}}).raw == ~uint64_t{0} &&
               addr::reserved_mask(value(36U)) == 0 && addr::write_ignored_mask() == 0 &&
               addr::forced_1_mask() == 0;
    });
}
