// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/reg/xsave.hpp>

/// XSAVES and XRSTORS of component 8, the state of Intel PT.
///
/// RFBM[8] is assumed to be 1: the instruction mask selects the component, and IA32_XSS enables it.
namespace ptspec::access {

using reg::xsave_pt_state;

namespace detail {

/// Calls `each` with the index and the image's value of every MSR of the component except CTL. CTL
/// is handled separately: it is saved first and restored last.
template <class Each>
constexpr void for_each_msr_except_ctl(xsave_pt_state const& image, Each&& each) noexcept {
    using area = xsave_pt_state;
    each(ia32_rtit_output_base::address, image.get<area::IA32_RTIT_OUTPUT_BASE>().raw);
    each(ia32_rtit_output_mask_ptrs::address, image.get<area::IA32_RTIT_OUTPUT_MASK_PTRS>().raw);
    each(ia32_rtit_status::address, image.get<area::IA32_RTIT_STATUS>().raw);
    each(ia32_rtit_cr3_match::address, image.get<area::IA32_RTIT_CR3_MATCH>().raw);
    each(ia32_rtit_addr::address(0, range_end::a), image.get<area::IA32_RTIT_ADDR0_A>().raw);
    each(ia32_rtit_addr::address(0, range_end::b), image.get<area::IA32_RTIT_ADDR0_B>().raw);
    each(ia32_rtit_addr::address(1, range_end::a), image.get<area::IA32_RTIT_ADDR1_A>().raw);
    each(ia32_rtit_addr::address(1, range_end::b), image.get<area::IA32_RTIT_ADDR1_B>().raw);
}

}  // namespace detail

// ------------------------------------------------------------------------------------ XSAVES

struct xsaves_result {
    xsave_pt_state image{};
    msr_state state{};  ///< the new state: TraceEn is 0
};

/// The effect of XSAVES: the stored image and the new state. Where the instruction faults midway,
/// the old state remains: TraceEn gets its old value back.
///
/// Source: SDM vol. 1, "Operation of XSAVES"; REG-141, REG-142.
[[nodiscard]] constexpr auto xsaves(capabilities const& caps, msr_state const& now) noexcept
    -> xsaves_result {
    using area = xsave_pt_state;
    auto const after = detail::disabled(now);
    auto const msr_or_zero = [&](uint32_t index) {
        return detail::rule_of_absence(caps, index) == rule::none ? value_of(after, index) : 0;
    };
    auto const addr_or_zero = [&](unsigned n, range_end end) {
        return wrapped{msr_or_zero(ia32_rtit_addr::address(n, end))};
    };
    return {xsave_pt_state{}.with(
                area::IA32_RTIT_CTL{now.ctl},
                area::IA32_RTIT_OUTPUT_BASE{wrapped{msr_or_zero(ia32_rtit_output_base::address)}},
                area::IA32_RTIT_OUTPUT_MASK_PTRS{
                    wrapped{msr_or_zero(ia32_rtit_output_mask_ptrs::address)}},
                area::IA32_RTIT_STATUS{after.status},
                area::IA32_RTIT_CR3_MATCH{wrapped{msr_or_zero(ia32_rtit_cr3_match::address)}},
                area::IA32_RTIT_ADDR0_A{addr_or_zero(0, range_end::a)},
                area::IA32_RTIT_ADDR0_B{addr_or_zero(0, range_end::b)},
                area::IA32_RTIT_ADDR1_A{addr_or_zero(1, range_end::a)},
                area::IA32_RTIT_ADDR1_B{addr_or_zero(1, range_end::b)}),
            after};
}

/// True for an image that XSAVES may mark as initial in XSTATE_BV: all 0, except that LowerMask may
/// be all ones.
///
/// Source: REG-147.
[[nodiscard]] constexpr auto is_initial(xsave_pt_state const& image) noexcept -> bool {
    bool initial = image.get<xsave_pt_state::IA32_RTIT_CTL>().raw == 0;
    detail::for_each_msr_except_ctl(image, [&](uint32_t index, uint64_t value) {
        initial = initial && (value == 0 || (index == ia32_rtit_output_mask_ptrs::address &&
                                             value == ia32_rtit_output_mask_ptrs::forced_1_mask()));
    });
    return initial;
}

// ------------------------------------------------------------------------------------ XRSTORS

/// Checks the header of an XSAVE area, which XRSTORS does before it loads component 8.
///
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-148.
[[nodiscard]] constexpr auto check_header(reg::xsave_header_xstate_bv present,
                                          reg::xsave_header_xcomp_bv format,
                                          reg::ia32_xss allowed) noexcept -> verdict {
    using xcomp = reg::xsave_header_xcomp_bv;
    bool const compacted = format.get<xcomp::Compacted>();
    bool const inside = (present.raw & ~format.raw) == 0;
    bool const enabled = !format.get<xcomp::PT>() || allowed.get<reg::ia32_xss::PT_STATE>();
    return compacted && inside && enabled ? verdict{}
                                          : verdict{outcome::general_protection, rule::REG_148};
}

struct xrstors_result {
    access::effect effect{};        ///< where XRSTORS faults, the state is unchanged
    uint32_t refused_msr = 0;       ///< the MSR whose quadword was refused, or 0
    rule why_refused = rule::none;  ///< the rule that a WRMSR of that quadword breaks

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(effect); }
};

namespace detail {

constexpr auto refused(msr_state const& now, rule why) noexcept -> effect {
    return {.verdict = {outcome::general_protection, why}, .state = now};
}

/// The rule by which XRSTORS refuses a quadword, or none. A zero for an MSR that the processor
/// lacks is skipped.
///
/// Source: REG-144.
constexpr auto broken_rule_of_quadword(capabilities const& caps, msr_state const& now,
                                       uint32_t index, uint64_t value, policy const& how) noexcept
    -> rule {
    auto const absent = rule_of_absence(caps, index);
    if (absent != rule::none) { return value == 0 ? rule::none : absent; }
    return broken_rule(caps, now, index, value, how);
}

}  // namespace detail

/// The effect of XRSTORS: every quadword is checked like a WRMSR, and TraceEn is written last.
/// `code` describes the context that runs when TraceEn becomes 1.
///
/// Errors: REG-143 while TraceEn is 1; REG-144 for a quadword that is refused, or reserved bytes
///         that are not 0. Then no MSR changes (a processor may have loaded some; TraceEn is 0).
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-143..145.
[[nodiscard]] constexpr auto xrstors(capabilities const& caps, msr_state const& now,
                                     xsave_pt_state const& image, context const& code = {},
                                     policy const& how = {}) noexcept -> xrstors_result {
    if (now.ctl.get<ia32_rtit_ctl::TraceEn>()) { return {detail::refused(now, rule::REG_143)}; }
    if (!image.reserved_quadwords_are_zero()) { return {detail::refused(now, rule::REG_144)}; }
    auto const ctl = image.get<xsave_pt_state::IA32_RTIT_CTL>();
    uint32_t refused_msr = ia32_rtit_ctl::address;
    rule why = detail::broken_rule_of_quadword(caps, now, refused_msr, ctl.raw, how);
    auto next = now;
    detail::for_each_msr_except_ctl(image, [&](uint32_t index, uint64_t value) {
        if (why != rule::none) { return; }
        refused_msr = index;
        why = detail::broken_rule_of_quadword(caps, now, index, value, how);
        if (detail::rule_of_absence(caps, index) == rule::none) {
            next = detail::store(next, index, value);
        }
    });
    if (why != rule::none) { return {detail::refused(now, rule::REG_144), refused_msr, why}; }
    return {detail::write_ctl(caps, next, ctl, code)};
}

/// The effect of XRSTORS where XSTATE_BV[8] is 0: the component gets its initial configuration.
///
/// Errors: REG-143 while TraceEn is 1.
/// Source: REG-143, REG-146.
[[nodiscard]] constexpr auto xrstors_init(msr_state const& now) noexcept -> xrstors_result {
    if (now.ctl.get<ia32_rtit_ctl::TraceEn>()) { return {detail::refused(now, rule::REG_143)}; }
    msr_state const initial{};
    auto next = now;
    next.ctl = initial.ctl;
    next.output = initial.output;
    next.status = initial.status;
    next.cr3_match = initial.cr3_match;
    next.addr[0] = initial.addr[0];
    next.addr[1] = initial.addr[1];
    return {effect{.state = next}};
}

}  // namespace ptspec::access
