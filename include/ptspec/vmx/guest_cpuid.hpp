// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/compare.hpp>
#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/base/rule.hpp>
#include <ptspec/vmx/intercepts.hpp>

/// The Intel PT that a guest sees: its capabilities, and the CPUID answers that enumerate them.
namespace ptspec::vmx {

using cpu::capabilities;

/// What a VMM offers to a guest, as far as the processor has it.
struct guest_policy {
    guest_output output = guest_output::guest_physical;
    reg::cpuid_14h_0_ebx features{0xFFFF'FFFF};
    unsigned address_ranges = reg::ia32_rtit_addr::count;
    /// PT state in XSAVES. The VMM must always intercept XSAVES and XRSTORS of component 8
    /// (XSS-exiting bitmap). While the guest traces they would clear TraceEn without an exit, load
    /// what the guest's CPUID does not allow, and with shadow tables reach output addresses of the
    /// host.
    bool xsaves = false;
    bool nested = false;  ///< Intel PT in VMX operation of the guest
    /// The guest stays on processors of the core type of the first one. Otherwise it may run on any
    /// of them, and does not see their core types.
    bool pinned = false;
};

/// The Intel PT of a guest.
struct guest_offer {
    rule broken = rule::none;  ///< why the guest gets none
    capabilities value{};      ///< without Intel PT if it gets none
    bool hides_core_type = false;

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
    friend constexpr auto operator==(guest_offer const&, guest_offer const&) -> bool = default;
};

// Functions that read or change words are templates, as in cpu/compare.hpp.

namespace detail {

/// The features of 14H.0:EBX that a VMM can offer. Trigger tracing has MSRs that neither the MSR
/// bitmaps of PRG-172 nor XSAVES cover; reserved bits may be features with state of their own.
///
/// Source: PRG-174, REG-141.
inline constexpr uint32_t offered_features =
    ~reg::cpuid_14h_0_ebx::reserved_mask() &
    ~ptspec::detail::field_mask<reg::cpuid_14h_0_ebx::PTTT>;

/// The words of a processor without PT state in XSAVES.
template <class Capabilities>
constexpr void hide_xsaves_state(Capabilities& from) noexcept {
    from.leaf_0d_1_ecx = from.leaf_0d_1_ecx.with(reg::cpuid_0dh_1_ecx::PT_STATE{false});
    from.leaf_0d_8_eax = {};
    from.leaf_0d_8_ecx = {};
}

template <class Capabilities>
constexpr void hide_guest_physical_output(Capabilities& from) noexcept {
    using word = reg::ia32_vmx_procbased_ctls2;
    from.vmx_procbased_ctls2 = from.vmx_procbased_ctls2.with(word::Can1_PT_USES_GPA{false},
                                                             word::Must1_PT_USES_GPA{false});
}

/// Source: REG-120, REG-122..128.
template <class Capabilities>
constexpr void hide_vmx(Capabilities& from) noexcept {
    using secondary = reg::ia32_vmx_procbased_ctls2;
    using vm_exit = reg::ia32_vmx_exit_ctls;
    using vm_entry = reg::ia32_vmx_entry_ctls;
    hide_guest_physical_output(from);
    from.vmx_misc = from.vmx_misc.with(reg::ia32_vmx_misc::INTEL_PT{false});
    from.vmx_procbased_ctls2 = from.vmx_procbased_ctls2.with(
        secondary::Can1_CONCEAL_VMX_NONROOT_FROM_PT{false},
        secondary::Must1_CONCEAL_VMX_NONROOT_FROM_PT{false});
    from.vmx_exit_ctls = from.vmx_exit_ctls.with(
        vm_exit::Can1_CONCEAL_VMEXITS_FROM_PT{false}, vm_exit::Must1_CONCEAL_VMEXITS_FROM_PT{false},
        vm_exit::Can1_CLEAR_IA32_RTIT_CTL{false}, vm_exit::Must1_CLEAR_IA32_RTIT_CTL{false});
    from.vmx_entry_ctls = from.vmx_entry_ctls.with(vm_entry::Can1_CONCEAL_VMENTRIES_FROM_PT{false},
                                                   vm_entry::Must1_CONCEAL_VMENTRIES_FROM_PT{false},
                                                   vm_entry::Can1_LOAD_IA32_RTIT_CTL{false},
                                                   vm_entry::Must1_LOAD_IA32_RTIT_CTL{false});
}

}  // namespace detail

/// A processor with everything of Intel PT hidden.
///
/// Source: REG-134, PRG-164.
template <same_as<capabilities> Capabilities>
[[nodiscard]] constexpr auto without_pt(Capabilities from) noexcept -> Capabilities {
    from.leaf_07_0_ebx = from.leaf_07_0_ebx.with(reg::cpuid_07h_0_ebx::INTEL_PT{false});
    from.leaf_14_0_eax = {};
    from.leaf_14_0_ebx = {};
    from.leaf_14_0_ecx = {};
    from.leaf_14_1_eax = {};
    from.leaf_14_1_ebx = {};
    from.leaf_14_1_ecx = {};
    from.perf_capabilities = from.perf_capabilities.with(
        reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL{false});
    detail::hide_xsaves_state(from);
    detail::hide_vmx(from);
    return from;
}

namespace detail {

/// Leaf 14H of a guest.
///
/// Source: REG-046, REG-163, PRG-174, PRG-184, PRG-185.
template <class Capabilities>
constexpr void limit_leaf_14(Capabilities& guest, guest_policy const& policy) noexcept {
    using ebx = reg::cpuid_14h_0_ebx;
    using ecx = reg::cpuid_14h_0_ecx;
    using eax_1 = reg::cpuid_14h_1_eax;
    Capabilities const host = guest;
    bool const has_ranges = host.leaf_14_0_eax.raw != 0;
    guest.leaf_14_0_eax = {has_ranges ? 1U : 0U};
    guest.leaf_14_0_ebx = {host.leaf_14_0_ebx.raw & policy.features.raw & offered_features};
    // A region of a shadow table is as contiguous as host memory, so tables need many regions, and
    // a single range becomes a table.
    bool const translated = policy.output == guest_output::guest_physical ||
                            host.has_topa_of_many_entries();
    guest.leaf_14_0_ecx = reg::cpuid_14h_0_ecx{}.with(
        ecx::TOPAOUT{translated && host.supports(cpu::output_scheme::topa)},
        ecx::MENTRY{translated && host.has_topa_of_many_entries()},
        ecx::SNGLRNGOUT{translated && host.supports(cpu::output_scheme::single_range)},
        ecx::LIP{host.ip_payload() == cpu::ip_payload::linear});
    auto const ranges = guest.address_ranges();
    uint32_t const most = ranges < policy.address_ranges ? ranges : policy.address_ranges;
    auto const encodings = [&](uint64_t periods, bool enumerated) {
        return has_ranges && enumerated ? wrapped{periods} : wrapped{0};
    };
    guest.leaf_14_1_eax = reg::cpuid_14h_1_eax{}.with(
        eax_1::RANGECNT{wrapped{most}},
        eax_1::MTC_PERIODS{encodings(host.leaf_14_1_eax.template get<eax_1::MTC_PERIODS>(),
                                     guest.leaf_14_0_ebx.template get<ebx::MTC>())});
    bool const has_psb_periods = has_ranges && guest.leaf_14_0_ebx.template get<ebx::CPSB_CAM>();
    guest.leaf_14_1_ebx = {has_psb_periods ? host.leaf_14_1_ebx.raw : 0};
    guest.leaf_14_1_ecx = {};
}

}  // namespace detail

/// The Intel PT that a guest of these processors may see: what all of them have and what a VMM can
/// virtualize. Not offered: output to the trace transport subsystem, trigger tracing, reserved
/// bits, PEBS output, and what `policy` excludes. If the guest gets no Intel PT, `value` has none.
///
/// Several processors are the core types of a hybrid part, or the hosts between which the guest
/// may migrate. The clocks must match what the guest's TSC shows.
///
/// Errors: `broken` is REG-001 a processor has no Intel PT; REG-121 it has none in VMX operation;
///         PRG-170 guest-physical output without all VMX controls of Intel PT; PRG-174 LIP differs
///         between the processors, no output can be virtualized, or `count` is 0.
/// Source: SDM vol. 3, "Emulation of Intel PT Traced State"; REG-134, REG-166, PRG-164, PRG-170,
///         PRG-174, PRG-184, PRG-185.
template <same_as<capabilities> Capabilities>
[[nodiscard]] constexpr auto guest_capabilities(Capabilities const* hosts, size_t count,
                                                guest_policy const& policy = {}) noexcept
    -> guest_offer {
    if (count == 0) { return {rule::PRG_174}; }
    guest_offer made{rule::none, hosts[0]};
    bool same_ip_payload = true;
    for (size_t i = 1; i < count && !policy.pinned; ++i) {
        auto const both = cpu::common(made.value, hosts[i]);
        made.value = both.value;
        same_ip_payload = same_ip_payload && both.same_ip_payload;
        made.hides_core_type = true;
    }
    auto const support = made.value.vmx();
    bool const is_translated = policy.output == guest_output::shadow ||
                               support == cpu::vmx_support::whole;
    made.broken = !made.value.has_pt()                ? rule::REG_001
                  : support == cpu::vmx_support::none ? rule::REG_121
                  : !is_translated                    ? rule::PRG_170
                  : !same_ip_payload                  ? rule::PRG_174
                                                      : rule::none;
    detail::limit_leaf_14(made.value, policy);
    if (made && !made.value.has_output_msrs()) { made.broken = rule::PRG_174; }
    if (!made) {
        made.value = without_pt(made.value);
        return made;
    }
    made.value.perf_capabilities = made.value.perf_capabilities.with(
        reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL{false});
    // The size of the component is 0 where it differs between the processors.
    if (!policy.xsaves || made.value.leaf_0d_8_eax.raw == 0) {
        detail::hide_xsaves_state(made.value);
    }
    if (policy.output == guest_output::shadow) { detail::hide_guest_physical_output(made.value); }
    if (!policy.nested) { detail::hide_vmx(made.value); }
    return made;
}

/// The same for one processor.
///
/// Errors: as above.
/// Source: PRG-170, PRG-174.
template <same_as<capabilities> Capabilities>
[[nodiscard]] constexpr auto guest_capabilities(Capabilities const& host,
                                                guest_policy const& policy = {}) noexcept
    -> guest_offer {
    return guest_capabilities(&host, 1, policy);
}

// ------------------------------------------------------------------------------------ CPUID

namespace detail {

/// CPUID.07H.0:EDX[15]: the part has cores of several types.
inline constexpr uint32_t hybrid = 1U << 15;

/// A number in the leaf of address widths.
template <class Field, class Capabilities>
constexpr auto number_in(Capabilities const& caps) noexcept -> uint64_t {
    return caps.leaf_80000008_eax.template get<Field>();
}

/// `Flag` as `from` has it; the other bits of a register.
template <class Flag, class Word>
constexpr auto with_flag_of(Word from, uint32_t rest) noexcept -> uint32_t {
    return Word{rest}.with(Flag{from.template get<Flag>()}).raw;
}

}  // namespace detail

/// The answer to a CPUID instruction of a guest. `rest` is the answer without regard to Intel PT,
/// for example that of the processor; everything that concerns Intel PT is replaced in it: leaf
/// 14H, 07H.0:EBX[25], 0DH.1:ECX[8], 0DH.8, and where core types are hidden 1AH and the flag of
/// hybrid parts, 07H.0:EDX[15]. For a guest with Intel PT also the clocks, leaf 15H, and the
/// address widths, 80000008H:EAX[15:0], by which its accesses are checked: if the VMM gives the
/// guest others than the processors have, change `guest.value`.
///
/// `cpu::detect` decodes the answers to `guest.value`, except the MSRs, and what is not of Intel
/// PT. The size in 0DH.1:EBX depends on the guest's XCR0 and IA32_XSS: the VMM computes it.
/// Source: SDM vol. 2A, "CPUID"; REG-070, REG-076, REG-134, REG-140, REG-160, PRG-164, PRG-174,
///         PRG-176.
template <same_as<guest_offer> Offer>
[[nodiscard]] constexpr auto answer(Offer const& guest, uint32_t leaf, uint32_t subleaf,
                                    cpuid_registers rest) noexcept -> cpuid_registers {
    auto const& caps = guest.value;
    if (leaf == 0x07 && subleaf == 0) {
        rest.ebx = detail::with_flag_of<reg::cpuid_07h_0_ebx::INTEL_PT>(caps.leaf_07_0_ebx,
                                                                        rest.ebx);
        if (guest.hides_core_type) { rest.edx &= ~detail::hybrid; }
    } else if (leaf == 0x0D && subleaf == 1) {
        rest.ecx = detail::with_flag_of<reg::cpuid_0dh_1_ecx::PT_STATE>(caps.leaf_0d_1_ecx,
                                                                        rest.ecx);
    } else if (leaf == 0x0D && subleaf == 8) {
        return {caps.leaf_0d_8_eax.raw, 0, caps.leaf_0d_8_ecx.raw, 0};
    } else if (leaf == 0x14 && subleaf == 0) {
        return {caps.leaf_14_0_eax.raw, caps.leaf_14_0_ebx.raw, caps.leaf_14_0_ecx.raw, 0};
    } else if (leaf == 0x14 && subleaf == 1) {
        return {caps.leaf_14_1_eax.raw, caps.leaf_14_1_ebx.raw, caps.leaf_14_1_ecx.raw, 0};
    } else if (leaf == 0x15 && caps.has_pt()) {
        return {caps.leaf_15_eax.raw, caps.leaf_15_ebx.raw, caps.leaf_15_ecx.raw, 0};
    } else if (leaf == 0x8000'0008 && caps.has_pt()) {
        using widths = reg::cpuid_80000008h_eax;
        rest.eax = widths{rest.eax}
                       .with(
                           widths::MAXPHYADDR{wrapped{detail::number_in<widths::MAXPHYADDR>(caps)}},
                           widths::LinearBits{wrapped{detail::number_in<widths::LinearBits>(caps)}})
                       .raw;
    } else if (leaf == 0x14 || (leaf == 0x1A && guest.hides_core_type)) {
        return {};
    }
    return rest;
}

}  // namespace ptspec::vmx
