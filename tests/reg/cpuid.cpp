// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/cpuid.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using namespace ptspec::reg;
using ptspec::row_access;
using ptspec::test::has_field_at;

namespace {

template <class Word>
constexpr auto is_of(uint32_t leaf, uint32_t subleaf, cpuid_register part) -> bool {
    return Word::leaf == leaf && Word::subleaf == subleaf && Word::output == part &&
           Word::access == row_access::read_only;
}

}  // namespace

TEST_CASE("every word has its leaf and its register, and is read-only") {
    static_assert(is_of<cpuid_01h_eax>(0x01, 0, cpuid_register::eax));
    static_assert(is_of<cpuid_01h_ecx>(0x01, 0, cpuid_register::ecx));
    static_assert(is_of<cpuid_07h_0_ebx>(0x07, 0, cpuid_register::ebx));
    static_assert(is_of<cpuid_07h_1_eax>(0x07, 1, cpuid_register::eax));
    static_assert(is_of<cpuid_0ah_eax>(0x0A, 0, cpuid_register::eax));
    static_assert(is_of<cpuid_0dh_1_eax>(0x0D, 1, cpuid_register::eax));
    static_assert(is_of<cpuid_0dh_1_ecx>(0x0D, 1, cpuid_register::ecx));
    static_assert(is_of<cpuid_0dh_8_eax>(0x0D, 8, cpuid_register::eax));
    static_assert(is_of<cpuid_0dh_8_ebx>(0x0D, 8, cpuid_register::ebx));
    static_assert(is_of<cpuid_0dh_8_ecx>(0x0D, 8, cpuid_register::ecx));
    static_assert(is_of<cpuid_15h_eax>(0x15, 0, cpuid_register::eax));
    static_assert(is_of<cpuid_15h_ebx>(0x15, 0, cpuid_register::ebx));
    static_assert(is_of<cpuid_15h_ecx>(0x15, 0, cpuid_register::ecx));
    static_assert(is_of<cpuid_15h_edx>(0x15, 0, cpuid_register::edx));
    static_assert(is_of<cpuid_80000007h_edx>(0x8000'0007, 0, cpuid_register::edx));
    static_assert(is_of<cpuid_80000008h_eax>(0x8000'0008, 0, cpuid_register::eax));
    CHECK(is_of<cpuid_80000008h_eax>(0x8000'0008, 0, cpuid_register::eax));
}

TEST_CASE("leaf 1 has the processor signature and some features") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_01h_eax, cpuid_01h_eax::Stepping>(value, 3, 0) &&
               has_field_at<cpuid_01h_eax, cpuid_01h_eax::Model>(value, 7, 4) &&
               has_field_at<cpuid_01h_eax, cpuid_01h_eax::Family>(value, 11, 8) &&
               has_field_at<cpuid_01h_eax, cpuid_01h_eax::Type>(value, 13, 12) &&
               has_field_at<cpuid_01h_eax, cpuid_01h_eax::ExtModel>(value, 19, 16) &&
               has_field_at<cpuid_01h_eax, cpuid_01h_eax::ExtFamily>(value, 27, 20);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_01h_ecx, cpuid_01h_ecx::VMX>(value, 5, 5) &&
               has_field_at<cpuid_01h_ecx, cpuid_01h_ecx::PDCM>(value, 15, 15) &&
               has_field_at<cpuid_01h_ecx, cpuid_01h_ecx::x2APIC>(value, 21, 21) &&
               has_field_at<cpuid_01h_ecx, cpuid_01h_ecx::XSAVE>(value, 26, 26) &&
               has_field_at<cpuid_01h_ecx, cpuid_01h_ecx::OSXSAVE>(value, 27, 27);
    });
    CHECK_TWICE([](auto value) {
        return cpuid_01h_eax::reserved_mask(value(64U)) == 0xF000'C000 &&
               cpuid_01h_ecx::reserved_mask(value(64U)) == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const it = cpuid_01h_eax{value(uint32_t{0x0005'06E3})};
        return it.get<cpuid_01h_eax::Family>() == 6 && it.get<cpuid_01h_eax::ExtModel>() == 5 &&
               it.get<cpuid_01h_eax::Model>() == 0xE && it.get<cpuid_01h_eax::Stepping>() == 3;
    });
}

TEST_CASE("sub-leaf 1 of leaf 7 enumerates FRED and instructions that write MSRs (REG-010)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_07h_1_eax, cpuid_07h_1_eax::FRED>(value, 17, 17) &&
               has_field_at<cpuid_07h_1_eax, cpuid_07h_1_eax::WRMSRNS>(value, 19, 19) &&
               has_field_at<cpuid_07h_1_eax, cpuid_07h_1_eax::MSRLIST>(value, 27, 27) &&
               cpuid_07h_1_eax::reserved_mask(value(64U)) == 0;
    });
}

TEST_CASE("bit 25 of leaf 7, EBX enumerates Intel PT (REG-134)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_07h_0_ebx, cpuid_07h_0_ebx::SGX>(value, 2, 2) &&
               has_field_at<cpuid_07h_0_ebx, cpuid_07h_0_ebx::HLE>(value, 4, 4) &&
               has_field_at<cpuid_07h_0_ebx, cpuid_07h_0_ebx::RTM>(value, 11, 11) &&
               has_field_at<cpuid_07h_0_ebx, cpuid_07h_0_ebx::INTEL_PT>(value, 25, 25);
    });
    CHECK_TWICE([](auto value) {
        return cpuid_07h_0_ebx{value(uint32_t{0x0200'0000})}.get<cpuid_07h_0_ebx::INTEL_PT>() &&
               !cpuid_07h_0_ebx{value(uint32_t{0x0400'0000})}.get<cpuid_07h_0_ebx::INTEL_PT>() &&
               cpuid_07h_0_ebx::reserved_mask(value(64U)) == 0;
    });
}

TEST_CASE("leaf AH enumerates the performance counters") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_0ah_eax, cpuid_0ah_eax::VersionID>(value, 7, 0) &&
               has_field_at<cpuid_0ah_eax, cpuid_0ah_eax::NumGP>(value, 15, 8) &&
               has_field_at<cpuid_0ah_eax, cpuid_0ah_eax::Width>(value, 23, 16) &&
               has_field_at<cpuid_0ah_eax, cpuid_0ah_eax::EbxLen>(value, 31, 24);
    });
    CHECK_TWICE([](auto value) { return cpuid_0ah_eax::reserved_mask(value(64U)) == 0; });
}

TEST_CASE("leaf DH enumerates PT state: bit 8 of IA32_XSS, size, offset, alignment (REG-140)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_0dh_1_eax, cpuid_0dh_1_eax::XSAVES>(value, 3, 3);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_0dh_1_ecx, cpuid_0dh_1_ecx::PT_STATE>(value, 8, 8);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_0dh_8_eax, cpuid_0dh_8_eax::Size>(value, 31, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_0dh_8_ebx, cpuid_0dh_8_ebx::Offset>(value, 31, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_0dh_8_ecx, cpuid_0dh_8_ecx::Supervisor>(value, 0, 0) &&
               has_field_at<cpuid_0dh_8_ecx, cpuid_0dh_8_ecx::Align64>(value, 1, 1);
    });
    CHECK_TWICE([](auto value) {
        return cpuid_0dh_8_ecx{value(uint32_t{1})}.get<cpuid_0dh_8_ecx::Supervisor>() &&
               !cpuid_0dh_8_ecx{value(uint32_t{1})}.get<cpuid_0dh_8_ecx::Align64>() &&
               cpuid_0dh_8_ecx::reserved_mask(value(64U)) == 0 &&
               cpuid_0dh_1_eax::reserved_mask(value(64U)) == 0;
    });
}

TEST_CASE("leaf 15H has the ratio of the TSC to the crystal clock, and its frequency (REG-167)") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_15h_eax, cpuid_15h_eax::Denominator>(value, 31, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_15h_ebx, cpuid_15h_ebx::Numerator>(value, 31, 0);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_15h_ecx, cpuid_15h_ecx::CrystalHz>(value, 31, 0);
    });
    CHECK_TWICE([](auto value) {
        auto const numerator = cpuid_15h_ebx{value(uint32_t{0x9E})}.get<cpuid_15h_ebx::Numerator>();
        auto const denominator =
            cpuid_15h_eax{value(uint32_t{2})}.get<cpuid_15h_eax::Denominator>();
        return numerator / denominator == 79 &&
               cpuid_15h_edx::reserved_mask(value(64U)) == 0xFFFF'FFFF;
    });
}

TEST_CASE("a size is in bytes, a clock in Hz, and a clock of 0 is not enumerated (REG-167)") {
    CHECK_TWICE([](auto value) {
        auto const crystal = cpuid_15h_ecx::CrystalHz::amount(value(uint64_t{24'000'000}));
        return crystal.count == 24'000'000 && crystal.unit == ptspec::text{"Hz"} &&
               cpuid_15h_ecx::CrystalHz::amount(value(uint64_t{1})).count == 1 &&
               cpuid_15h_ecx::CrystalHz::amount(value(uint64_t{0})).unit.size() == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const size = cpuid_0dh_8_eax::Size::amount(value(uint64_t{128}));
        return size.count == 128 && size.unit == ptspec::text{"bytes"};
    });
}

TEST_CASE("bit 8 of leaf 80000007H, EDX enumerates the invariant TSC") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_80000007h_edx, cpuid_80000007h_edx::InvariantTSC>(value, 8, 8);
    });
}

TEST_CASE("leaf 80000008H has the widths of addresses") {
    CHECK_TWICE([](auto value) {
        return has_field_at<cpuid_80000008h_eax, cpuid_80000008h_eax::MAXPHYADDR>(value, 7, 0) &&
               has_field_at<cpuid_80000008h_eax, cpuid_80000008h_eax::LinearBits>(value, 15, 8);
    });
    CHECK_TWICE([](auto value) {
        auto const it = cpuid_80000008h_eax{value(uint32_t{0x3027})};
        return it.get<cpuid_80000008h_eax::MAXPHYADDR>() == 39 &&
               it.get<cpuid_80000008h_eax::LinearBits>() == 48 &&
               cpuid_80000008h_eax::reserved_mask(value(64U)) == 0;
    });
}
