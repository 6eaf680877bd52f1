// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>

/// XSAVES and XRSTORS of component 8, the state of Intel PT.
///
/// RFBM[8] is assumed to be 1: the instruction mask selects the component, and IA32_XSS enables it.
namespace ptspec::access {

// ------------------------------------------------------------------------------------ XSAVES

struct xsaves_result {
    xsave_pt_state image{};
    msr_state state{};  ///< the new state: TraceEn is 0
};

/// The effect of XSAVES: the stored image and the new state. Where the instruction faults midway,
/// the old state remains: TraceEn gets its old value back.
///
/// Source: SDM vol. 1, "Operation of XSAVES"; REG-141, REG-142.
[[nodiscard]] constexpr auto xsaves(capabilities const& caps, msr_state const& state) noexcept
    -> xsaves_result {
    xsaves_result result{.state = disabled(state)};
    for (pt_msr const& msr : pt_msrs) {
        if (!msr.is_saved || !exists(caps, msr.index)) { continue; }
        result.image.quadwords[msr.quadword] = value_of(result.state, msr.index);
    }
    result.image = result.image.with(xsave_pt_state::IA32_RTIT_CTL{state.ctl});
    return result;
}

/// True for an image that XSAVES may mark as initial in XSTATE_BV: all 0, except that LowerMask may
/// be all ones.
///
/// Source: REG-147.
[[nodiscard]] constexpr auto is_initial(xsave_pt_state const& image) noexcept -> bool {
    for (pt_msr const& msr : pt_msrs) {
        if (!msr.is_saved) { continue; }
        uint64_t const value = image.quadwords[msr.quadword];
        if (value != 0 && value != value_of(msr_state{}, msr.index)) { return false; }
    }
    return true;
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

/// A value that XRSTORS does not load, and the rule that a WRMSR of it breaks.
struct violation {
    msr_index msr{};  ///< 0: none
    rule broken = rule::none;

    friend constexpr auto operator==(violation, violation) -> bool = default;
};

struct xrstors_result {
    access::effect effect{};  ///< where XRSTORS faults, the state is unchanged
    violation violated{};     ///< the first quadword that was refused

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(effect); }
};

namespace detail {

constexpr auto refused(msr_state const& state, rule broken) noexcept -> effect {
    return {.verdict = {outcome::general_protection, broken}, .state = state};
}

/// The rule by which XRSTORS refuses a quadword, or none. A zero for an MSR that the processor
/// lacks is skipped.
///
/// Source: REG-144.
constexpr auto broken_rule_of_quadword(capabilities const& caps, msr_state const& state,
                                       msr_index index, uint64_t value,
                                       policy const& policy) noexcept -> rule {
    auto const absent = rule_of_absence(caps, index);
    if (absent != rule::none) { return value == 0 ? rule::none : absent; }
    return broken_rule(caps, state, index, value, policy);
}

}  // namespace detail

/// The effect of XRSTORS up to the write of IA32_RTIT_CTL: every quadword, that of CTL too, is
/// checked like a WRMSR, and the other MSRs are written. TraceEn stays 0.
///
/// Errors: those of `xrstors`.
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-143..145.
[[nodiscard]] constexpr auto xrstors_except_ctl(capabilities const& caps, msr_state const& state,
                                                xsave_pt_state const& image,
                                                policy const& policy = {}) noexcept
    -> xrstors_result {
    if (state.ctl.get<ia32_rtit_ctl::TraceEn>()) { return {detail::refused(state, rule::REG_143)}; }
    if (!image.reserved_quadwords_are_zero()) { return {detail::refused(state, rule::REG_144)}; }
    xrstors_result result{{.state = state}};
    unsigned first_refused = sizeof image.quadwords / sizeof image.quadwords[0];
    for (pt_msr const& msr : pt_msrs) {
        if (!msr.is_saved) { continue; }
        uint64_t const value = image.quadwords[msr.quadword];
        rule const broken = detail::broken_rule_of_quadword(caps, state, msr.index, value, policy);
        if (broken != rule::none && msr.quadword < first_refused) {
            first_refused = msr.quadword;
            result = {detail::refused(state, rule::REG_144), {msr.index, broken}};
        }
        if (result && msr.index != ia32_rtit_ctl::address && exists(caps, msr.index)) {
            detail::store(result.effect.state, msr.index, value);
        }
    }
    return result;
}

/// The effect of XRSTORS: every quadword is checked like a WRMSR, and TraceEn is written last.
/// `code` describes the context that runs when TraceEn becomes 1.
///
/// Errors: REG-143 while TraceEn is 1; REG-144 for a quadword that is refused, or reserved bytes
///         that are not 0. Then no MSR changes (a processor may have loaded some; TraceEn is 0).
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-143..145.
[[nodiscard]] constexpr auto xrstors(capabilities const& caps, msr_state const& state,
                                     xsave_pt_state const& image,
                                     processor_context const& code = {},
                                     policy const& policy = {}) noexcept -> xrstors_result {
    auto const loaded = xrstors_except_ctl(caps, state, image, policy);
    if (!loaded) { return loaded; }
    auto const ctl = image.get<xsave_pt_state::IA32_RTIT_CTL>();
    return {apply(caps, loaded.effect.state, ctl, code)};
}

/// The effect of XRSTORS where XSTATE_BV[8] is 0: the component gets its initial configuration.
///
/// Errors: REG-143 while TraceEn is 1.
/// Source: REG-143, REG-146.
[[nodiscard]] constexpr auto xrstors_init(msr_state const& state) noexcept -> xrstors_result {
    if (state.ctl.get<ia32_rtit_ctl::TraceEn>()) { return {detail::refused(state, rule::REG_143)}; }
    auto next = state;
    for (pt_msr const& msr : pt_msrs) {
        if (msr.is_saved) { set_raw(next, msr.index, value_of(msr_state{}, msr.index)); }
    }
    return {effect{.state = next}};
}

/// The state with the MSRs of an image. MSRs that XSAVES does not save are as after a cold reset.
///
/// Source: REG-141.
[[nodiscard]] constexpr auto msr_state_of(xsave_pt_state const& image) noexcept -> msr_state {
    msr_state state;
    for (pt_msr const& msr : pt_msrs) {
        if (msr.is_saved) { set_raw(state, msr.index, image.quadwords[msr.quadword]); }
    }
    return state;
}

}  // namespace ptspec::access
