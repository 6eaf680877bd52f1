// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/reg/rtit_cr3_match.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/base/rule.hpp>
#include <ptspec/base/attribute.hpp>

/// Checks register values against the features that CPUID enumerates. The state of the processor is
/// not considered here; check.hpp considers it.
namespace ptspec::access {

using cpu::capabilities;
using cpu::output_scheme;
using reg::ia32_rtit_addr;
using reg::ia32_rtit_cr3_match;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_status;

/// True if IA32_RTIT_CTL selects single-range output and the processor does not support it.
///
/// Source: REG-025.
[[nodiscard]] constexpr auto lacks_single_range(capabilities const& caps,
                                                ia32_rtit_ctl value) noexcept -> bool {
    return !caps.supports(output_scheme::single_range) && !value.get<ia32_rtit_ctl::ToPA>() &&
           !value.get<ia32_rtit_ctl::FabricEn>();
}

namespace detail {

using namespace ptspec::detail;

// Every rule about a value is a type:
//
//   broken                the number of the rule in the catalogue
//   forbidden(caps)       the bits that must be 0 on a processor with the capabilities `caps`
//   rejects(caps, value)  true if `value` breaks the rule in another way; `value` has no bit that a
//                         rule of the same list forbids
//
// Legality, the list of broken rules and the mask of writable bits are derived from lists of these
// types.
template <rule Broken>
struct value_rule {
    static constexpr rule broken = Broken;
    static constexpr auto forbidden(capabilities const&) noexcept -> uint64_t { return 0; }
    static constexpr auto rejects(capabilities const&, auto) noexcept -> bool { return false; }
};

/// Reserved bits must be 0.
template <class Word, rule Broken>
struct reserved_bits : value_rule<Broken> {
    static constexpr auto forbidden(capabilities const&) noexcept -> uint64_t {
        return Word::reserved_mask();
    }
};

/// Fields that must be 0 where a bit of a capability leaf is 0.
template <auto Leaf, class Bit, rule Broken, class... Fields>
struct gate : value_rule<Broken> {
    /// The bits of the fields that must be 0 on this processor.
    ///
    /// always_inline: without it a check takes 2.1 times as many instructions (g++ -Os).
    PTSPEC_ATTRIBUTE(always_inline)
    static constexpr auto forbidden(capabilities const& caps) noexcept -> uint64_t {
        return (caps.*Leaf).template get<Bit>() ? 0 : (... | field_mask<Fields>);
    }
};

template <class Bit, rule Broken, class... Fields>
using ebx_gate = gate<&capabilities::leaf_14_0_ebx, Bit, Broken, Fields...>;
template <class Bit, rule Broken, class... Fields>
using ecx_gate = gate<&capabilities::leaf_14_0_ecx, Bit, Broken, Fields...>;

/// ADDRn_CFG accepts the encodings 0 to 2, and only 0 if the processor lacks range n.
///
/// Source: REG-037.
struct addr_cfg_rule : value_rule<rule::REG_037> {
    /// ADDR0_CFG to ADDR3_CFG, four bits each. `lowest` has the lowest bit of each.
    static constexpr uint64_t all = field_mask<ia32_rtit_ctl::ADDR0_CFG> |
                                    field_mask<ia32_rtit_ctl::ADDR1_CFG> |
                                    field_mask<ia32_rtit_ctl::ADDR2_CFG> |
                                    field_mask<ia32_rtit_ctl::ADDR3_CFG>;
    static constexpr uint64_t lowest = all / 15;

    static constexpr auto forbidden(capabilities const& caps) noexcept -> uint64_t {
        return all & ~(lowest * 3 & ~(all << 4 * caps.address_ranges()));
    }
    /// True if a field has an encoding whose two low bits are 1. Tests all four fields in
    /// parallel.
    static constexpr auto rejects(capabilities const&, ia32_rtit_ctl value) noexcept -> bool {
        return (value.raw & value.raw >> 1 & lowest) != 0;
    }
};

/// MTCFreq, CycThresh and PSBFreq accept the encodings that CPUID lists, and 0.
///
/// Source: REG-028, REG-029.
struct frequency_rule : value_rule<rule::REG_028> {
    /// True if CPUID does not list an encoding.
    ///
    /// always_inline: without it a check takes 4 % more instructions (g++).
    PTSPEC_ATTRIBUTE(always_inline)
    static constexpr auto rejects(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
        return (caps.mtc_periods() >> value.get<ia32_rtit_ctl::MTCFreq>() & 1U) == 0 ||
               (caps.cyc_thresholds() >> value.get<ia32_rtit_ctl::CycThresh>() & 1U) == 0 ||
               (caps.psb_periods() >> value.get<ia32_rtit_ctl::PSBFreq>() & 1U) == 0;
    }
};

/// TraceEn = 1 with ToPA = 0 and FabricEn = 0 requires a processor with single-range output.
///
/// Source: REG-025.
struct output_rule : value_rule<rule::REG_025> {
    static constexpr auto rejects(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
        return lacks_single_range(caps, value) && value.get<ia32_rtit_ctl::TraceEn>();
    }
};

/// TraceEn = 1 requires BranchEn = 1 on a processor without MTC.
///
/// Source: REG-040.
struct branch_rule : value_rule<rule::REG_040> {
    static constexpr auto rejects(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
        return !caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::MTC>() &&
               value.get<ia32_rtit_ctl::TraceEn>() && !value.get<ia32_rtit_ctl::BranchEn>();
    }
};

namespace rules {

using ctl = ia32_rtit_ctl;
using ebx = reg::cpuid_14h_0_ebx;
using ecx = reg::cpuid_14h_0_ecx;
using status = ia32_rtit_status;

/// The rules for every value of IA32_RTIT_CTL, the most specific first.
///
/// Source: REG-024, REG-026..037, REG-044.
using of_ctl = type_list<                                 //
    reserved_bits<ctl, rule::REG_044>,                    //
    ecx_gate<ecx::TOPAOUT, rule::REG_024, ctl::ToPA>,     //
    ecx_gate<ecx::FABRIC, rule::REG_026, ctl::FabricEn>,  //
    ebx_gate<ebx::CPSB_CAM, rule::REG_027, ctl::CYCEn, ctl::CycThresh, ctl::PSBFreq>,
    ebx_gate<ebx::MTC, rule::REG_030, ctl::MTCEn, ctl::MTCFreq>,  //
    ebx_gate<ebx::CR3FILTER, rule::REG_031, ctl::CR3Filter>,      //
    ebx_gate<ebx::PTWRITE, rule::REG_032, ctl::PTWEn, ctl::FUPonPTW>,
    ebx_gate<ebx::PWR_EVT, rule::REG_033, ctl::PwrEvtEn>,  //
    ebx_gate<ebx::INJECTPSBPMI, rule::REG_034, ctl::InjectPsbPmiOnEnable>,
    ebx_gate<ebx::EVENT_TRACE, rule::REG_035, ctl::EventEn>,  //
    ebx_gate<ebx::TNT_DIS, rule::REG_036, ctl::DisTNT>,       //
    addr_cfg_rule, frequency_rule>;

/// The rules that apply to IA32_RTIT_CTL only if TraceEn = 1.
///
/// Source: REG-025, REG-040.
using of_trace_en = type_list<output_rule, branch_rule>;

/// Source: REG-052, REG-054, REG-055.
using of_status = type_list<  //
    reserved_bits<status, rule::REG_052>,
    ebx_gate<ebx::INJECTPSBPMI, rule::REG_054, status::PendPSB, status::PendToPAPMI>,
    ebx_gate<ebx::CPSB_CAM, rule::REG_055, status::PacketByteCnt>>;

}  // namespace rules

/// All bits that one of the rules forbids on this processor.
///
/// always_inline: without it a check takes 1.6 times as many instructions (clang 19).
template <class... Rules>
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto forbidden_bits(type_list<Rules...>, capabilities const& caps) noexcept -> uint64_t {
    return (... | Rules::forbidden(caps));
}

/// True if a value breaks a rule of the list. One mask test covers the forbidden bits of all rules.
///
/// always_inline: without it a check takes 3.1 times as many instructions (g++).
template <class... Rules, class Word>
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto breaks_any(type_list<Rules...> rules, capabilities const& caps, Word value) noexcept
    -> bool {
    return (value.raw & forbidden_bits(rules, caps)) != 0 || (... || Rules::rejects(caps, value));
}

/// Calls `found` with every rule of the list that a value breaks.
template <class... Rules, class Word, class Found>
constexpr void find_broken(type_list<Rules...> rules, capabilities const& caps, Word value,
                           Found&& found) noexcept {
    Word const allowed{value.raw & ~forbidden_bits(rules, caps)};
    ((((value.raw & Rules::forbidden(caps)) != 0 || Rules::rejects(caps, allowed))
          ? found(Rules::broken)
          : void()),
     ...);
}

}  // namespace detail

// ------------------------------------------------------------------------------------ CTL

/// The bits of IA32_RTIT_CTL that can be 1 on a processor. A field of several bits may accept only
/// some of its encodings.
///
/// Source: REG-024, REG-026, REG-027, REG-030..037, REG-039, REG-044.
[[nodiscard]] constexpr auto writable_ctl_mask(capabilities const& caps) noexcept -> uint64_t {
    return ~detail::forbidden_bits(detail::rules::of_ctl{}, caps);
}

/// Calls `found` with every rule that a value of IA32_RTIT_CTL breaks by itself, independently of
/// the processor's state: reserved bits and features first, then encodings, then the requirements
/// of TraceEn.
///
/// Source: REG-024..028, REG-030..037, REG-040, REG-044.
template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_ctl value,
                                 Found&& found) noexcept {
    detail::find_broken(detail::rules::of_ctl{}, caps, value, found);
    detail::find_broken(detail::rules::of_trace_en{}, caps, value, found);
}

/// True when a value of IA32_RTIT_CTL breaks no rule by itself.
///
/// always_inline: for the reason given at `breaks_any`.
PTSPEC_ATTRIBUTE(always_inline) [[nodiscard]]
constexpr auto is_legal(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
    return !detail::breaks_any(detail::rules::of_ctl{}, caps, value) &&
           !detail::breaks_any(detail::rules::of_trace_en{}, caps, value);
}

// ------------------------------------------------------------------------------------ others

/// The bits of IA32_RTIT_STATUS that raise #GP when written as 1.
///
/// Source: REG-052, REG-054, REG-055.
[[nodiscard]] constexpr auto faulting_status_mask(capabilities const& caps) noexcept -> uint64_t {
    return detail::forbidden_bits(detail::rules::of_status{}, caps);
}

template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_status value,
                                 Found&& found) noexcept {
    detail::find_broken(detail::rules::of_status{}, caps, value, found);
}
[[nodiscard]] constexpr auto is_legal(capabilities const& caps, ia32_rtit_status value) noexcept
    -> bool {
    return (value.raw & faulting_status_mask(caps)) == 0;
}

/// Source: REG-070, REG-071.
[[nodiscard]] constexpr auto is_legal(capabilities const& caps,
                                      ia32_rtit_output_base value) noexcept -> bool {
    return value.reserved_bits_set(caps.max_phys_addr().bits) == 0;
}
template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_output_base value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_070); }
}

/// Source: REG-074.
[[nodiscard]] constexpr auto is_legal(capabilities const&, ia32_rtit_cr3_match value) noexcept
    -> bool {
    return value.reserved_bits_set() == 0;
}
template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_cr3_match value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_074); }
}

/// Source: REG-076.
[[nodiscard]] constexpr auto is_legal(capabilities const& caps, ia32_rtit_addr value) noexcept
    -> bool {
    return is_canonical(value.raw, caps.linear_address_bits());
}
template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_addr value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_076); }
}

/// IA32_RTIT_OUTPUT_MASK_PTRS accepts every value.
///
/// Source: REG-072, REG-073.
[[nodiscard]] constexpr auto is_legal(capabilities const&, reg::ia32_rtit_output_mask_ptrs) noexcept
    -> bool {
    return true;
}
template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const&, reg::ia32_rtit_output_mask_ptrs,
                                 Found&&) noexcept {}

/// The most specific rule that a value breaks by itself.
template <class Word>
[[nodiscard]] constexpr auto broken_rule(capabilities const& caps, Word value) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, value, first);
    return first.broken;
}

}  // namespace ptspec::access

#undef PTSPEC_ATTRIBUTE
