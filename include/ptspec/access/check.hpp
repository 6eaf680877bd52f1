// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/legal.hpp>
#include <ptspec/access/pt_msr_rows.hpp>
#include <ptspec/base/attribute.hpp>

/// Whether an RDMSR or a WRMSR faults, and by which rule.
namespace ptspec::access {

enum class outcome : uint8_t {
    allowed,
    general_protection,  ///< the access raises #GP(0) and changes nothing
    not_covered,         ///< not a covered MSR (`is_covered_msr`): the caller handles it
};

/// The outcome of an access and, where it faults, the most specific rule that it breaks.
struct verdict {
    outcome what = outcome::allowed;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return what == outcome::allowed; }
    friend constexpr auto operator==(verdict const&, verdict const&) -> bool = default;
};

namespace detail {

using namespace ptspec::detail;

/// Source: REG-121.
constexpr auto is_disallowed_in_vmx(capabilities const& caps, msr_state const& state,
                                    ia32_rtit_ctl value, policy const& policy) noexcept -> bool {
    return state.in_vmx_operation && caps.vmx() == cpu::vmx_support::none &&
           (!policy.only_enabling_faults_in_vmx || value.get<ia32_rtit_ctl::TraceEn>());
}

/// The TraceEn bit, where it is 1 before and after the write; else 0.
///
/// Source: REG-021.
constexpr auto staying_enabled(msr_state const& state, ia32_rtit_ctl value) noexcept -> uint64_t {
    return state.ctl.raw & value.raw & detail::field_mask<ia32_rtit_ctl::TraceEn>;
}

template <class Found>
constexpr void find_broken_rules(capabilities const& caps, msr_state const& state,
                                 ia32_rtit_ctl value, policy const& policy,
                                 Found&& found) noexcept {
    if (is_disallowed_in_vmx(caps, state, value, policy)) { found(rule::REG_121); }
    if (value == state.ctl) { return; }  // REG-020
    access::detail::find_broken(access::detail::rules::of_ctl{}, caps, value, found);
    if (staying_enabled(state, value) != 0) { found(rule::REG_021); }
    access::detail::find_broken(access::detail::rules::of_trace_en{}, caps, value, found);
}

/// Source: REG-007, REG-203, REG-204.
template <class Word, class Found>
constexpr void find_broken_rules_of_global_status(capabilities const& caps, Word value,
                                                  Found&& found) noexcept {
    bool const has_topa = caps.has_pt() && caps.supports(cpu::output_scheme::topa);
    bool const has_arch_pebs =
        caps.perf_capabilities.get<reg::ia32_perf_capabilities::PEBS_FMT>() == 0xF;
    bool const reserved = value.reserved_bits_set() != 0 ||
                          (value.template get<typename Word::ArchPebsThresh>() && !has_arch_pebs);
    if (value.template get<typename Word::Trace_ToPA_PMI>() && !has_topa) {
        found(rule::REG_204);
    } else if (reserved) {
        found(rule::REG_006);
    }
}

/// Source: REG-140.
template <class Found>
constexpr void find_broken_rules_of_xss(capabilities const& caps, reg::ia32_xss value,
                                        Found&& found) noexcept {
    if (value.get<reg::ia32_xss::PT_STATE>() && !caps.has_xsaves_state()) { found(rule::REG_140); }
}

/// True if a value of a listed MSR other than CTL breaks no rule by itself.
///
/// always_inline: without it a check has 760 bytes more (g++ -Os).
template <class Row, class... Rest>
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto is_legal(type_list<Row, Rest...>, capabilities const& caps, uint32_t index,
                        uint64_t value) noexcept -> bool {
    if constexpr (sizeof...(Rest) != 0) {
        if (index - Row::first >= Row::count) {
            return is_legal(type_list<Rest...>{}, caps, index, value);
        }
    }
    return access::is_legal(caps, typename Row::word{value});
}
/// Calls `found` with every rule that such a value breaks.
///
/// always_inline: as `is_legal`.
template <class Row, class... Rest, class Found>
PTSPEC_ATTRIBUTE(always_inline)
constexpr void find_broken_rules(type_list<Row, Rest...>, capabilities const& caps, uint32_t index,
                                 uint64_t value, Found&& found) noexcept {
    if constexpr (sizeof...(Rest) != 0) {
        if (index - Row::first >= Row::count) {
            return find_broken_rules(type_list<Rest...>{}, caps, index, value, found);
        }
    }
    access::find_broken_rules(caps, typename Row::word{value}, found);
}

}  // namespace detail

// ------------------------------------------------------------------------------------ WRMSR

/// Calls `found` with every rule by which a WRMSR at CPL 0 raises #GP, the most specific first. A
/// write of an MSR that is not covered breaks none.
///
/// Source: REG-001, REG-004, REG-006, REG-012..015, REG-017, REG-020..044, REG-050..055,
///         REG-070..076, REG-121, REG-140, REG-203, REG-204.
template <callable<rule> Found>
constexpr void find_broken_rules(capabilities const& caps, msr_state const& state, msr_index index,
                                 uint64_t value, policy const& policy, Found&& found) noexcept {
    if (auto const absent = detail::rule_of_absence(caps, index); absent != rule::none) {
        return found(absent);
    }
    if (index == ia32_rtit_ctl::address) {
        return detail::find_broken_rules(caps, state, ia32_rtit_ctl{value}, policy, found);
    }
    if (is_pt_msr(index)) {
        if (state.ctl.get<ia32_rtit_ctl::TraceEn>()) { found(rule::REG_004); }
        return detail::find_broken_rules(detail::rows::other_than_ctl{}, caps, index.value, value,
                                         found);
    }
    switch (index.value) {
        case reg::ia32_perf_global_status::address: return found(rule::REG_203);
        case reg::ia32_perf_global_status_reset::address:
            return detail::find_broken_rules_of_global_status(
                caps, reg::ia32_perf_global_status_reset{value}, found);
        case reg::ia32_perf_global_status_set::address:
            return detail::find_broken_rules_of_global_status(
                caps, reg::ia32_perf_global_status_set{value}, found);
        case reg::ia32_xss::address:
            return detail::find_broken_rules_of_xss(caps, reg::ia32_xss{value}, found);
        case reg::ia32_debugctl::address:
            if (reg::ia32_debugctl{value}.reserved_bits_set() != 0) { found(rule::REG_006); }
            return;
        default: return;
    }
}

/// The most specific rule by which a WRMSR at CPL 0 raises #GP.
///
/// noinline: without it a check whose rule is unused takes 4.7 times as long.
PTSPEC_ATTRIBUTE(noinline) PTSPEC_ATTRIBUTE(pure) [[nodiscard]]
constexpr auto broken_rule(capabilities const& caps, msr_state const& state, msr_index index,
                           uint64_t value, policy const& policy = {}) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, state, index, value, policy, first);
    return first.broken;
}

/// True when a WRMSR at CPL 0 raises #GP.
///
/// always_inline: one test of a mask if the capabilities are constant, 43 instructions, not 79.
PTSPEC_ATTRIBUTE(always_inline) [[nodiscard]]
constexpr auto write_faults(capabilities const& caps, msr_state const& state, msr_index index,
                            uint64_t value, policy const& policy = {}) noexcept -> bool {
    if (!is_pt_msr(index)) { return broken_rule(caps, state, index, value, policy) != rule::none; }
    if (detail::rule_of_absence(caps, index) != rule::none) { return true; }
    if (index == ia32_rtit_ctl::address) {
        ia32_rtit_ctl const ctl{value};
        return detail::is_disallowed_in_vmx(caps, state, ctl, policy) ||
               (ctl != state.ctl &&
                (detail::staying_enabled(state, ctl) != 0 || !access::is_legal(caps, ctl)));
    }
    if (state.ctl.get<ia32_rtit_ctl::TraceEn>()) { return true; }
    return !detail::is_legal(detail::rows::other_than_ctl{}, caps, index.value, value);
}

/// Checks whether a WRMSR raises #GP, and by which rule.
///
/// Errors: `general_protection` with the rule; nothing is written. `not_covered` for other MSRs.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR" and the sections after it; REG-002, REG-009 and the
///         rules of `find_broken_rules`.
///
/// always_inline: as `write_faults`; 58 instructions, not 416 (clang 19).
PTSPEC_ATTRIBUTE(always_inline) [[nodiscard]]
constexpr auto check_write(capabilities const& caps, msr_state const& state, msr_index index,
                           uint64_t value, unsigned cpl = 0, policy const& policy = {}) noexcept
    -> verdict {
    if (!is_covered_msr(index)) { return {outcome::not_covered}; }
    if (cpl != 0) { return {outcome::general_protection, rule::REG_002}; }
    if (!write_faults(caps, state, index, value, policy)) { return {}; }
    return {outcome::general_protection, broken_rule(caps, state, index, value, policy)};
}

// ------------------------------------------------------------------------------------ RDMSR

/// Checks whether an RDMSR raises #GP, and by which rule. It does not depend on TraceEn.
///
/// Errors: `general_protection` with the rule; `not_covered` for other MSRs.
/// Source: REG-001, REG-002, REG-011..017.
[[nodiscard]] constexpr auto check_read(capabilities const& caps, msr_index index,
                                        unsigned cpl = 0) noexcept -> verdict {
    if (!is_covered_msr(index)) { return {outcome::not_covered}; }
    if (cpl != 0) { return {outcome::general_protection, rule::REG_002}; }
    auto const absent = detail::rule_of_absence(caps, index);
    return absent == rule::none ? verdict{} : verdict{outcome::general_protection, absent};
}

}  // namespace ptspec::access

#undef PTSPEC_ATTRIBUTE
