// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/reg/rtit_cr3_match.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/rule.hpp>

/// Which register values a processor accepts, by what CPUID enumerates. The state of the processor
/// is not considered here; check.hpp does.
namespace ptspec::access {

using cpu::capabilities;
using cpu::output_scheme;
using reg::ia32_rtit_addr;
using reg::ia32_rtit_cr3_match;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_status;

namespace detail {

using namespace ptspec::detail;

/// Fields that must be 0 where a bit of a capability leaf is 0.
template <auto Leaf, class Bit, rule Broken, class... Fields>
struct gate {
    static constexpr uint64_t mask = (... | field_mask<Fields>);
    static constexpr rule broken = Broken;
    static constexpr auto is_open(capabilities const& caps) noexcept -> bool {
        return (caps.*Leaf).template get<Bit>();
    }
};

template <class Bit, rule Broken, class... Fields>
using ebx_gate = gate<&capabilities::leaf_14_0_ebx, Bit, Broken, Fields...>;
template <class Bit, rule Broken, class... Fields>
using ecx_gate = gate<&capabilities::leaf_14_0_ecx, Bit, Broken, Fields...>;

namespace gates {

using ctl = ia32_rtit_ctl;
using ebx = reg::cpuid_14h_0_ebx;
using ecx = reg::cpuid_14h_0_ecx;
using status = ia32_rtit_status;

/// Source: REG-024, REG-026, REG-027, REG-030..036.
using of_ctl = type_list<                                 //
    ecx_gate<ecx::TOPAOUT, rule::REG_024, ctl::ToPA>,     //
    ecx_gate<ecx::FABRIC, rule::REG_026, ctl::FabricEn>,  //
    ebx_gate<ebx::CPSB_CAM, rule::REG_027, ctl::CYCEn, ctl::CycThresh, ctl::PSBFreq>,
    ebx_gate<ebx::MTC, rule::REG_030, ctl::MTCEn, ctl::MTCFreq>,  //
    ebx_gate<ebx::CR3FILTER, rule::REG_031, ctl::CR3Filter>,      //
    ebx_gate<ebx::PTWRITE, rule::REG_032, ctl::PTWEn, ctl::FUPonPTW>,
    ebx_gate<ebx::PWR_EVT, rule::REG_033, ctl::PwrEvtEn>,  //
    ebx_gate<ebx::INJECTPSBPMI, rule::REG_034, ctl::InjectPsbPmiOnEnable>,
    ebx_gate<ebx::EVENT_TRACE, rule::REG_035, ctl::EventEn>,  //
    ebx_gate<ebx::TNT_DIS, rule::REG_036, ctl::DisTNT>>;

/// Source: REG-054, REG-055.
using of_status = type_list<  //
    ebx_gate<ebx::INJECTPSBPMI, rule::REG_054, status::PendPSB, status::PendToPAPMI>,
    ebx_gate<ebx::CPSB_CAM, rule::REG_055, status::PacketByteCnt>>;

}  // namespace gates

template <class... Gates>
#if defined(__GNUC__)
[[gnu::always_inline]]  // constant capabilities fold to a constant, at -Os too
#endif
constexpr auto
closed_bits(type_list<Gates...>, capabilities const& caps) noexcept -> uint64_t {
    return (uint64_t{0} | ... | (Gates::is_open(caps) ? 0 : Gates::mask));
}

/// Calls `found` with the rule of every closed gate whose fields `raw` sets.
template <class... Gates, class Found>
constexpr void find_closed(type_list<Gates...>, capabilities const& caps, uint64_t raw,
                           Found&& found) noexcept {
    ((!Gates::is_open(caps) && (raw & Gates::mask) != 0 ? found(Gates::broken) : void()), ...);
}

/// ADDR0_CFG to ADDR3_CFG, four bits each. `addr_cfg_lowest` has the lowest bit of each.
inline constexpr uint64_t addr_cfg_bits = field_mask<ia32_rtit_ctl::ADDR0_CFG> |
                                          field_mask<ia32_rtit_ctl::ADDR1_CFG> |
                                          field_mask<ia32_rtit_ctl::ADDR2_CFG> |
                                          field_mask<ia32_rtit_ctl::ADDR3_CFG>;
inline constexpr uint64_t addr_cfg_lowest = addr_cfg_bits / 15;

/// The bits of ADDRn_CFG that encodings 0 to 2 use, for the ranges that exist.
///
/// Source: REG-037.
constexpr auto usable_addr_cfg(capabilities const& caps) noexcept -> uint64_t {
    return addr_cfg_lowest * 3 & ~(addr_cfg_bits << 4 * caps.address_ranges());
}

/// Not 0 when the two low bits of any ADDRn_CFG are 3. Tests all four in parallel.
constexpr auto bits_of_addr_cfg_3(ia32_rtit_ctl value) noexcept -> uint64_t {
    return value.raw & value.raw >> 1 & addr_cfg_lowest;
}

/// Source: REG-028, REG-029.
#if defined(__GNUC__)
[[gnu::always_inline]]  // constant capabilities fold to constants
#endif
constexpr auto
has_listed_encodings(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
    return (caps.mtc_periods() >> value.get<ia32_rtit_ctl::MTCFreq>() & 1U) != 0 &&
           (caps.cyc_thresholds() >> value.get<ia32_rtit_ctl::CycThresh>() & 1U) != 0 &&
           (caps.psb_periods() >> value.get<ia32_rtit_ctl::PSBFreq>() & 1U) != 0;
}

/// Source: REG-025.
constexpr auto lacks_an_output(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
    return !caps.supports(output_scheme::single_range) && value.get<ia32_rtit_ctl::TraceEn>() &&
           !value.get<ia32_rtit_ctl::ToPA>() && !value.get<ia32_rtit_ctl::FabricEn>();
}

/// Source: REG-040.
constexpr auto lacks_branches(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
    return !caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::MTC>() &&
           value.get<ia32_rtit_ctl::TraceEn>() && !value.get<ia32_rtit_ctl::BranchEn>();
}

}  // namespace detail

// ------------------------------------------------------------------------------------ CTL

/// The bits of IA32_RTIT_CTL that can be 1 on a processor. A field of several bits may accept only
/// some of its encodings.
///
/// Source: REG-024, REG-026, REG-027, REG-030..037, REG-039, REG-044.
#if defined(__GNUC__)
[[gnu::always_inline]]  // constant capabilities fold to a constant
#endif
[[nodiscard]] constexpr auto
writable_ctl_mask(capabilities const& caps) noexcept -> uint64_t {
    return ~(ia32_rtit_ctl::reserved_mask() | detail::closed_bits(detail::gates::of_ctl{}, caps) |
             detail::addr_cfg_bits) |
           detail::usable_addr_cfg(caps);
}

namespace detail {

/// Finds what no write may set, whatever value TraceEn has.
template <class Found>
constexpr void find_unwritable(capabilities const& caps, ia32_rtit_ctl value,
                               Found&& found) noexcept {
    if (value.reserved_bits_set() != 0) { found(rule::REG_044); }
    find_closed(gates::of_ctl{}, caps, value.raw, found);
    uint64_t const writable = writable_ctl_mask(caps);
    if ((value.raw & addr_cfg_bits & ~writable) != 0 || bits_of_addr_cfg_3(value) != 0) {
        found(rule::REG_037);
    }
    if (!has_listed_encodings(caps, ia32_rtit_ctl{value.raw & writable})) { found(rule::REG_028); }
}

/// Finds what TraceEn = 1 requires and `value` lacks.
template <class Found>
constexpr void find_lacking(capabilities const& caps, ia32_rtit_ctl value, Found&& found) noexcept {
    if (lacks_an_output(caps, value)) { found(rule::REG_025); }
    if (lacks_branches(caps, value)) { found(rule::REG_040); }
}

}  // namespace detail

/// Calls `found` with every rule that a value of IA32_RTIT_CTL breaks by itself, whatever the
/// processor's state: reserved bits and features first, then encodings, then what TraceEn needs.
///
/// Source: REG-024..028, REG-030..037, REG-040, REG-044.
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_ctl value,
                                 Found&& found) noexcept {
    detail::find_unwritable(caps, value, found);
    detail::find_lacking(caps, value, found);
}

namespace detail {

/// True when a value of IA32_RTIT_CTL breaks a rule by itself, or when a bit of `more` is set. One
/// test of a mask covers all rules about single bits.
#if defined(__GNUC__)
[[gnu::always_inline]]  // constant capabilities fold to one test of a mask
#endif
constexpr auto
breaks_a_rule(capabilities const& caps, ia32_rtit_ctl value, uint64_t more) noexcept -> bool {
    uint64_t const unwritable = value.raw & ~writable_ctl_mask(caps);
    return (unwritable | bits_of_addr_cfg_3(value) | more) != 0 ||
           !has_listed_encodings(caps, value) || lacks_an_output(caps, value) ||
           lacks_branches(caps, value);
}

}  // namespace detail

/// True when a value of IA32_RTIT_CTL breaks no rule by itself.
[[nodiscard]] constexpr auto is_legal(capabilities const& caps, ia32_rtit_ctl value) noexcept
    -> bool {
    return !detail::breaks_a_rule(caps, value, 0);
}

// ------------------------------------------------------------------------------------ the others

/// The bits of IA32_RTIT_STATUS that raise #GP when written as 1.
///
/// Source: REG-052, REG-054, REG-055.
[[nodiscard]] constexpr auto faulting_status_mask(capabilities const& caps) noexcept -> uint64_t {
    return ia32_rtit_status::reserved_mask() |
           detail::closed_bits(detail::gates::of_status{}, caps);
}

template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_status value,
                                 Found&& found) noexcept {
    if (value.reserved_bits_set() != 0) { found(rule::REG_052); }
    detail::find_closed(detail::gates::of_status{}, caps, value.raw, found);
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
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_output_base value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_070); }
}

/// Source: REG-074.
[[nodiscard]] constexpr auto is_legal(capabilities const&, ia32_rtit_cr3_match value) noexcept
    -> bool {
    return value.reserved_bits_set() == 0;
}
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_cr3_match value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_074); }
}

/// Source: REG-076.
[[nodiscard]] constexpr auto is_legal(capabilities const& caps, ia32_rtit_addr value) noexcept
    -> bool {
    return is_canonical(value.raw, caps.linear_address_bits());
}
template <class Found>
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
template <class Found>
constexpr void find_broken_rules(capabilities const&, reg::ia32_rtit_output_mask_ptrs,
                                 Found&&) noexcept {}

/// The most specific rule that a value breaks by itself.
template <class Word>
[[nodiscard]] constexpr auto broken_rule(capabilities const& caps, Word value) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, value, first);
    return first.found;
}

}  // namespace ptspec::access
