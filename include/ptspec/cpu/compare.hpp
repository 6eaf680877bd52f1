// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/flag_set.hpp>
#include <ptspec/cpu/capabilities.hpp>

/// Compares two processors: whether one has all that the other has, and what both have in common.
///
/// A configuration for several cores, or one that must survive a migration, may only use what all
/// processors have. LIP is not a feature but a convention for IPs: a difference is reported, not
/// resolved.
namespace ptspec::cpu {

/// A capability that one processor can have and another can lack.
enum class aspect : uint16_t {
    pt = 1U << 0,              ///< Intel PT itself
    features = 1U << 1,        ///< CPUID.14H.0:EBX
    outputs = 1U << 2,         ///< CPUID.14H.0:ECX, except LIP
    address_ranges = 1U << 3,  ///< the number of address ranges
    mtc_periods = 1U << 4,
    cyc_thresholds = 1U << 5,
    psb_periods = 1U << 6,
    triggers = 1U << 7,             ///< the number of triggers, and their actions
    max_phys_addr = 1U << 8,        ///< the width of physical addresses
    linear_address_bits = 1U << 9,  ///< the width of linear addresses
    vmx = 1U << 10,                 ///< Intel PT in VMX operation
    xsaves = 1U << 11,              ///< XSAVES manages the state of Intel PT
    pebs_output = 1U << 12,         ///< PEBS records in the trace
};

/// Whether one processor has every capability of another.
struct superset_result {
    flag_set<aspect> lacking{};  ///< the capabilities that the processor lacks
    bool same_ip_payload = true;

    /// True when no capability is lacking. LIP does not matter.
    constexpr explicit operator bool() const noexcept { return lacking.empty(); }
    friend constexpr auto operator==(superset_result const&, superset_result const&)
        -> bool = default;
};

// The functions that read words are templates: as plain functions they add 2.6 % to the cost of
// including ptspec.hpp, because every field access is then instantiated on inclusion.

namespace detail {

template <class Field>
constexpr auto has(auto word) noexcept -> bool {
    return word.template get<Field>();
}
template <class Field>
constexpr auto number_of(auto word) noexcept -> uint64_t {
    return word.template get<Field>();
}

/// The bits of CPUID.14H.0:ECX that are features.
template <class Word>
constexpr auto outputs_of(Word ecx) noexcept -> uint32_t {
    return ecx.with(reg::cpuid_14h_0_ecx::LIP{false}).raw;
}

constexpr auto is_subset(uint32_t bits, uint32_t of_bits) noexcept -> bool {
    return (bits & ~of_bits) == 0;
}

}  // namespace detail

/// Whether `processor` has every capability of `other`. If so, every value that is legal for
/// `other` is legal for `processor`.
///
/// Source: REG-164, REG-165; for LIP REG-079, REG-166.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto is_superset(Capabilities const& processor,
                                         Capabilities const& other) noexcept -> superset_result {
    using detail::has, detail::is_subset, detail::number_of, detail::outputs_of;
    using trigger_count = reg::cpuid_14h_1_eax::TRIGGER_CFG_CNT;
    using pebs = reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL;
    superset_result found;
    auto const require = [&](aspect one, bool holds) {
        if (!holds) { found.lacking.add(one); }
    };
    require(aspect::pt, processor.has_pt() || !other.has_pt());
    require(aspect::features, is_subset(other.leaf_14_0_ebx.raw, processor.leaf_14_0_ebx.raw));
    require(aspect::outputs,
            is_subset(outputs_of(other.leaf_14_0_ecx), outputs_of(processor.leaf_14_0_ecx)));
    require(aspect::address_ranges, other.address_ranges() <= processor.address_ranges());
    require(aspect::mtc_periods, is_subset(other.mtc_periods(), processor.mtc_periods()));
    require(aspect::cyc_thresholds, is_subset(other.cyc_thresholds(), processor.cyc_thresholds()));
    require(aspect::psb_periods, is_subset(other.psb_periods(), processor.psb_periods()));
    require(aspect::triggers, number_of<trigger_count>(other.leaf_14_1_eax) <=
                                      number_of<trigger_count>(processor.leaf_14_1_eax) &&
                                  is_subset(other.leaf_14_1_ecx.raw, processor.leaf_14_1_ecx.raw));
    require(aspect::max_phys_addr, other.max_phys_addr().bits <= processor.max_phys_addr().bits);
    require(aspect::linear_address_bits,
            other.linear_address_bits() <= processor.linear_address_bits());
    require(aspect::vmx, other.vmx() <= processor.vmx());
    require(aspect::xsaves, processor.has_xsaves_state() || !other.has_xsaves_state());
    require(aspect::pebs_output,
            has<pebs>(processor.perf_capabilities) || !has<pebs>(other.perf_capabilities));
    found.same_ip_payload = other.ip_payload() == processor.ip_payload();
    return found;
}

/// The capabilities that two processors have in common.
struct common_capabilities {
    capabilities value{};
    bool same_ip_payload = true;  ///< false: `value` has LIP of the first processor
};

namespace detail {

/// The feature bits that both words have.
template <class Word>
constexpr auto bits_of_both(Word one, Word two) noexcept -> Word {
    return {one.raw & two.raw};
}

/// `Flag` is 1 if both words have it; the other bits are taken from `one`.
template <class Flag, class Word>
constexpr auto with_flag_of_both(Word one, Word two) noexcept -> Word {
    return one.with(Flag{has<Flag>(one) && has<Flag>(two)});
}

/// Each of `Fields` is the smaller number; other bits are 1 where both have them.
template <class... Fields, class Word>
constexpr auto with_minimum_of(Word one, Word two) noexcept -> Word {
    auto const smaller = [](uint64_t a, uint64_t b) { return wrapped{a < b ? a : b}; };
    return bits_of_both(one, two).with(
        Fields{smaller(number_of<Fields>(one), number_of<Fields>(two))}...);
}

/// The number if both are equal, else 0.
template <class Word>
constexpr auto same_or_zero(Word one, Word two) noexcept -> Word {
    return one.raw == two.raw ? one : Word{};
}

/// A VMX capability MSR: the upper half has bits that can be 1 on both, the lower half bits that
/// must be 1 on either.
template <class Word>
constexpr auto allowed_by_both(Word one, Word two) noexcept -> Word {
    return {((one.raw & two.raw) & ~low_bits(32)) | ((one.raw | two.raw) & low_bits(32))};
}

/// The field that encodes the smaller width. Where both encode the same width, the larger number:
/// 0 encodes the default width.
template <class Field>
constexpr auto narrower(auto one, unsigned width_of_one, auto two, unsigned width_of_two) noexcept
    -> Field {
    uint64_t const a = number_of<Field>(one);
    uint64_t const b = number_of<Field>(two);
    bool const first = width_of_one == width_of_two ? a > b : width_of_one < width_of_two;
    return Field{wrapped{first ? a : b}};
}

template <class Capabilities>
constexpr auto common_widths(Capabilities const& one, Capabilities const& two) noexcept
    -> reg::cpuid_80000008h_eax {
    using eax = reg::cpuid_80000008h_eax;
    auto const a = one.leaf_80000008_eax;
    auto const b = two.leaf_80000008_eax;
    return bits_of_both(a, b).with(
        narrower<eax::MAXPHYADDR>(a, one.max_phys_addr().bits, b, two.max_phys_addr().bits),
        narrower<eax::LinearBits>(a, one.linear_address_bits(), b, two.linear_address_bits()));
}

}  // namespace detail

/// The common capabilities of two processors: a value of an MSR is legal for them exactly when it
/// is legal for both processors. Clocks, and the size of an XSAVE component, are 0 where they
/// differ.
///
/// The signature, LIP, and the bits of IA32_VMX_MISC and IA32_PERF_CAPABILITIES that do not concern
/// Intel PT are taken from `one`.
/// Source: REG-164, REG-165; for LIP REG-079, REG-166.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto common(Capabilities const& one, Capabilities const& two) noexcept
    -> common_capabilities {
    using detail::same_or_zero, detail::allowed_by_both, detail::bits_of_both,
        detail::with_flag_of_both, detail::with_minimum_of;
    using counters = reg::cpuid_0ah_eax;
    using sizes = reg::cpuid_14h_1_eax;
    using lip = reg::cpuid_14h_0_ecx::LIP;
    auto value = one;
    value.leaf_01_ecx = bits_of_both(one.leaf_01_ecx, two.leaf_01_ecx);
    value.leaf_07_0_ebx = bits_of_both(one.leaf_07_0_ebx, two.leaf_07_0_ebx);
    value.leaf_07_1_eax = bits_of_both(one.leaf_07_1_eax, two.leaf_07_1_eax);
    value.leaf_0a_eax =
        with_minimum_of<counters::VersionID, counters::NumGP, counters::Width, counters::EbxLen>(
            one.leaf_0a_eax, two.leaf_0a_eax);
    value.leaf_0d_1_eax = bits_of_both(one.leaf_0d_1_eax, two.leaf_0d_1_eax);
    value.leaf_0d_1_ecx = bits_of_both(one.leaf_0d_1_ecx, two.leaf_0d_1_ecx);
    value.leaf_0d_8_eax = same_or_zero(one.leaf_0d_8_eax, two.leaf_0d_8_eax);
    value.leaf_0d_8_ecx = bits_of_both(one.leaf_0d_8_ecx, two.leaf_0d_8_ecx);
    value.leaf_14_0_eax = with_minimum_of<reg::cpuid_14h_0_eax::MaxSubleaf>(one.leaf_14_0_eax,
                                                                            two.leaf_14_0_eax);
    value.leaf_14_0_ebx = bits_of_both(one.leaf_14_0_ebx, two.leaf_14_0_ebx);
    value.leaf_14_0_ecx = bits_of_both(one.leaf_14_0_ecx, two.leaf_14_0_ecx)
                              .with(lip{detail::has<lip>(one.leaf_14_0_ecx)});
    value.leaf_14_1_eax = with_minimum_of<sizes::RANGECNT, sizes::TRIGGER_CFG_CNT>(
        one.leaf_14_1_eax, two.leaf_14_1_eax);
    value.leaf_14_1_ebx = bits_of_both(one.leaf_14_1_ebx, two.leaf_14_1_ebx);
    value.leaf_14_1_ecx = bits_of_both(one.leaf_14_1_ecx, two.leaf_14_1_ecx);
    value.leaf_15_eax = same_or_zero(one.leaf_15_eax, two.leaf_15_eax);
    value.leaf_15_ebx = same_or_zero(one.leaf_15_ebx, two.leaf_15_ebx);
    value.leaf_15_ecx = same_or_zero(one.leaf_15_ecx, two.leaf_15_ecx);
    value.leaf_80000008_eax = detail::common_widths(one, two);
    value.platform_info = same_or_zero(one.platform_info, two.platform_info);
    value.perf_capabilities = with_flag_of_both<reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL>(
        one.perf_capabilities, two.perf_capabilities);
    value.vmx_misc = with_flag_of_both<reg::ia32_vmx_misc::INTEL_PT>(one.vmx_misc, two.vmx_misc);
    value.vmx_procbased_ctls2 = allowed_by_both(one.vmx_procbased_ctls2, two.vmx_procbased_ctls2);
    value.vmx_exit_ctls = allowed_by_both(one.vmx_exit_ctls, two.vmx_exit_ctls);
    value.vmx_entry_ctls = allowed_by_both(one.vmx_entry_ctls, two.vmx_entry_ctls);
    return {value, one.ip_payload() == two.ip_payload()};
}

}  // namespace ptspec::cpu
