// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/capabilities.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/ports.hpp>
#include <support/check_twice.hpp>
#include <support/without_msrs.hpp>

using namespace ptspec::cpu;
using ptspec::wrapped;
using ptspec::simulate::cpuid_model;
using ptspec::cpuid_registers;
using ptspec::simulate::msr_model;
using ptspec::port_value;
using ptspec::test::without_msrs;

namespace {

constexpr uint32_t pt_bit = 1U << 25;  // CPUID.07H.0:EBX
constexpr uint32_t vmx_bit = 1U << 5;  // CPUID.01H:ECX
constexpr uint32_t pdcm_bit = 1U << 15;
constexpr uint32_t xsave_bit = 1U << 26;

/// A processor that answers CPUID from `of`. Its last basic leaf is `last`; leaves after it return
/// garbage, as on real processors.
struct answering_cpuid {
    capabilities of;
    uint32_t last = 0x20;
    uint32_t last_extended = 0x8000'0008;
    unsigned subleaf_1_asked = 0;

    constexpr auto query(uint32_t leaf, uint32_t subleaf) noexcept -> cpuid_registers {
        if (leaf == 0) { return {last, 0, 0, 0}; }
        if (leaf == 0x8000'0000) { return {last_extended, 0, 0, 0}; }
        if (leaf > (leaf < 0x8000'0000 ? last : last_extended)) { return {~0U, ~0U, ~0U, ~0U}; }
        if (leaf == 0x14 && subleaf == 1) { ++subleaf_1_asked; }
        switch (leaf << 4 | subleaf) {
            case 0x010: return {of.leaf_01_eax.raw, ~0U, of.leaf_01_ecx.raw, ~0U};
            case 0x070: return {~0U, of.leaf_07_0_ebx.raw, ~0U, ~0U};
            case 0x071: return {of.leaf_07_1_eax.raw, ~0U, ~0U, ~0U};
            case 0x0A0: return {of.leaf_0a_eax.raw, ~0U, ~0U, ~0U};
            case 0x0D1: return {of.leaf_0d_1_eax.raw, ~0U, of.leaf_0d_1_ecx.raw, ~0U};
            case 0x0D8: return {of.leaf_0d_8_eax.raw, ~0U, of.leaf_0d_8_ecx.raw, ~0U};
            case 0x140:
                return {of.leaf_14_0_eax.raw, of.leaf_14_0_ebx.raw, of.leaf_14_0_ecx.raw, ~0U};
            case 0x141:
                return {of.leaf_14_1_eax.raw, of.leaf_14_1_ebx.raw, of.leaf_14_1_ecx.raw, ~0U};
            case 0x150: return {of.leaf_15_eax.raw, of.leaf_15_ebx.raw, of.leaf_15_ecx.raw, ~0U};
            case 0x80: return {of.leaf_80000008_eax.raw, ~0U, ~0U, ~0U};  // 8000'0008H << 4
            default: return {~0U, ~0U, ~0U, ~0U};
        }
    }
};

constexpr auto msrs_of(capabilities const& of) -> msr_model<6> {
    return {{{0xCE, of.platform_info.raw},
             {0x345, of.perf_capabilities.raw},
             {0x485, of.vmx_misc.raw},
             {0x48B, of.vmx_procbased_ctls2.raw},
             {0x483, of.vmx_exit_ctls.raw},
             {0x484, of.vmx_entry_ctls.raw}}};
}

/// Counts the reads. Every read succeeds.
struct counting_msrs {
    unsigned reads = 0;

    constexpr auto read(uint32_t) noexcept -> port_value {
        ++reads;
        return {true, ~uint64_t{0}};
    }
    constexpr auto write(uint32_t, uint64_t) noexcept -> bool { return false; }
};

/// P-SKL with these words of leaf 14H.
constexpr auto skl(uint32_t ebx, uint32_t ecx, uint32_t eax_1, uint32_t ebx_1) -> capabilities {
    auto made = preset::P_SKL;
    made.leaf_14_0_ebx = {ebx};
    made.leaf_14_0_ecx = {ecx};
    made.leaf_14_1_eax = {eax_1};
    made.leaf_14_1_ebx = {ebx_1};
    return made;
}

}  // namespace

// ------------------------------------------------------------------------------------ queries

TEST_CASE("CPUID.07H.0:EBX[25] enumerates Intel PT (REG-160)") {
    CHECK_TWICE([](auto value) {
        capabilities one;
        one.leaf_07_0_ebx = {value(pt_bit)};
        capabilities other;
        other.leaf_07_0_ebx = {~value(pt_bit)};
        return one.has_pt() && !other.has_pt() && !capabilities{}.has_pt();
    });
}

TEST_CASE("the number of ranges is RANGECNT, at most four (REG-014, REG-164)") {
    CHECK_TWICE([](auto value) {
        bool all = true;
        for (unsigned n = 0; n < 8; ++n) {
            auto const count = skl(value(0x0FU), 7, n | 0x0249'0700, 0).address_ranges();
            all = all && count == (n < 4 ? n : 4);
        }
        return all;
    });
}

TEST_CASE("without IP filtering no range exists, whatever RANGECNT is (REG-014)") {
    CHECK_TWICE([](auto value) {
        return skl(value(0x0BU), 7, 2, 0).address_ranges() == 0 &&
               skl(value(0x04U), 7, 2, 0).address_ranges() == 2;
    });
}

TEST_CASE("without sub-leaf 1 no range exists and only encoding 0 is legal (REG-046)") {
    CHECK_TWICE([](auto value) {
        auto part = value(preset::P_FUT);
        part.leaf_14_0_eax = {0};
        return part.address_ranges() == 0 && part.mtc_periods() == 1 &&
               part.cyc_thresholds() == 1 && part.psb_periods() == 1 &&
               !part.supports(psb_period::encoded(1)) && part.supports(psb_period::encoded(0));
    });
    CHECK_TWICE([](auto value) {
        auto part = value(preset::P_FUT);
        part.leaf_14_0_eax = {2};
        return part.address_ranges() == 4 && part.mtc_periods() == 0xFFFF;
    });
}

TEST_CASE("the encodings of each field come from its own bitmap (REG-028, REG-164)") {
    CHECK_TWICE([](auto value) {
        auto const part = skl(value(0x0FU), 7, 0x8008'0002, 0x0003'4005);
        return part.mtc_periods() == 0x8009 && part.cyc_thresholds() == 0x4005 &&
               part.psb_periods() == 0x0003;
    });
    CHECK_TWICE([](auto value) {
        auto const part = skl(value(0x0FU), 7, 0x8008'0002, 0x0003'4005);
        return part.supports(mtc_period::encoded(3)) && part.supports(mtc_period::encoded(15)) &&
               !part.supports(mtc_period::encoded(2)) && part.supports(cyc_threshold::encoded(2)) &&
               part.supports(cyc_threshold::encoded(14)) &&
               !part.supports(cyc_threshold::encoded(1)) && part.supports(psb_period::encoded(1)) &&
               !part.supports(psb_period::encoded(2));
    });
}

TEST_CASE("encoding 0 may be written even where its bit is 0 (REG-029)") {
    CHECK_TWICE([](auto value) {
        auto const part = skl(value(0x0FU), 7, 0x0008'0002, 0x0002'0004);
        return part.mtc_periods() == 0x9 && part.cyc_thresholds() == 0x5 &&
               part.psb_periods() == 0x3 && part.supports(mtc_period::encoded(0));
    });
}

TEST_CASE("a bitmap counts only with its feature (REG-027, REG-030)") {
    CHECK_TWICE([](auto value) {
        auto const part = skl(value(0x0DU), 7, 0x0249'0002, 0x003F'3FFF);  // no CYC, no PSBFreq
        return part.mtc_periods() == 0x0249 && part.cyc_thresholds() == 1 &&
               part.psb_periods() == 1 && part.supports(mtc_period::encoded(0)) &&
               !part.supports(cyc_threshold::encoded(0)) && !part.supports(psb_period::encoded(0));
    });
    CHECK_TWICE([](auto value) {
        auto const part = skl(value(0x07U), 7, 0x0249'0002, 0x003F'3FFF);  // no MTC
        return part.mtc_periods() == 1 && part.cyc_thresholds() == 0x3FFF &&
               part.psb_periods() == 0x3F && !part.supports(mtc_period::encoded(0)) &&
               part.supports(cyc_threshold::encoded(0)) && part.supports(psb_period::encoded(0));
    });
}

TEST_CASE("CPUID.14H.0:ECX enumerates the output schemes (REG-024..026, REG-162)") {
    auto const outputs = [](capabilities const& of) {
        return (of.supports(output_scheme::topa) ? 1U : 0U) |
               (of.supports(output_scheme::single_range) ? 4U : 0U) |
               (of.supports(output_scheme::fabric) ? 8U : 0U);
    };
    CHECK_TWICE([=](auto value) {
        bool all = true;
        for (uint32_t ecx = 0; ecx < 16; ++ecx) {
            all = all && outputs(skl(value(0x0FU), ecx, 0, 0)) == (ecx & 0xDU) &&
                  outputs(skl(value(0x0FU), ecx | 0x8000'0000, 0, 0)) == (ecx & 0xDU);
        }
        return all;
    });
}

TEST_CASE("ECX[1] has a meaning only with ToPA (REG-163)") {
    CHECK_TWICE([](auto value) {
        return skl(value(0x0FU), 3, 0, 0).has_topa_of_many_entries() &&
               !skl(value(0x0FU), 2, 0, 0).has_topa_of_many_entries() &&
               !skl(value(0x0FU), 1, 0, 0).has_topa_of_many_entries() &&
               !skl(value(0x0FU), 6, 0, 0).has_topa_of_many_entries();
    });
}

TEST_CASE("the output MSRs exist with ToPA or a single range (REG-012)") {
    CHECK_TWICE([](auto value) {
        return skl(value(0x0FU), 1, 0, 0).has_output_msrs() &&
               skl(value(0x0FU), 4, 0, 0).has_output_msrs() &&
               skl(value(0x0FU), 5, 0, 0).has_output_msrs() &&
               !skl(value(0x0FU), 0x8000'000A, 0, 0).has_output_msrs();
    });
}

TEST_CASE("LIP selects linear or effective IPs (REG-079, REG-166)") {
    CHECK_TWICE([](auto value) {
        return value(preset::arrow_lake_e).ip_payload() == ip_payload::linear &&
               value(preset::arrow_lake_p).ip_payload() == ip_payload::effective &&
               skl(0x0F, 0x7FFF'FFFF, 0, 0).ip_payload() == ip_payload::effective;
    });
}

TEST_CASE("MAXPHYADDR is 36 without its leaf (REG-070)") {
    CHECK_TWICE([](auto value) {
        capabilities part;
        bool const absent = part.max_phys_addr().bits == 36;
        part.leaf_80000008_eax = {value(0x0000'392EU)};
        return absent && part.max_phys_addr().bits == 46;
    });
}

TEST_CASE("linear addresses have 48 bits unless the leaf enumerates another width (REG-076)") {
    CHECK_TWICE([](auto value) {
        capabilities part;
        bool const absent = part.linear_address_bits() == 48;
        part.leaf_80000008_eax = {value(0x0000'392EU)};
        bool const wide = part.linear_address_bits() == 57;
        part.leaf_80000008_eax = {value(0x0000'402EU)};
        bool const widest = part.linear_address_bits() == 64;
        part.leaf_80000008_eax = {value(0x0000'412EU)};
        return absent && wide && widest && part.linear_address_bits() == 48;
    });
}

TEST_CASE("REG-167: the time-stamp counter has EBX/EAX times as many ticks as the crystal clock") {
    CHECK_TWICE([](auto value) {
        capabilities caps{};
        bool const none = !caps.has_crystal_ratio() && caps.crystal_ticks(value(1'000U)) == 0;
        caps.leaf_15_ebx = {216};
        bool const half = !caps.has_crystal_ratio() && caps.crystal_ticks(1'000) == 0;
        caps.leaf_15_eax = {2};
        return none && half && caps.has_crystal_ratio() &&
               caps.crystal_ticks(value(1'080U)) == 10 && caps.crystal_ticks(1'079) == 9 &&
               caps.crystal_ticks(uint64_t{108} << 50) == uint64_t{1} << 50;
    });
}

TEST_CASE("VMX has all of Intel PT only with all three controls (REG-120, REG-125..128)") {
    CHECK_TWICE([](auto value) {
        auto part = value(preset::ice_lake_u);
        bool const whole = part.vmx() == vmx_support::whole;
        part.vmx_procbased_ctls2 = {part.vmx_procbased_ctls2.raw & ~(uint64_t{1} << 56)};
        bool const without_gpa = part.vmx() == vmx_support::conceal;
        part = value(preset::ice_lake_u);
        part.vmx_exit_ctls = {part.vmx_exit_ctls.raw & ~(uint64_t{1} << 57)};
        bool const without_clear = part.vmx() == vmx_support::conceal;
        part = value(preset::ice_lake_u);
        part.vmx_entry_ctls = {part.vmx_entry_ctls.raw & ~(uint64_t{1} << 50)};
        bool const without_load = part.vmx() == vmx_support::conceal;
        part = value(preset::ice_lake_u);
        part.vmx_misc = {part.vmx_misc.raw & ~(uint64_t{1} << 14)};
        return whole && without_gpa && without_clear && without_load &&
               part.vmx() == vmx_support::none;
    });
}

TEST_CASE("XSAVES of Intel PT needs XSAVES and component 8 (REG-140)") {
    CHECK_TWICE([](auto value) {
        capabilities part;
        part.leaf_0d_1_eax = {value(8U)};
        bool const without_component = !part.has_xsaves_state();
        part.leaf_0d_1_ecx = {value(0x100U)};
        bool const both = part.has_xsaves_state();
        part.leaf_0d_1_eax = {value(7U)};
        return without_component && both && !part.has_xsaves_state();
    });
}

TEST_CASE("capabilities are equal when every word is equal") {
    CHECK_TWICE([](auto value) {
        return mtc_period{} == mtc_period::encoded(0) &&
               cyc_threshold{} == cyc_threshold::encoded(0) &&
               psb_period{} == psb_period::encoded(0) && value(preset::P_SKL) == preset::P_SKL &&
               !(value(preset::P_SKL) == preset::P_ATM) &&
               mtc_period::encoded(wrapped{value(3U)}) == mtc_period::encoded(3) &&
               mtc_period::encoded(wrapped{value(3U)}) != mtc_period::encoded(4) &&
               cyc_threshold::encoded(wrapped{value(3U)}) == cyc_threshold::encoded(3) &&
               cyc_threshold::encoded(wrapped{value(3U)}) != cyc_threshold::encoded(2) &&
               psb_period::encoded(wrapped{value(3U)}) == psb_period::encoded(3) &&
               psb_period::encoded(wrapped{value(3U)}) != psb_period::encoded(0);
    });
}

// ------------------------------------------------------------------------------------ detection

TEST_CASE("detect() returns the capabilities of every preset (REG-160, REG-168, PRG-001)") {
    CHECK_TWICE([](auto value) {
        bool all = true;
        for (auto const& one : preset::all) {
            answering_cpuid cpuid{value(one.value)};
            auto msrs = msrs_of(one.value);
            all = all && detect(cpuid, msrs) == one.value &&
                  detect(cpuid) == without_msrs(one.value);
        }
        return all;
    });
}

TEST_CASE("detect() takes each word from the right register") {
    // Every word is a unique number, read through the in-memory ports.
    CHECK_TWICE([](auto value) {
        cpuid_model<12> cpuid{{
            {0, 0, {0x15, 0x756E'6547, 0x6C65'746E, 0x4965'6E69}},
            {1, 0, {value(0x0005'06E3U), 0x11, vmx_bit | pdcm_bit | xsave_bit, 0x13}},
            {7, 0, {0x21, pt_bit | 0x22, 0x23, 0x24}},
            {7, 1, {0x4CCE'09D7, 0x25, 0x26, 0x27}},
            {0xA, 0, {0x0730'0404, 0x32, 0x33, 0x34}},
            {0xD, 1, {0x0F, 0x42, 0x0100, 0x44}},
            {0xD, 8, {0x80, 0x52, 0x53, 0x54}},
            {0x14, 0, {1, 0x0F, 7, 0x64}},
            {0x14, 1, {0x0249'0002, 0x003F'3FFF, 0x73, 0x74}},
            {0x15, 0, {2, 0x9E, 24'000'000, 0x84}},
            {0x8000'0000, 0, {0x8000'0008, 0x92, 0x93, 0x94}},
            {0x8000'0008, 0, {0x3027, 0xA2, 0xA3, 0xA4}},
        }};
        msr_model<6> msrs{{{0xCE, 0x2300},
                           {0x345, 0x1'0001},
                           {0x485, 0x4002},
                           {0x48B, 0x3'0000'0003},
                           {0x483, 0x4'0000'0004},
                           {0x484, 0x5'0000'0005}}};
        auto const found = detect(cpuid, msrs);
        bool const words = found.leaf_01_eax.raw == 0x0005'06E3 &&
                           found.leaf_01_ecx.raw == (vmx_bit | pdcm_bit | xsave_bit) &&
                           found.leaf_07_0_ebx.raw == (pt_bit | 0x22) &&
                           found.leaf_07_1_eax.raw == 0x4CCE'09D7 && found.has_fred() &&
                           found.leaf_0a_eax.raw == 0x0730'0404 &&
                           found.leaf_0d_1_eax.raw == 0x0F && found.leaf_0d_1_ecx.raw == 0x0100 &&
                           found.leaf_0d_8_eax.raw == 0x80 && found.leaf_0d_8_ecx.raw == 0x53;
        bool const pt = found.leaf_14_0_eax.raw == 1 && found.leaf_14_0_ebx.raw == 0x0F &&
                        found.leaf_14_0_ecx.raw == 7 && found.leaf_14_1_eax.raw == 0x0249'0002 &&
                        found.leaf_14_1_ebx.raw == 0x003F'3FFF && found.leaf_14_1_ecx.raw == 0x73;
        bool const rest = found.leaf_15_eax.raw == 2 && found.leaf_15_ebx.raw == 0x9E &&
                          found.leaf_15_ecx.raw == 24'000'000 &&
                          found.leaf_80000008_eax.raw == 0x3027 &&
                          found.platform_info.raw == 0x2300 &&
                          found.perf_capabilities.raw == 0x1'0001;
        bool const vmx = found.vmx_misc.raw == 0x4002 &&
                         found.vmx_procbased_ctls2.raw == 0x3'0000'0003 &&
                         found.vmx_exit_ctls.raw == 0x4'0000'0004 &&
                         found.vmx_entry_ctls.raw == 0x5'0000'0005;
        return words && pt && rest && vmx;
    });
}

TEST_CASE("sub-leaf 1 of leaf 7 is read if its sub-leaf 0 enumerates it (GEN-301)") {
    CHECK_TWICE([](auto value) {
        auto const features_of = [&](uint32_t last) {
            struct port {
                uint32_t last;
                constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
                    -> cpuid_registers {
                    if (leaf == 0) { return {7, 0, 0, 0}; }
                    if (leaf == 7) { return {subleaf == 0 ? last : 0x2'0000U, 0, 0, 0}; }
                    return {};
                }
            } from{value(last)};
            return detect(from).leaf_07_1_eax.raw;
        };
        return features_of(0) == 0 && features_of(1) == 0x2'0000 && features_of(2) == 0x2'0000;
    });
}

TEST_CASE("leaves after the last one are ignored") {
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{preset::tiger_lake, value(0x14U)};
        auto const without_clock = detect(cpuid);
        cpuid.last = value(0x13U);
        auto const without_trace = detect(cpuid);
        return without_clock.leaf_14_1_ebx.raw == 0x003F'1FFF &&
               without_clock.leaf_15_eax.raw == 0 && without_clock.leaf_15_ebx.raw == 0 &&
               without_clock.leaf_15_ecx.raw == 0 && without_trace.has_pt() &&
               without_trace.leaf_14_0_eax.raw == 0 && without_trace.leaf_14_0_ebx.raw == 0 &&
               without_trace.leaf_14_0_ecx.raw == 0 && without_trace.leaf_14_1_eax.raw == 0;
    });
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{preset::tiger_lake, value(0x0CU)};
        auto const without_xsave = detect(cpuid);
        cpuid.last = value(0x06U);
        auto const without_features = detect(cpuid);
        cpuid.last = value(0U);
        auto const without_anything = detect(cpuid);
        return without_xsave.has_pt() && without_xsave.leaf_0d_1_eax.raw == 0 &&
               without_xsave.leaf_0d_8_eax.raw == 0 && without_xsave.leaf_0a_eax.raw == 0 &&
               !without_features.has_pt() && without_features.leaf_01_eax.raw == 0x806C1 &&
               without_features.leaf_0a_eax.raw == 0 && without_anything.leaf_01_eax.raw == 0;
    });
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{preset::tiger_lake, value(0x15U)};
        cpuid.of.leaf_0a_eax = {0x0830'0805};
        auto const all = detect(cpuid);
        return all.leaf_15_ebx.raw == 0x7E && all.leaf_0a_eax.raw == 0x0830'0805;
    });
}

TEST_CASE("without leaf 80000008H addresses have the default widths (REG-070)") {
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{preset::arrow_lake_p};
        cpuid.last_extended = value(0x8000'0007U);
        auto const found = detect(cpuid);
        cpuid.last_extended = value(0x8000'0009U);
        return found.leaf_80000008_eax.raw == 0 && found.max_phys_addr().bits == 36 &&
               found.linear_address_bits() == 48 && detect(cpuid).max_phys_addr().bits == 46;
    });
    CHECK_TWICE([](auto value) {  // the last extended leaf is garbage: the data of another leaf
        answering_cpuid cpuid{preset::arrow_lake_p};
        cpuid.last_extended = value(0x8001'0000U);
        auto const found = detect(cpuid);
        cpuid.last_extended = value(0x8000'FFFFU);
        return found.max_phys_addr().bits == 36 && detect(cpuid).max_phys_addr().bits == 46;
    });
}

TEST_CASE("leaf 0DH is read only with XSAVE") {
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{value(preset::tiger_lake)};
        cpuid.of.leaf_01_ecx = {vmx_bit};
        auto const found = detect(cpuid);
        return found.leaf_0d_1_eax.raw == 0 && found.leaf_0d_1_ecx.raw == 0 &&
               found.leaf_0d_8_eax.raw == 0 && found.leaf_0d_8_ecx.raw == 0;
    });
}

TEST_CASE("sub-leaf 1 is read only where leaf 14H enumerates it (REG-046, REG-160)") {
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{value(preset::P_FUT)};
        cpuid.of.leaf_14_0_eax = {0};
        auto const found = detect(cpuid);
        return cpuid.subleaf_1_asked == 0 && found.leaf_14_1_eax.raw == 0 &&
               found.leaf_14_1_ebx.raw == 0 && found.leaf_14_1_ecx.raw == 0 &&
               found.address_ranges() == 0 && found.leaf_14_0_ebx.raw == 0x3FF;
    });
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{value(preset::P_FUT)};
        cpuid.of.leaf_14_0_eax = {2};
        return detect(cpuid).leaf_14_1_ecx.raw == 0x8003 && cpuid.subleaf_1_asked == 1;
    });
}

TEST_CASE("without Intel PT neither leaf 14H nor an MSR is read (REG-160)") {
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{value(preset::P_FUT)};
        cpuid.of.leaf_07_0_ebx = {~pt_bit};
        counting_msrs msrs;
        auto const found = detect(cpuid, msrs);
        return !found.has_pt() && found.leaf_14_0_eax.raw == 0 && found.leaf_14_0_ebx.raw == 0 &&
               found.leaf_14_0_ecx.raw == 0 && found.leaf_14_1_eax.raw == 0 &&
               found.leaf_14_1_ebx.raw == 0 && found.leaf_14_1_ecx.raw == 0 && msrs.reads == 0 &&
               found.vmx_misc.raw == 0 && found.max_phys_addr().bits == 52 &&
               cpuid.subleaf_1_asked == 0;
    });
}

TEST_CASE("an MSR that faults counts as 0 (REG-168)") {
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{value(preset::P_FUT)};
        msr_model<1> faulting{{{0x1234, 5}}};
        auto const found = detect(cpuid, faulting);
        return found == without_msrs(preset::P_FUT) && found.vmx() == vmx_support::none;
    });
    CHECK_TWICE([](auto value) {
        // A hypervisor that hides the controls but not IA32_VMX_MISC.
        answering_cpuid cpuid{value(preset::ice_lake_u)};
        msr_model<2> some{{{0x485, 0x7004'C1E7}, {0xCE, 0xF00}}};
        auto const found = detect(cpuid, some);
        return found.vmx() == vmx_support::conceal && found.platform_info.raw == 0xF00;
    });
}

TEST_CASE("MSRs are read only where CPUID enumerates them") {
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{preset::P_FUT};
        cpuid.of.leaf_01_ecx = {value(~(vmx_bit | pdcm_bit))};
        counting_msrs msrs;
        auto const found = detect(cpuid, msrs);
        return msrs.reads == 1 && found.platform_info.raw == ~uint64_t{0} &&
               found.perf_capabilities.raw == 0 && found.vmx_misc.raw == 0 &&
               found.vmx_exit_ctls.raw == 0;
    });
    CHECK_TWICE([](auto value) {
        answering_cpuid cpuid{preset::P_FUT};
        cpuid.of.leaf_01_ecx = {value(vmx_bit)};
        counting_msrs msrs;
        auto const found = detect(cpuid, msrs);
        return msrs.reads == 5 && found.perf_capabilities.raw == 0 &&
               found.vmx_entry_ctls.raw == ~uint64_t{0};
    });
}
