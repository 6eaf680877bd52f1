// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/apic.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using base = ptspec::reg::ia32_apic_base;
using x2apic = ptspec::reg::ia32_x2apic_lvt_pmi;
using xapic = ptspec::reg::apic_mmio_lvt_pmi;
using ptspec::row_access;
using ptspec::reg::delivery_mode;
using ptspec::test::has_field_at;

TEST_CASE("IA32_APIC_BASE is MSR 1BH") { CHECK(base::address == 0x1B); }

TEST_CASE("the LVT performance-monitoring entry is MSR 834H, or at 340H of the page (OUT-143)") {
    CHECK(x2apic::address == 0x834);
    CHECK(xapic::offset == 0x340);
    CHECK(sizeof(x2apic) == 8);
    CHECK(sizeof(xapic) == 4);
}

TEST_CASE("every field is at the position in the manual's table") {
    CHECK_TWICE([](auto value) {
        return has_field_at<base, base::BSP>(value, 8, 8) &&
               has_field_at<base, base::EXTD>(value, 10, 10) &&
               has_field_at<base, base::EN>(value, 11, 11) &&
               has_field_at<base, base::ApicBase>(value, 63, 12);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<x2apic, x2apic::Vector>(value, 7, 0) &&
               has_field_at<x2apic, x2apic::DeliveryMode>(value, 10, 8) &&
               has_field_at<x2apic, x2apic::DeliveryStatus>(value, 12, 12) &&
               has_field_at<x2apic, x2apic::Mask>(value, 16, 16);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<xapic, xapic::Vector>(value, 7, 0) &&
               has_field_at<xapic, xapic::DeliveryMode>(value, 10, 8) &&
               has_field_at<xapic, xapic::DeliveryStatus>(value, 12, 12) &&
               has_field_at<xapic, xapic::Mask>(value, 16, 16);
    });
}

TEST_CASE("the base is the physical address of a page") {
    CHECK_TWICE([](auto value) {
        auto const usual = base{value(uint64_t{0xFEE0'0900})};
        return usual.get<base::ApicBase>() == 0xFEE0'0000 && usual.get<base::EN>() &&
               usual.get<base::BSP>() && !usual.get<base::EXTD>();
    });
    CHECK_TWICE([](auto value) {
        return base::reserved_mask(value(36U)) == 0xFFFF'FFF0'0000'02FF &&
               base::reserved_mask(value(39U)) == 0xFFFF'FF80'0000'02FF &&
               base::reserved_mask(value(46U)) == 0xFFFF'C000'0000'02FF &&
               base::reserved_mask(value(52U)) == 0xFFF0'0000'0000'02FF &&
               base::reserved_mask() == 0x2FF;
    });
}

TEST_CASE("the ToPA PMI needs only the vector set") {
    CHECK_TWICE([](auto value) {
        auto const entry = x2apic{value(uint64_t{0x1'04FE})}.with(
            x2apic::Mask{false}, x2apic::DeliveryMode{delivery_mode::fixed}, x2apic::Vector{0x21});
        return entry.raw == 0x21 &&
               x2apic{value(uint64_t{0x400})}.get<x2apic::DeliveryMode>() == delivery_mode::nmi &&
               xapic{value(uint32_t{0x400})}.get<xapic::DeliveryMode>() == delivery_mode::nmi;
    });
}

TEST_CASE("bits 11, 15:13 and those from 17 on are reserved in both forms") {
    CHECK_TWICE([](auto value) {
        return x2apic::reserved_mask(value(36U)) == 0xFFFF'FFFF'FFFE'E800 &&
               xapic::reserved_mask(value(36U)) == 0xFFFE'E800;
    });
}

TEST_CASE("only the processor writes the delivery status") {
    CHECK(x2apic::DeliveryStatus::access == row_access::read_only);
    CHECK(xapic::DeliveryStatus::access == row_access::read_only);
    CHECK(x2apic::access == row_access::plain);
    CHECK(xapic::access == row_access::plain);
}
