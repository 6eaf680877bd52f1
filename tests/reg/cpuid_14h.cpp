// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/cpuid_14h.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using namespace ptspec::reg;
using ptspec::row_access;
using ptspec::test::has_field_at;

namespace {

template <class Word>
constexpr auto is_of(uint32_t subleaf, cpuid_register part) -> bool {
    return Word::leaf == 0x14 && Word::subleaf == subleaf && Word::output == part &&
           Word::access == row_access::read_only;
}

}  // namespace

TEST_CASE("every word has its sub-leaf and its register, and is read-only") {
    static_assert(is_of<cpuid_14h_0_eax>(0, cpuid_register::eax));
    static_assert(is_of<cpuid_14h_0_ebx>(0, cpuid_register::ebx));
    static_assert(is_of<cpuid_14h_0_ecx>(0, cpuid_register::ecx));
    static_assert(is_of<cpuid_14h_0_edx>(0, cpuid_register::edx));
    static_assert(is_of<cpuid_14h_1_eax>(1, cpuid_register::eax));
    static_assert(is_of<cpuid_14h_1_ebx>(1, cpuid_register::ebx));
    static_assert(is_of<cpuid_14h_1_ecx>(1, cpuid_register::ecx));
    static_assert(is_of<cpuid_14h_1_edx>(1, cpuid_register::edx));
    CHECK(is_of<cpuid_14h_1_edx>(1, cpuid_register::edx));
}

TEST_CASE("sub-leaf 0, EAX is the last sub-leaf") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_14h_0_eax, cpuid_14h_0_eax::MaxSubleaf>(value, 31, 0);
    });
}

TEST_CASE("sub-leaf 0, EBX has a bit for each feature (REG-161)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::CR3FILTER>(value, 0, 0) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::CPSB_CAM>(value, 1, 1) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::IPFILT_WRSTPRSV>(value, 2, 2) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::MTC>(value, 3, 3) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::PTWRITE>(value, 4, 4) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::PWR_EVT>(value, 5, 5) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::INJECTPSBPMI>(value, 6, 6) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::EVENT_TRACE>(value, 7, 7) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::TNT_DIS>(value, 8, 8) &&
               has_field_at<cpuid_14h_0_ebx, cpuid_14h_0_ebx::PTTT>(value, 9, 9);
    });
    CHECK_TWICE(
        [](auto value) { return cpuid_14h_0_ebx::reserved_mask(value(64U)) == 0xFFFF'FC00; });
}

TEST_CASE("sub-leaf 0, ECX has a bit for each output, and LIP (REG-162)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_14h_0_ecx, cpuid_14h_0_ecx::TOPAOUT>(value, 0, 0) &&
               has_field_at<cpuid_14h_0_ecx, cpuid_14h_0_ecx::MENTRY>(value, 1, 1) &&
               has_field_at<cpuid_14h_0_ecx, cpuid_14h_0_ecx::SNGLRNGOUT>(value, 2, 2) &&
               has_field_at<cpuid_14h_0_ecx, cpuid_14h_0_ecx::FABRIC>(value, 3, 3) &&
               has_field_at<cpuid_14h_0_ecx, cpuid_14h_0_ecx::LIP>(value, 31, 31);
    });
    CHECK_TWICE(
        [](auto value) { return cpuid_14h_0_ecx::reserved_mask(value(64U)) == 0x7FFF'FFF0; });
}

TEST_CASE("sub-leaf 1 has the number of ranges and triggers, and a bitmap for each period "
          "(REG-164, PRG-006)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_14h_1_eax, cpuid_14h_1_eax::RANGECNT>(value, 2, 0) &&
               has_field_at<cpuid_14h_1_eax, cpuid_14h_1_eax::TRIGGER_CFG_CNT>(value, 10, 8) &&
               has_field_at<cpuid_14h_1_eax, cpuid_14h_1_eax::MTC_PERIODS>(value, 31, 16);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_14h_1_ebx, cpuid_14h_1_ebx::CYC_THRESHOLDS>(value, 15, 0) &&
               has_field_at<cpuid_14h_1_ebx, cpuid_14h_1_ebx::PSB_PERIODS>(value, 31, 16);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_14h_1_ecx, cpuid_14h_1_ecx::TRIGGER_ATTRIBUTION>(value, 0, 0) &&
               has_field_at<cpuid_14h_1_ecx, cpuid_14h_1_ecx::TRIGGER_PAUSE_RESUME>(value, 1, 1) &&
               has_field_at<cpuid_14h_1_ecx, cpuid_14h_1_ecx::TRIGGER_DR_MATCH>(value, 15, 15);
    });
    CHECK_TWICE([](auto value) {
        return cpuid_14h_1_eax::reserved_mask(value(64U)) == 0x0000'F8F8 &&
               cpuid_14h_1_ebx::reserved_mask(value(64U)) == 0 &&
               cpuid_14h_1_ecx::reserved_mask(value(64U)) == 0xFFFF'7FFC;
    });
}

TEST_CASE("the range count has three bits, so 4 is not truncated to 0 (REG-164)") {
    CHECK_TWICE([](auto value) {
        auto const it = cpuid_14h_1_eax{value(uint32_t{0xFFFF'0204})};
        return it.get<cpuid_14h_1_eax::RANGECNT>() == 4 &&
               it.get<cpuid_14h_1_eax::TRIGGER_CFG_CNT>() == 2 &&
               it.get<cpuid_14h_1_eax::MTC_PERIODS>() == 0xFFFF;
    });
}

TEST_CASE("the values of a client processor of 2015") {
    CHECK_TWICE([](auto value) {
        auto const ebx = cpuid_14h_0_ebx{value(uint32_t{0xF})};
        auto const ecx = cpuid_14h_0_ecx{value(uint32_t{7})};
        auto const eax = cpuid_14h_1_eax{value(uint32_t{0x0249'0002})};
        auto const maps = cpuid_14h_1_ebx{value(uint32_t{0x003F'3FFF})};
        return ebx.get<cpuid_14h_0_ebx::MTC>() && !ebx.get<cpuid_14h_0_ebx::PTWRITE>() &&
               ecx.get<cpuid_14h_0_ecx::SNGLRNGOUT>() && !ecx.get<cpuid_14h_0_ecx::FABRIC>() &&
               !ecx.get<cpuid_14h_0_ecx::LIP>() && eax.get<cpuid_14h_1_eax::RANGECNT>() == 2 &&
               eax.get<cpuid_14h_1_eax::MTC_PERIODS>() == 0x249 &&
               maps.get<cpuid_14h_1_ebx::CYC_THRESHOLDS>() == 0x3FFF &&
               maps.get<cpuid_14h_1_ebx::PSB_PERIODS>() == 0x3F;
    });
}

TEST_CASE("EDX is reserved") {
    CHECK_TWICE([](auto value) {
        return cpuid_14h_0_edx::reserved_mask(value(64U)) == 0xFFFF'FFFF &&
               cpuid_14h_1_edx::reserved_mask(value(64U)) == 0xFFFF'FFFF;
    });
}
