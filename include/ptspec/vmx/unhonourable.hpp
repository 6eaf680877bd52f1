// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/guest_cpuid.hpp>

/// Whether a processor can honour the CPUID answers of a saved guest.
namespace ptspec::vmx {

/// A bit, or the lowest bit of a number, that a processor cannot honour.
struct unhonourable {
    rule broken = rule::none;
    uint32_t leaf = 0;  ///< of CPUID, and its sub-leaf and register; or the index of an MSR
    uint32_t subleaf = 0;
    reg::cpuid_register part = reg::cpuid_register::eax;
    unsigned bit = 0;
    /// The guest lacks the bit, and this processor does not prevent its use: software that obeys
    /// CPUID sees no difference.
    bool is_hidden = false;

    friend constexpr auto operator==(unhonourable const&, unhonourable const&) -> bool = default;
};

namespace detail {

/// The rule by which IA32_RTIT_CTL, or a table, needs a bit of 14H.0:EBX or 14H.0:ECX.
///
/// Source: REG-014, REG-024, REG-025, REG-027, REG-030..036, OUT-067, PRG-174.
constexpr auto rule_of_feature(unsigned bit) noexcept -> rule {
    constexpr rule rules[] = {rule::REG_031, rule::REG_027, rule::REG_014,
                              rule::REG_030, rule::REG_032, rule::REG_033,
                              rule::REG_034, rule::REG_035, rule::REG_036};
    return bit < sizeof(rules) / sizeof(rules[0]) ? rules[bit] : rule::PRG_174;
}
constexpr auto rule_of_output(unsigned bit) noexcept -> rule {
    constexpr rule rules[] = {rule::REG_024, rule::OUT_067, rule::REG_025};
    return bit < sizeof(rules) / sizeof(rules[0]) ? rules[bit] : rule::PRG_174;
}

/// Calls `found` for each of the bits.
template <class Word, class Found>
constexpr void report(Found& found, uint64_t bits, auto rule_of) noexcept {
    for (unsigned bit = 0; bits != 0; ++bit, bits >>= 1) {
        if ((bits & 1) == 0) { continue; }
        if constexpr (requires { Word::leaf; }) {
            found(unhonourable{rule_of(bit), Word::leaf, Word::subleaf, Word::output, bit});
        } else {
            found(unhonourable{rule_of(bit), Word::address, 0, reg::cpuid_register::eax, bit});
        }
    }
}
template <class Word, class Found>
constexpr void report(Found& found, uint64_t bits, rule broken) noexcept {
    report<Word>(found, bits, [=](unsigned) { return broken; });
}

/// The lowest bit of a field that is wrong.
template <class Field>
constexpr auto lowest_bit(bool wrong) noexcept -> uint64_t {
    return wrong ? uint64_t{1} << Field::lsb : 0;
}

/// The bits of a VMX capability MSR that concern Intel PT and that the processor does not have: a
/// control may be 1 in the guest but not on the processor, or must be 1 on the processor but not in
/// the guest.
template <class Control, class Word>
constexpr auto excess(Word guest, Word host) noexcept -> uint64_t {
    uint64_t const pt = low_bits(32) & ~uint64_t{ptspec::detail::bits_of_kind<uint32_t>(
                                           typename Control::layout::rows{}, row_kind::other)};
    return (guest.raw & ~host.raw & pt << 32) | (host.raw & ~guest.raw & pt);
}

/// Leaf 14H.
template <class Capabilities, class Found>
constexpr void find_unhonourable_leaf_14(Capabilities const& host, Capabilities const& guest,
                                         Found& found) noexcept {
    using namespace reg;
    using ecx = cpuid_14h_0_ecx;
    using eax_1 = cpuid_14h_1_eax;
    using ebx_1 = cpuid_14h_1_ebx;
    uint32_t const max_subleaf = guest.leaf_14_0_eax.raw;
    report<cpuid_14h_0_eax>(
        found, lowest_bit<cpuid_14h_0_eax::MaxSubleaf>(max_subleaf > host.leaf_14_0_eax.raw),
        rule::PRG_174);
    report<cpuid_14h_0_ebx>(found,
                            guest.leaf_14_0_ebx.raw & ~(host.leaf_14_0_ebx.raw & offered_features),
                            rule_of_feature);
    uint32_t const outputs = host.leaf_14_0_ecx.with(ecx::FABRIC{false}, ecx::LIP{false}).raw &
                             ~ecx::reserved_mask();
    auto const wanted = guest.leaf_14_0_ecx.with(ecx::LIP{false},
                                                 ecx::MENTRY{guest.has_topa_of_many_entries()});
    report<ecx>(found, wanted.raw & ~outputs, rule_of_output);
    report<ecx>(found, lowest_bit<ecx::LIP>(guest.ip_payload() != host.ip_payload()),
                rule::PRG_174);
    if (max_subleaf == 0) { return; }
    bool const has_ranges = guest.has_ip_filtering();
    report<eax_1>(found,
                  lowest_bit<eax_1::RANGECNT>(has_ranges &&
                                              guest.leaf_14_1_eax.template get<eax_1::RANGECNT>() >
                                                  host.address_ranges()),
                  rule::REG_014);
    report<eax_1>(found,
                  guest.leaf_14_1_eax.reserved_bits_set() |
                      lowest_bit<eax_1::TRIGGER_CFG_CNT>(
                          guest.leaf_14_1_eax.template get<eax_1::TRIGGER_CFG_CNT>() != 0),
                  rule::PRG_174);
    report<eax_1>(found,
                  uint64_t{guest.mtc_periods() & ~host.mtc_periods()} << eax_1::MTC_PERIODS::lsb,
                  rule::REG_028);
    report<ebx_1>(found,
                  (guest.cyc_thresholds() & ~host.cyc_thresholds()) |
                      uint64_t{guest.psb_periods() & ~host.psb_periods()}
                          << ebx_1::PSB_PERIODS::lsb,
                  rule::REG_028);
    report<cpuid_14h_1_ecx>(found, guest.leaf_14_1_ecx.raw, rule::PRG_174);
}

/// The bits of leaf 14H that a guest lacks, although it can use what they enumerate.
///
/// Source: REG-032, OUT-067.
template <class Capabilities, class Found>
constexpr void find_hidden(Capabilities const& host, Capabilities const& guest,
                           Found& found) noexcept {
    using ebx = reg::cpuid_14h_0_ebx;
    using ecx = reg::cpuid_14h_0_ecx;
    auto const report_hidden = [&](unhonourable one) {
        one.is_hidden = true;
        found(one);
    };
    bool const has_ptwrite = guest.has_pt() && guest.leaf_14_0_ebx.template get<ebx::PTWRITE>();
    bool const executes = host.has_pt() && host.leaf_14_0_ebx.template get<ebx::PTWRITE>();
    bool const has_tables = guest.has_pt() && guest.supports(cpu::output_scheme::topa);
    report<ebx>(report_hidden, lowest_bit<ebx::PTWRITE>(executes && !has_ptwrite), rule::REG_032);
    report<ecx>(report_hidden,
                lowest_bit<ecx::MENTRY>(has_tables && !guest.has_topa_of_many_entries() &&
                                        host.has_pt() && host.has_topa_of_many_entries()),
                rule::OUT_067);
}

/// The capability MSRs of a guest with nested VMX operation.
template <class Capabilities, class Found>
constexpr void find_unhonourable_vmx(Capabilities const& host, Capabilities const& guest,
                                     Found& found) noexcept {
    using namespace reg;
    if (guest.vmx() == cpu::vmx_support::none) { return; }
    report<ia32_vmx_misc>(found,
                          lowest_bit<ia32_vmx_misc::INTEL_PT>(host.vmx() == cpu::vmx_support::none),
                          rule::REG_132);
    report<ia32_vmx_procbased_ctls2>(
        found,
        excess<vmcs_secondary_proc_ctls>(guest.vmx_procbased_ctls2, host.vmx_procbased_ctls2),
        rule::REG_135);
    report<ia32_vmx_exit_ctls>(
        found, excess<vmcs_vmexit_ctls>(guest.vmx_exit_ctls, host.vmx_exit_ctls), rule::REG_135);
    report<ia32_vmx_entry_ctls>(
        found, excess<vmcs_vmentry_ctls>(guest.vmx_entry_ctls, host.vmx_entry_ctls), rule::REG_135);
}

/// PT state in XSAVES.
template <class Capabilities, class Found>
constexpr void find_unhonourable_xsaves(Capabilities const& host, Capabilities const& guest,
                                        Found& found) noexcept {
    using namespace reg;
    if (!guest.has_xsaves_state()) { return; }
    if (!host.has_xsaves_state()) {
        return report<cpuid_0dh_1_ecx>(found, lowest_bit<cpuid_0dh_1_ecx::PT_STATE>(true),
                                       rule::REG_140);
    }
    report<cpuid_0dh_8_eax>(
        found, lowest_bit<cpuid_0dh_8_eax::Size>(guest.leaf_0d_8_eax != host.leaf_0d_8_eax),
        rule::REG_140);
    report<cpuid_0dh_8_ecx>(found, guest.leaf_0d_8_ecx.raw ^ host.leaf_0d_8_ecx.raw, rule::REG_140);
}

}  // namespace detail

/// Calls `found` with every bit of a guest's CPUID answers, and of its VMX capability MSRs, that a
/// processor cannot honour, for example where a guest is restored or user space sets its CPUID. No
/// policy is assumed: a VMM may support less. Encodings and ranges count only with the bit that
/// enumerates them.
///
/// Bits that the guest lacks are reported with `is_hidden` where the processor does not enforce it:
/// PTWRITE, which executes without #UD; MENTRY with guest-physical output, because the processor
/// follows tables of many entries. Shadow tables do not.
///
/// Errors: REG-001 the processor has no Intel PT: leaf 14H, the widths of addresses and PEBS are
///         then not compared; REG-121 it has none in VMX operation; REG-014, REG-024..036 an access
///         of the guest would fault; OUT-067 tables of many regions; REG-070, REG-076 wider
///         addresses; REG-140 PT state in XSAVES; REG-132, REG-135 nested VMX operation; REG-200
///         PEBS output; PRG-174 LIP, and what no VMM can offer: output to the trace transport
///         subsystem, trigger tracing, reserved bits, further sub-leaves.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-164,
///         REG-166, PRG-173, PRG-174.
template <same_as<capabilities> Capabilities, callable<unhonourable> Found>
constexpr void find_unhonourable(Capabilities const& host, Capabilities const& guest,
                                 Found&& found) noexcept {
    using namespace reg;
    using detail::lowest_bit, detail::report;
    using widths = cpuid_80000008h_eax;
    using pebs = ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL;
    detail::find_unhonourable_xsaves(host, guest, found);
    detail::find_unhonourable_vmx(host, guest, found);
    detail::find_hidden(host, guest, found);
    if (!guest.has_pt()) { return; }
    auto const pt = lowest_bit<cpuid_07h_0_ebx::INTEL_PT>(true);
    if (!host.has_pt()) { return report<cpuid_07h_0_ebx>(found, pt, rule::REG_001); }
    bool const in_vmx = host.vmx() != cpu::vmx_support::none;
    report<cpuid_07h_0_ebx>(found, in_vmx ? 0 : pt, rule::REG_121);
    detail::find_unhonourable_leaf_14(host, guest, found);
    report<widths>(
        found,
        lowest_bit<widths::MAXPHYADDR>(guest.max_phys_addr().bits > host.max_phys_addr().bits),
        rule::REG_070);
    report<widths>(
        found,
        lowest_bit<widths::LinearBits>(guest.linear_address_bits() > host.linear_address_bits()),
        rule::REG_076);
    report<ia32_perf_capabilities>(found,
                                   lowest_bit<pebs>(guest.perf_capabilities.template get<pebs>() &&
                                                    !host.perf_capabilities.template get<pebs>()),
                                   rule::REG_200);
}

}  // namespace ptspec::vmx
