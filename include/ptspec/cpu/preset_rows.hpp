// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>

/// The table of processors.
namespace ptspec::cpu::preset::detail {

/// CPUID leaf 14H: sub-leaves 0 and 1.
struct leaf_14 {
    uint32_t eax_0;
    uint32_t ebx_0;
    uint32_t ecx_0;
    uint32_t eax_1 = 0;
    uint32_t ebx_1 = 0;
    uint32_t ecx_1 = 0;
};

/// IA32_VMX_MISC, and the controls that may be 1 by the VMX capability MSRs.
struct vmx_words {
    uint32_t misc = 0;
    uint32_t procbased_ctls2 = 0;
    uint32_t exit_ctls = 0;
    uint32_t entry_ctls = 0;
};

/// CPUID.15H, and the ratio in MSR_PLATFORM_INFO.
struct clock {
    uint32_t eax = 0;
    uint32_t ebx = 0;
    uint32_t hz = 0;
    unsigned ratio = 0;
};

/// A row of the table of processors. Where `physical` is 0, only leaf 14H is known. Where `leaf` is
/// 0, there is no Intel PT.
struct row {
    text name{};
    uint32_t signature = 0;  ///< CPUID.01H:EAX
    leaf_14 leaf{};
    unsigned physical = 0;  ///< MAXPHYADDR
    unsigned linear = 48;   ///< the width of linear addresses
    bool xsaves = false;    ///< XSAVES manages the state of Intel PT
    vmx_words vmx{};
    clock time{};
    uint64_t perf_capabilities = 0;
    uint32_t features = 0;  ///< CPUID.07H.1:EAX; 0 where FRED and its companions are missing
};

/// The VM-exit and VM-entry controls that must be 1 on all known processors.
inline constexpr uint32_t required_exit_ctls = 0x0003'6DFF;
inline constexpr uint32_t required_entry_ctls = 0x0000'11FF;

/// A VMX capability MSR: the upper half has the controls that may be 1, the lower half those that
/// must be 1.
constexpr auto allowed(uint32_t can_be_1, uint32_t required = 0) noexcept -> uint64_t {
    return uint64_t{can_be_1} << 32 | (can_be_1 & required);
}

/// The capabilities of a row. Uses shifts instead of `with`, whose templates would be instantiated
/// on inclusion.
constexpr auto capabilities_of(row const& processor) noexcept -> capabilities {
    using widths = reg::cpuid_80000008h_eax;
    capabilities caps;
    bool const has_pt = processor.leaf.ecx_0 != 0;
    caps.leaf_01_eax.raw = processor.signature;
    caps.leaf_07_0_ebx.raw = has_pt ? 1U << reg::cpuid_07h_0_ebx::INTEL_PT::lsb : 0;
    caps.leaf_14_0_eax.raw = processor.leaf.eax_0;
    caps.leaf_14_0_ebx.raw = processor.leaf.ebx_0;
    caps.leaf_14_0_ecx.raw = processor.leaf.ecx_0;
    caps.leaf_14_1_eax.raw = processor.leaf.eax_1;
    caps.leaf_14_1_ebx.raw = processor.leaf.ebx_1;
    caps.leaf_14_1_ecx.raw = processor.leaf.ecx_1;
    caps.leaf_07_1_eax.raw = processor.features;
    if (processor.physical == 0) { return caps; }
    caps.leaf_80000008_eax.raw = processor.physical << widths::MAXPHYADDR::lsb |
                                 processor.linear << widths::LinearBits::lsb;
    if (!has_pt) { return caps; }
    caps.leaf_01_ecx.raw = 1U << reg::cpuid_01h_ecx::VMX::lsb;
    caps.vmx_misc.raw = processor.vmx.misc;
    caps.vmx_procbased_ctls2.raw = allowed(processor.vmx.procbased_ctls2);
    caps.vmx_exit_ctls.raw = allowed(processor.vmx.exit_ctls, required_exit_ctls);
    caps.vmx_entry_ctls.raw = allowed(processor.vmx.entry_ctls, required_entry_ctls);
    if (processor.xsaves) {  // size and format are the same on all known processors
        caps.leaf_01_ecx.raw |= 1U << reg::cpuid_01h_ecx::XSAVE::lsb;
        caps.leaf_0d_1_eax.raw = 1U << reg::cpuid_0dh_1_eax::XSAVES::lsb;
        caps.leaf_0d_1_ecx.raw = 1U << reg::cpuid_0dh_1_ecx::PT_STATE::lsb;
        caps.leaf_0d_8_eax.raw = 0x80;
        caps.leaf_0d_8_ecx.raw = 1U << reg::cpuid_0dh_8_ecx::Supervisor::lsb;
    }
    if (processor.perf_capabilities != 0) {
        caps.leaf_01_ecx.raw |= 1U << reg::cpuid_01h_ecx::PDCM::lsb;
        caps.perf_capabilities.raw = processor.perf_capabilities;
    }
    caps.leaf_15_eax.raw = processor.time.eax;
    caps.leaf_15_ebx.raw = processor.time.ebx;
    caps.leaf_15_ecx.raw = processor.time.hz;
    caps.platform_info.raw = processor.time.ratio << reg::msr_platform_info::MaxNonTurboRatio::lsb;
    return caps;
}

// ------------------------------------------------------------------------------------ leaf 14H

// Leaf 14H of real processors, named after the first processor known to have it.

inline constexpr leaf_14 like_broadwell{0, 0x01, 1};
inline constexpr leaf_14 like_skylake{1, 0x0F, 7, 0x0249'0002, 0x003F'3FFF};
inline constexpr leaf_14 like_cannon_lake{1, 0x0F, 7, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_tiger_lake{1, 0x4F, 7, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_alder_lake_p{1, 0x5F, 7, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_lunar_lake_p{1, 0x15F, 7, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_goldmont{1, 0x0F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};
inline constexpr leaf_14 like_goldmont_plus{1, 0x3F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};
inline constexpr leaf_14 like_lakefield_e{1, 0x0F, 0x8000'0007, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_elkhart_lake{1, 0x7F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};
inline constexpr leaf_14 like_early_alder_lake_e{1, 0x5F, 0x8000'0007, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_alder_lake_e{1, 0x5F, 0x8000'0007, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_lunar_lake_e{1, 0x15F, 0x8000'0007, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_alder_lake_n{1, 0x1FF, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};

// ------------------------------------------------------------------------------------ the table

/// CPUID.07H.1:EAX of Panther Lake and Wildcat Lake: FRED, WRMSRNS, MSRLIST, and others.
inline constexpr uint32_t with_fred = 0x4CCE'09D7;
inline constexpr uint32_t crystal_19 = 19'200'000;
inline constexpr uint32_t crystal_24 = 24'000'000;
inline constexpr uint32_t crystal_25 = 25'000'000;
inline constexpr uint32_t crystal_38 = 38'400'000;

// The profiles, and processors whose VMX capability MSRs are not published, may set only those VMX
// controls that concern Intel PT.
inline constexpr vmx_words no_pt_in_vmx{};
inline constexpr vmx_words conceal_only{
    1U << reg::ia32_vmx_misc::INTEL_PT::lsb,
    1U << reg::vmcs_secondary_proc_ctls::ConcealVmxNonRootFromPT::lsb,
    1U << reg::vmcs_vmexit_ctls::ConcealVmExitsFromPT::lsb,
    1U << reg::vmcs_vmentry_ctls::ConcealVmEntriesFromPT::lsb};
inline constexpr vmx_words all_of_pt{
    conceal_only.misc,
    conceal_only.procbased_ctls2 | 1U << reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr::lsb,
    conceal_only.exit_ctls | 1U << reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL::lsb,
    conceal_only.entry_ctls | 1U << reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL::lsb};

// clang-format off

/// Every named processor. P-FUT enumerates everything in the catalogue, P-SRO has only single-range
/// output, P-FAB only output to the trace transport. QEMU gives a guest only this leaf 14H,
/// whatever the host has: QEMU with `intel-pt`, QEMU-LIP with `intel-pt-lip`.
///
/// Columns: name, 01H:EAX, leaf 14H, MAXPHYADDR, width of linear addresses, XSAVES; MSRs 485H,
///          48BH, 483H, 484H; CPUID.15H and the ratio; IA32_PERF_CAPABILITIES; 07H.1:EAX.
/// Source:  section 0 of registers.md and presets.csv in the rule catalogue; REG-160..168.
inline constexpr row rows[] = {
    {"P-NONE", 0, {}, 39},
    {"P-BDW", 0x306D0, {0, 0x01, 1}, 39, 48, false, no_pt_in_vmx},
    {"P-SKL", 0x506E0, {1, 0x0F, 7, 0x0249'0002, 0x003F'3FFF}, 39, 48, true, conceal_only},
    {"P-ATM", 0x80660, {1, 0x7F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF}, 42, 48, true,
     conceal_only},
    {"P-FUT", 0, {1, 0x3FF, 0x8000'000F, 0xFFFF'0204, 0xFFFF'FFFF, 0x8003}, 52, 57, true, all_of_pt,
     {}, uint64_t{1} << reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL::lsb},
    {"P-SRO", 0, {1, 0x0A, 4, 0x0249'0000, 0x003F'0FFF}, 46, 48, false, conceal_only},
    {"P-FAB", 0, {1, 0x08, 8, 0x0001'0000, 0}, 40, 48, false, conceal_only},

    {"Broadwell-ULT", 0x306D4, like_broadwell, 39, 48, false,
     {0x3004'81E5, 0x0005'7CFF, 0x007F'FFFF, 0x0000'FFFF}, {0, 0, 0, 13}},
    {"Skylake-X", 0x50654, like_skylake, 46, 48, true,
     {0x7004'C1E7, 0x025D'3FFF, 0x01FF'FFFF, 0x0003'FFFF}, {2, 0x124, 0, 35}},
    {"CannonLake", 0x60663, like_cannon_lake, 39, 48, true,
     {0x7004'C1E7, 0x025F'3CFF, 0x01FF'FFFF, 0x0003'FFFF}, {2, 0xB8, crystal_24, 22}},
    {"IceLake-U", 0x706E5, like_cannon_lake, 39, 48, true,
     {0x7004'C1E7, 0x335F'BFFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x4E, crystal_38, 15}},
    {"TigerLake", 0x806C1, like_tiger_lake, 39, 48, true,
     {0x7004'C1E7, 0x035F'3FFF, 0x137F'FFFF, 0x0016'FFFF}, {2, 0x7E, crystal_38, 24}},
    {"SapphireRapids", 0x806F8, like_alder_lake_p, 52, 57, true,
     {0x7004'C1E7, 0xCFFF'3FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xD8, crystal_24, 26}},
    {"GraniteRapids", 0xA06D1, like_alder_lake_p, 52, 57, true,
     {0x7004'C1E7, 0xCFFF'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xF0, crystal_25, 30}},

    {"Goldmont", 0x506CA, like_goldmont, 39, 48, true,
     {0x6004'C1E7, 0x001D'6FFF, 0x01FF'FFFF, 0x0003'FFFF}, {3, 0xC9, crystal_19, 13}},
    {"GoldmontPlus", 0x706A8, like_goldmont_plus, 39, 48, true,
     {0x6004'C1E7, 0x025D'EFFF, 0x01FF'FFFF, 0x0003'FFFF}, {3, 0xAB, crystal_19, 11}},
    {"ElkhartLake", 0x90661, like_elkhart_lake, 39, 48, true,
     {0x7004'C1E7, 0x07DD'6FFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x68, crystal_38, 20}},
    {"AlderLake-N", 0xB06E0, like_alder_lake_n, 39, 48, true,
     {0x7004'C1E7, 0x075D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0x5E, crystal_38, 18}},

    {"Lakefield-P", 0x806A1, like_cannon_lake, 39, 48, true,
     {0x7004'C1E7, 0x035D'6FFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x48, crystal_38, 14}},
    {"Lakefield-E", 0x806A1, like_lakefield_e, 39, 48, true,
     {0x7004'C1E7, 0x035D'6FFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x48, crystal_38, 14}},
    {"AlderLake-P", 0x90672, like_alder_lake_p, 39, 48, true,
     {0x7004'C1E7, 0x075D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0x78, crystal_38, 23}},
    {"AlderLake-E", 0x90672, like_alder_lake_e, 39, 48, true,
     {0x7004'C1E7, 0x075D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0x78, crystal_38, 23}},
    {"AlderLake-E-early", 0x90672, like_early_alder_lake_e, 46, 48, true,
     {0x7004'C1E7, 0x0F5D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0xA6, crystal_38, 32}},
    {"ArrowLake-H-P", 0xC0652, like_alder_lake_p, 46, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xC0, crystal_38, 37}},
    {"ArrowLake-H-E", 0xC0652, like_alder_lake_e, 46, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xC0, crystal_38, 37}},
    {"ArrowLake-P", 0xC0662, like_lunar_lake_p, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xDA, crystal_38, 42}},
    {"ArrowLake-E", 0xC0662, like_lunar_lake_e, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xDA, crystal_38, 42}},
    {"LunarLake-P", 0xB06D1, like_lunar_lake_p, 42, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xAC, crystal_38, 33}},
    {"LunarLake-E", 0xB06D1, like_lunar_lake_e, 42, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xAC, crystal_38, 33}},
    {"WildcatLake-P", 0xD0651, like_lunar_lake_p, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x01FE'FFFF}, {2, 0x82, crystal_38, 25}, 0, with_fred},
    {"WildcatLake-E", 0xD0651, like_lunar_lake_e, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x01FE'FFFF}, {2, 0x82, crystal_38, 25}, 0, with_fred},
    {"PantherLake-P", 0xC06C3, like_lunar_lake_p, 46, 48, true,
     all_of_pt, {2, 0xAC, crystal_38, 33}, 0, with_fred},
    {"PantherLake-E", 0xC06C3, like_lunar_lake_e, 46, 48, true,
     all_of_pt, {2, 0xAC, crystal_38, 33}, 0, with_fred},

    {"QEMU", 0, like_cannon_lake},
    {"QEMU-LIP", 0, like_lakefield_e},
};

// clang-format on

}  // namespace ptspec::cpu::preset::detail
