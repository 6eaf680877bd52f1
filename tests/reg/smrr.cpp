// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/smrr.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using cap = ptspec::reg::ia32_mtrrcap;
using base = ptspec::reg::ia32_smrr_physbase;
using mask = ptspec::reg::ia32_smrr_physmask;
using ptspec::row_access;
using ptspec::wrapped;
using ptspec::test::has_field_at;

TEST_CASE("IA32_MTRRCAP is MSR FEH, the SMRR MSRs are 1F2H and 1F3H") {
    CHECK(cap::address == 0xFE);
    CHECK(base::address == 0x1F2);
    CHECK(mask::address == 0x1F3);
}

TEST_CASE("every field is at the position in the manual's table") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cap, cap::VCNT>(value, 7, 0) &&
               has_field_at<cap, cap::FIX>(value, 8, 8) &&
               has_field_at<cap, cap::WC>(value, 10, 10) &&
               has_field_at<cap, cap::SMRR>(value, 11, 11);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<base, base::Type>(value, 7, 0) &&
               has_field_at<base, base::PhysBase>(value, 31, 12);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<mask, mask::Valid>(value, 11, 11) &&
               has_field_at<mask, mask::PhysMask>(value, 31, 12);
    });
}

TEST_CASE("base and mask are addresses below 4 GB, multiples of 4096") {
    CHECK_TWICE([](auto value) {
        return base{value(uint64_t{0x8000'0006})}.get<base::PhysBase>() == 0x8000'0000 &&
               base{value(uint64_t{0x8000'0006})}.get<base::Type>() == 6 &&
               base{}.with(base::PhysBase{wrapped{value(uint64_t{0x1'8765'4321})}}).raw ==
                   0x8765'4000;
    });
    CHECK_TWICE([](auto value) {
        return mask{value(uint64_t{0xFF80'0800})}.get<mask::PhysMask>() == 0xFF80'0000 &&
               mask{value(uint64_t{0xFF80'0800})}.get<mask::Valid>() &&
               !mask{value(uint64_t{0xFF80'0000})}.get<mask::Valid>() &&
               mask{}.with(mask::PhysMask{0xFFE0'0000}, mask::Valid{true}).raw == 0xFFE0'0800;
    });
}

TEST_CASE("MAXPHYADDR does not change the reserved bits") {
    CHECK_TWICE([](auto value) {
        return cap::reserved_mask(value(36U)) == 0x200 &&
               base::reserved_mask(value(36U)) == 0xFFFF'FFFF'0000'0F00 &&
               base::reserved_mask(value(52U)) == 0xFFFF'FFFF'0000'0F00 &&
               mask::reserved_mask(value(36U)) == 0xFFFF'FFFF'0000'07FF &&
               mask::reserved_mask(value(52U)) == 0xFFFF'FFFF'0000'07FF;
    });
}

TEST_CASE("IA32_MTRRCAP is read-only") {
    CHECK(cap::access == row_access::read_only);
    CHECK(base::access == row_access::plain);
    CHECK(mask::access == row_access::plain);
}
