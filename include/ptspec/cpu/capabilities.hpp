// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/ip_payload.hpp>
#include <ptspec/base/address.hpp>
#include <ptspec/cpu/periods.hpp>
#include <ptspec/base/ports.hpp>
#include <ptspec/reg/cpuid.hpp>
#include <ptspec/reg/cpuid_14h.hpp>
#include <ptspec/reg/perf.hpp>
#include <ptspec/reg/vmx.hpp>

/// The Intel PT capabilities that a processor enumerates.
namespace ptspec::cpu {

/// An output scheme of Intel PT.
enum class output_scheme : uint8_t { single_range, topa, fabric };

/// The level of Intel PT support in VMX operation, in historical order.
///
/// Source: REG-120, REG-122..128.
enum class vmx_support : uint8_t {
    none,     ///< IA32_VMX_MISC[14] is 0: no tracing in VMX operation
    conceal,  ///< tracing in VMX operation, with controls to conceal VMX from the trace
    whole,    ///< also guest-physical output; VM entry loads CTL, VM exit clears it
};

/// The enumeration of Intel PT by a processor: raw CPUID leaves and capability MSRs.
///
/// Units:  each member is the word of its name; a leaf that does not exist is 0.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration";
///         REG-160..168.
struct capabilities {
    reg::cpuid_01h_eax leaf_01_eax{};
    reg::cpuid_01h_ecx leaf_01_ecx{};
    reg::cpuid_07h_0_ebx leaf_07_0_ebx{};
    reg::cpuid_07h_1_eax leaf_07_1_eax{};
    reg::cpuid_0ah_eax leaf_0a_eax{};
    reg::cpuid_0dh_1_eax leaf_0d_1_eax{};
    reg::cpuid_0dh_1_ecx leaf_0d_1_ecx{};
    reg::cpuid_0dh_8_eax leaf_0d_8_eax{};
    reg::cpuid_0dh_8_ecx leaf_0d_8_ecx{};
    reg::cpuid_14h_0_eax leaf_14_0_eax{};
    reg::cpuid_14h_0_ebx leaf_14_0_ebx{};
    reg::cpuid_14h_0_ecx leaf_14_0_ecx{};
    reg::cpuid_14h_1_eax leaf_14_1_eax{};
    reg::cpuid_14h_1_ebx leaf_14_1_ebx{};
    reg::cpuid_14h_1_ecx leaf_14_1_ecx{};
    reg::cpuid_15h_eax leaf_15_eax{};
    reg::cpuid_15h_ebx leaf_15_ebx{};
    reg::cpuid_15h_ecx leaf_15_ecx{};
    reg::cpuid_80000008h_eax leaf_80000008_eax{};
    reg::msr_platform_info platform_info{};
    reg::ia32_perf_capabilities perf_capabilities{};
    reg::ia32_vmx_misc vmx_misc{};
    reg::ia32_vmx_procbased_ctls2 vmx_procbased_ctls2{};
    reg::ia32_vmx_exit_ctls vmx_exit_ctls{};
    reg::ia32_vmx_entry_ctls vmx_entry_ctls{};

    friend constexpr auto operator==(capabilities const&, capabilities const&) -> bool = default;

    /// Source: REG-160.
    [[nodiscard]] constexpr auto has_pt() const noexcept -> bool {
        return leaf_07_0_ebx.get<reg::cpuid_07h_0_ebx::INTEL_PT>();
    }

    /// True when the processor has FRED, and CFEs for software interrupts and SYSCALL.
    ///
    /// Source: GEN-301.
    [[nodiscard]] constexpr auto has_fred() const noexcept -> bool {
        return leaf_07_1_eax.get<reg::cpuid_07h_1_eax::FRED>();
    }

    /// True when the processor supports IP filtering, TraceStop, and MSRs that survive a warm
    /// reset.
    ///
    /// Source: REG-161.
    [[nodiscard]] constexpr auto has_ip_filtering() const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::IPFILT_WRSTPRSV>();
    }

    /// True when IA32_RTIT_CR3_MATCH exists.
    ///
    /// Source: REG-013.
    [[nodiscard]] constexpr auto has_cr3_filtering() const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::CR3FILTER>();
    }

    /// The number of IA32_RTIT_ADDRn_A/B pairs: 0 to 4.
    ///
    /// Source: REG-014, REG-046, REG-164.
    [[nodiscard]] constexpr auto address_ranges() const noexcept -> unsigned {
        bool const any = has_subleaf_1() && has_ip_filtering();
        auto const count = leaf_14_1_eax.get<reg::cpuid_14h_1_eax::RANGECNT>();
        return !any ? 0 : count < 4 ? static_cast<unsigned>(count) : 4;
    }

    /// The legal encodings of MTCFreq, CycThresh and PSBFreq, as bitmaps. Encoding 0 is always
    /// legal.
    ///
    /// Source: REG-028, REG-029, REG-046.
    [[nodiscard]] constexpr auto mtc_periods() const noexcept -> uint32_t {
        return bitmap(leaf_14_1_eax.get<reg::cpuid_14h_1_eax::MTC_PERIODS>(),
                      leaf_14_0_ebx.get<ebx::MTC>());
    }
    [[nodiscard]] constexpr auto cyc_thresholds() const noexcept -> uint32_t {
        return bitmap(leaf_14_1_ebx.get<reg::cpuid_14h_1_ebx::CYC_THRESHOLDS>(),
                      leaf_14_0_ebx.get<ebx::CPSB_CAM>());
    }
    [[nodiscard]] constexpr auto psb_periods() const noexcept -> uint32_t {
        return bitmap(leaf_14_1_ebx.get<reg::cpuid_14h_1_ebx::PSB_PERIODS>(),
                      leaf_14_0_ebx.get<ebx::CPSB_CAM>());
    }

    [[nodiscard]] constexpr auto supports(mtc_period period) const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::MTC>() && has_bit(mtc_periods(), period.encoding());
    }
    [[nodiscard]] constexpr auto supports(cyc_threshold threshold) const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::CPSB_CAM>() &&
               has_bit(cyc_thresholds(), threshold.encoding());
    }
    [[nodiscard]] constexpr auto supports(psb_period period) const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::CPSB_CAM>() && has_bit(psb_periods(), period.encoding());
    }
    /// Source: REG-024..026, REG-162.
    [[nodiscard]] constexpr auto supports(output_scheme scheme) const noexcept -> bool {
        using ecx = reg::cpuid_14h_0_ecx;
        return scheme == output_scheme::topa     ? leaf_14_0_ecx.get<ecx::TOPAOUT>()
               : scheme == output_scheme::fabric ? leaf_14_0_ecx.get<ecx::FABRIC>()
                                                 : leaf_14_0_ecx.get<ecx::SNGLRNGOUT>();
    }
    /// True when a ToPA table may hold more than one region.
    ///
    /// Source: REG-163.
    [[nodiscard]] constexpr auto has_topa_of_many_entries() const noexcept -> bool {
        return supports(output_scheme::topa) && leaf_14_0_ecx.get<reg::cpuid_14h_0_ecx::MENTRY>();
    }
    /// True when IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS exist.
    ///
    /// Source: REG-012.
    [[nodiscard]] constexpr auto has_output_msrs() const noexcept -> bool {
        return supports(output_scheme::topa) || supports(output_scheme::single_range);
    }

    [[nodiscard]] constexpr auto ip_payload() const noexcept -> cpu::ip_payload {
        return leaf_14_0_ecx.get<reg::cpuid_14h_0_ecx::LIP>() ? cpu::ip_payload::linear
                                                              : cpu::ip_payload::effective;
    }

    /// The width of physical addresses in bits, MAXPHYADDR; 36 where the leaf is absent.
    ///
    /// Source: REG-070.
    [[nodiscard]] constexpr auto max_phys_addr() const noexcept -> ptspec::max_phys_addr {
        using eax = reg::cpuid_80000008h_eax;
        auto const bits = static_cast<unsigned>(leaf_80000008_eax.get<eax::MAXPHYADDR>());
        return {bits == 0 ? 36U : bits};
    }
    /// The width of linear addresses in bits: 48 or 57. 48 where the leaf is absent.
    ///
    /// Source: REG-076.
    [[nodiscard]] constexpr auto linear_address_bits() const noexcept -> unsigned {
        using eax = reg::cpuid_80000008h_eax;
        auto const bits = static_cast<unsigned>(leaf_80000008_eax.get<eax::LinearBits>());
        return bits == 0 || bits > 64 ? 48 : bits;
    }

    /// True when CPUID.15H has the ratio of the time-stamp counter and the crystal clock.
    ///
    /// Source: REG-167.
    [[nodiscard]] constexpr auto has_crystal_ratio() const noexcept -> bool {
        return leaf_15_eax.raw != 0 && leaf_15_ebx.raw != 0;
    }
    /// Ticks of the crystal clock while the time-stamp counter counts `tsc`, rounded down; 0
    /// without the ratio.
    ///
    /// Source: REG-167.
    [[nodiscard]] constexpr auto crystal_ticks(uint64_t tsc) const noexcept -> uint64_t {
        if (!has_crystal_ratio()) { return 0; }
        uint64_t const numerator = leaf_15_ebx.raw;
        uint64_t const denominator = leaf_15_eax.raw;
        return tsc / numerator * denominator + tsc % numerator * denominator / numerator;
    }

    /// Source: REG-120, REG-125..128.
    [[nodiscard]] constexpr auto vmx() const noexcept -> vmx_support {
        bool const whole =
            vmx_procbased_ctls2.get<reg::ia32_vmx_procbased_ctls2::Can1_PT_USES_GPA>() &&
            vmx_exit_ctls.get<reg::ia32_vmx_exit_ctls::Can1_CLEAR_IA32_RTIT_CTL>() &&
            vmx_entry_ctls.get<reg::ia32_vmx_entry_ctls::Can1_LOAD_IA32_RTIT_CTL>();
        return !vmx_misc.get<reg::ia32_vmx_misc::INTEL_PT>() ? vmx_support::none
               : whole                                       ? vmx_support::whole
                                                             : vmx_support::conceal;
    }

    /// True when XSAVES and XRSTORS can manage the state of Intel PT.
    ///
    /// Source: REG-140.
    [[nodiscard]] constexpr auto has_xsaves_state() const noexcept -> bool {
        return leaf_0d_1_eax.get<reg::cpuid_0dh_1_eax::XSAVES>() &&
               leaf_0d_1_ecx.get<reg::cpuid_0dh_1_ecx::PT_STATE>();
    }

private:
    using ebx = reg::cpuid_14h_0_ebx;

    [[nodiscard]] constexpr auto has_subleaf_1() const noexcept -> bool {
        return leaf_14_0_eax.raw != 0;
    }
    [[nodiscard]] constexpr auto bitmap(uint64_t encodings, bool enumerated) const noexcept
        -> uint32_t {
        return enumerated && has_subleaf_1() ? static_cast<uint32_t>(encodings) | 1U : 1U;
    }
    [[nodiscard]] static constexpr auto has_bit(uint32_t bits, unsigned position) noexcept -> bool {
        return (bits >> position & 1U) != 0;
    }
};

// ------------------------------------------------------------------------------------ detection

/// Reads the capabilities from CPUID. Members that are MSRs stay 0.
///
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-160,
///         PRG-001.
template <cpuid_port Cpuid>
[[nodiscard]] constexpr auto detect(Cpuid& cpuid) noexcept -> capabilities {
    capabilities found;
    uint32_t const last = cpuid.query(0, 0).eax;
    auto const leaf_or_zero = [&](uint32_t leaf, uint32_t subleaf) {
        return leaf <= last ? cpuid.query(leaf, subleaf) : cpuid_registers{};
    };
    auto const signature_leaf = leaf_or_zero(0x01, 0);
    found.leaf_01_eax = {signature_leaf.eax};
    found.leaf_01_ecx = {signature_leaf.ecx};
    auto const feature_leaf = leaf_or_zero(0x07, 0);
    found.leaf_07_0_ebx = {feature_leaf.ebx};
    if (feature_leaf.eax >= 1) { found.leaf_07_1_eax = {leaf_or_zero(0x07, 1).eax}; }
    found.leaf_0a_eax = {leaf_or_zero(0x0A, 0).eax};
    // Without extended leaves CPUID returns the data of another leaf, so the value may be anything.
    uint32_t const last_extended = cpuid.query(0x8000'0000, 0).eax;
    if (last_extended >= 0x8000'0008 && last_extended <= 0x8000'FFFF) {
        found.leaf_80000008_eax = {cpuid.query(0x8000'0008, 0).eax};
    }
    auto const tsc_leaf = leaf_or_zero(0x15, 0);
    found.leaf_15_eax = {tsc_leaf.eax};
    found.leaf_15_ebx = {tsc_leaf.ebx};
    found.leaf_15_ecx = {tsc_leaf.ecx};
    if (found.leaf_01_ecx.template get<reg::cpuid_01h_ecx::XSAVE>()) {
        auto const xsave_leaf = leaf_or_zero(0x0D, 1);
        found.leaf_0d_1_eax = {xsave_leaf.eax};
        found.leaf_0d_1_ecx = {xsave_leaf.ecx};
        auto const pt_component = leaf_or_zero(0x0D, 8);
        found.leaf_0d_8_eax = {pt_component.eax};
        found.leaf_0d_8_ecx = {pt_component.ecx};
    }
    if (!found.has_pt()) { return found; }
    auto const subleaf_0 = leaf_or_zero(0x14, 0);
    found.leaf_14_0_eax = {subleaf_0.eax};
    found.leaf_14_0_ebx = {subleaf_0.ebx};
    found.leaf_14_0_ecx = {subleaf_0.ecx};
    if (subleaf_0.eax >= 1) {
        auto const subleaf_1 = leaf_or_zero(0x14, 1);
        found.leaf_14_1_eax = {subleaf_1.eax};
        found.leaf_14_1_ebx = {subleaf_1.ebx};
        found.leaf_14_1_ecx = {subleaf_1.ecx};
    }
    return found;
}

/// Reads the capabilities from CPUID and from the capability MSRs that CPUID enumerates. An MSR
/// that faults anyway, as under some hypervisors, counts as 0.
///
/// Source: REG-160, REG-168, PRG-001.
template <cpuid_port Cpuid, msr_port Msrs>
[[nodiscard]] constexpr auto detect(Cpuid& cpuid, Msrs& msrs) noexcept -> capabilities {
    capabilities found = detect(cpuid);
    auto const read = [&]<class Word>(Word& word) {
        auto const answer = msrs.read(Word::address);
        word = {answer ? answer.value : 0};
    };
    if (!found.has_pt()) { return found; }
    read(found.platform_info);
    if (found.leaf_01_ecx.template get<reg::cpuid_01h_ecx::PDCM>()) {
        read(found.perf_capabilities);
    }
    if (found.leaf_01_ecx.template get<reg::cpuid_01h_ecx::VMX>()) {
        read(found.vmx_misc);
        read(found.vmx_procbased_ctls2);
        read(found.vmx_exit_ctls);
        read(found.vmx_entry_ctls);
    }
    return found;
}

}  // namespace ptspec::cpu
