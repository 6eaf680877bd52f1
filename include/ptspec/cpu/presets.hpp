// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>

/// Processors as constants: real ones, and the profiles that the rule catalogue reckons with.
namespace ptspec::cpu::preset {

namespace detail {

/// CPUID leaf 14H, as tables print it.
struct leaf_14 {
    uint32_t eax_0;
    uint32_t ebx_0;
    uint32_t ecx_0;
    uint32_t eax_1;
    uint32_t ebx_1;
    uint32_t ecx_1 = 0;
};

/// IA32_VMX_MISC, and of the MSRs next to it what controls may be 1. What has to be 1 counts as 0.
struct vmx_words {
    uint32_t misc;
    uint32_t procbased_ctls2 = 0;
    uint32_t exit_ctls = 0;
    uint32_t entry_ctls = 0;
};

/// CPUID.15H, and the ratio in MSR_PLATFORM_INFO.
struct clock {
    uint32_t eax;
    uint32_t ebx;
    uint32_t hz;
    unsigned ratio;
};

inline constexpr uint32_t crystal_24 = 24'000'000;
inline constexpr uint32_t crystal_38 = 38'400'000;

// Bits are put where their fields are, without `with`: including this file instantiates nothing.

constexpr auto widths(unsigned physical, unsigned linear) noexcept -> reg::cpuid_80000008h_eax {
    using eax = reg::cpuid_80000008h_eax;
    return {physical << eax::MAXPHYADDR::lsb | linear << eax::LinearBits::lsb};
}

constexpr auto with_pt(uint32_t signature, leaf_14 const& leaf) noexcept -> capabilities {
    capabilities made;
    made.leaf_01_eax.raw = signature;
    made.leaf_07_0_ebx.raw = 1U << reg::cpuid_07h_0_ebx::INTEL_PT::lsb;
    made.leaf_14_0_eax.raw = leaf.eax_0;
    made.leaf_14_0_ebx.raw = leaf.ebx_0;
    made.leaf_14_0_ecx.raw = leaf.ecx_0;
    made.leaf_14_1_eax.raw = leaf.eax_1;
    made.leaf_14_1_ebx.raw = leaf.ebx_1;
    made.leaf_14_1_ecx.raw = leaf.ecx_1;
    return made;
}

constexpr auto with_vmx(capabilities made, vmx_words const& words) noexcept -> capabilities {
    made.leaf_01_ecx.raw |= 1U << reg::cpuid_01h_ecx::VMX::lsb;
    made.vmx_misc.raw = words.misc;
    made.vmx_procbased_ctls2.raw = uint64_t{words.procbased_ctls2} << 32;
    made.vmx_exit_ctls.raw = uint64_t{words.exit_ctls} << 32;
    made.vmx_entry_ctls.raw = uint64_t{words.entry_ctls} << 32;
    return made;
}

/// XSAVES of the state of Intel PT, in the size and form that every processor seen has.
constexpr auto with_xsaves(capabilities made) noexcept -> capabilities {
    made.leaf_01_ecx.raw |= 1U << reg::cpuid_01h_ecx::XSAVE::lsb;
    made.leaf_0d_1_eax.raw = 1U << reg::cpuid_0dh_1_eax::XSAVES::lsb;
    made.leaf_0d_1_ecx.raw = 1U << reg::cpuid_0dh_1_ecx::PT_STATE::lsb;
    made.leaf_0d_8_eax.raw = 0x80;
    made.leaf_0d_8_ecx.raw = 1U << reg::cpuid_0dh_8_ecx::Supervisor::lsb;
    return made;
}

constexpr auto part(uint32_t signature, leaf_14 const& leaf, clock const& time, unsigned physical,
                    vmx_words const& words) noexcept -> capabilities {
    auto made = with_vmx(with_pt(signature, leaf), words);
    made.leaf_15_eax.raw = time.eax;
    made.leaf_15_ebx.raw = time.ebx;
    made.leaf_15_ecx.raw = time.hz;
    made.platform_info.raw = time.ratio << reg::msr_platform_info::MaxNonTurboRatio::lsb;
    made.leaf_80000008_eax = widths(physical, 48);
    return made;
}

constexpr auto profile(uint32_t signature, leaf_14 const& leaf, unsigned physical, unsigned linear,
                       bool pt_in_vmx) noexcept -> capabilities {
    auto made = with_vmx(with_pt(signature, leaf),
                         {pt_in_vmx ? 1U << reg::ia32_vmx_misc::INTEL_PT::lsb : 0U});
    made.leaf_80000008_eax = widths(physical, linear);
    return made;
}

constexpr auto without_pt(unsigned physical) noexcept -> capabilities {
    capabilities made;
    made.leaf_80000008_eax = widths(physical, 48);
    return made;
}

/// All that is known besides leaf 14H.
constexpr auto with_everything(capabilities made) noexcept -> capabilities {
    using perf = reg::ia32_perf_capabilities;
    using proc2 = reg::ia32_vmx_procbased_ctls2;
    using vmexit = reg::ia32_vmx_exit_ctls;
    using vmentry = reg::ia32_vmx_entry_ctls;
    uint64_t const one = 1;
    made = with_xsaves(made);
    made.leaf_01_ecx.raw |= 1U << reg::cpuid_01h_ecx::PDCM::lsb;
    made.perf_capabilities.raw = one << perf::PEBS_OUTPUT_PT_AVAIL::lsb;
    made.vmx_procbased_ctls2 = {one << proc2::Can1_CONCEAL_VMX_NONROOT_FROM_PT::lsb |
                                one << proc2::Can1_PT_USES_GPA::lsb};
    made.vmx_exit_ctls = {one << vmexit::Can1_CONCEAL_VMEXITS_FROM_PT::lsb |
                          one << vmexit::Can1_CLEAR_IA32_RTIT_CTL::lsb};
    made.vmx_entry_ctls = {one << vmentry::Can1_CONCEAL_VMENTRIES_FROM_PT::lsb |
                           one << vmentry::Can1_LOAD_IA32_RTIT_CTL::lsb};
    return made;
}

}  // namespace detail

// clang-format off

// ------------------------------------------------------------------------------------ profiles

// The profiles of the rule catalogue: 01H:EAX, 14H.0 EAX EBX ECX, 14H.1 EAX EBX ECX, MAXPHYADDR,
// width of linear addresses, IA32_VMX_MISC[14].

inline constexpr capabilities P_NONE = detail::without_pt(39);
inline constexpr capabilities P_BDW = detail::profile(
    0x306D0, {0, 0x0000'0001, 0x0000'0001, 0, 0, 0}, 39, 48, false);
inline constexpr capabilities P_SKL = detail::with_xsaves(detail::profile(
    0x506E0, {1, 0x0000'000F, 0x0000'0007, 0x0249'0002, 0x003F'3FFF, 0}, 39, 48, true));
inline constexpr capabilities P_ATM = detail::with_xsaves(detail::profile(
    0x80660, {1, 0x0000'007F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF, 0}, 42, 48, true));
/// Enumerates everything that the catalogue knows.
inline constexpr capabilities P_FUT = detail::with_everything(detail::profile(
    0, {1, 0x0000'03FF, 0x8000'000F, 0xFFFF'0204, 0xFFFF'FFFF, 0x0000'8003}, 52, 57, true));
/// Single-range output only.
inline constexpr capabilities P_SRO = detail::profile(
    0, {1, 0x0000'000A, 0x0000'0004, 0x0249'0000, 0x003F'0FFF, 0}, 46, 48, true);
/// Output to the trace transport only.
inline constexpr capabilities P_FAB = detail::profile(
    0, {1, 0x0000'0008, 0x0000'0008, 0x0001'0000, 0x0000'0000, 0}, 40, 48, true);

// ------------------------------------------------------------------------------------ processors

// Real processors as they answered: 01H:EAX; 14H.0 EAX EBX ECX, 14H.1 EAX EBX; 15H EAX EBX ECX and
// the ratio; MAXPHYADDR; MSRs 485H, 48BH, 483H, 484H.

inline constexpr capabilities broadwell_ult = detail::part(
    0x306D4, {0, 0x01, 1, 0, 0}, {0, 0, 0, 13}, 39,
    {0x3004'81E5, 0x0005'7CFF, 0x007F'FFFF, 0x0000'FFFF});
inline constexpr capabilities skylake_x = detail::with_xsaves(detail::part(
    0x50654, {1, 0x0F, 7, 0x0249'0002, 0x003F'3FFF}, {2, 0x124, 0, 35}, 46,
    {0x7004'C1E7, 0x025D'3FFF, 0x01FF'FFFF, 0x0003'FFFF}));
inline constexpr capabilities cannon_lake = detail::with_xsaves(detail::part(
    0x60663, {1, 0x0F, 7, 0x0249'0002, 0x003F'1FFF}, {2, 0xB8, detail::crystal_24, 22}, 39,
    {0x7004'C1E7, 0x025F'3CFF, 0x01FF'FFFF, 0x0003'FFFF}));
inline constexpr capabilities ice_lake_u = detail::with_xsaves(detail::part(
    0x706E5, {1, 0x0F, 7, 0x0249'0002, 0x003F'1FFF}, {2, 0x4E, detail::crystal_38, 15}, 39,
    {0x7004'C1E7, 0x335F'BFFF, 0x037F'FFFF, 0x0006'FFFF}));
inline constexpr capabilities tiger_lake = detail::with_xsaves(detail::part(
    0x806C1, {1, 0x4F, 7, 0x0249'0002, 0x003F'1FFF}, {2, 0x7E, detail::crystal_38, 24}, 39,
    {0x7004'C1E7, 0x035F'3FFF, 0x137F'FFFF, 0x0016'FFFF}));
inline constexpr capabilities arrow_lake_p = detail::with_xsaves(detail::part(
    0xC0662, {1, 0x15F, 7, 0x0249'0002, 0x003F'003F}, {2, 0xDA, detail::crystal_38, 42}, 46,
    {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}));
inline constexpr capabilities arrow_lake_e = detail::with_xsaves(detail::part(
    0xC0662, {1, 0x15F, 0x8000'0007, 0x0249'0002, 0x003F'003F}, {2, 0xDA, detail::crystal_38, 42},
    46, {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}));
inline constexpr capabilities wildcat_lake_p = detail::with_xsaves(detail::part(
    0xD0651, {1, 0x15F, 7, 0x0249'0002, 0x003F'003F}, {2, 0x82, detail::crystal_38, 25}, 46,
    {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x01FE'FFFF}));
inline constexpr capabilities wildcat_lake_e = detail::with_xsaves(detail::part(
    0xD0651, {1, 0x15F, 0x8000'0007, 0x0249'0002, 0x003F'003F}, {2, 0x82, detail::crystal_38, 25},
    46, {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x01FE'FFFF}));

/// What QEMU gives a guest, whatever the host has: leaf 14H and nothing else.
inline constexpr capabilities qemu = detail::with_pt(
    0, {1, 0x0F, 7, 0x0249'0002, 0x003F'1FFF});

// clang-format on

// ------------------------------------------------------------------------------------ by name

struct named {
    text name{};
    capabilities value{};
};

inline constexpr named all[] = {
    {"P-NONE", P_NONE},
    {"P-BDW", P_BDW},
    {"P-SKL", P_SKL},
    {"P-ATM", P_ATM},
    {"P-FUT", P_FUT},
    {"P-SRO", P_SRO},
    {"P-FAB", P_FAB},
    {"Broadwell-ULT", broadwell_ult},
    {"Skylake-X", skylake_x},
    {"CannonLake", cannon_lake},
    {"IceLake-U", ice_lake_u},
    {"TigerLake", tiger_lake},
    {"ArrowLake-P", arrow_lake_p},
    {"ArrowLake-E", arrow_lake_e},
    {"WildcatLake-P", wildcat_lake_p},
    {"WildcatLake-E", wildcat_lake_e},
    {"QEMU", qemu},
};

namespace detail {

constexpr auto lower_case(char letter) noexcept -> char {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

constexpr auto is_same_name(text one, text two) noexcept -> bool {
    if (one.size() != two.size()) { return false; }
    for (size_t i = 0; i < one.size(); ++i) {
        if (lower_case(one.data()[i]) != lower_case(two.data()[i])) { return false; }
    }
    return true;
}

}  // namespace detail

/// The processor of a name, upper or lower case, or nullptr.
[[nodiscard]] constexpr auto find(text name) noexcept -> named const* {
    for (named const& one : all) {
        if (detail::is_same_name(one.name, name)) { return &one; }
    }
    return nullptr;
}

}  // namespace ptspec::cpu::preset
