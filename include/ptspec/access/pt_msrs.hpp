// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/pt_msr_rows.hpp>
#include <ptspec/base/attribute.hpp>

/// The MSRs of Intel PT by index: `for (pt_msr const& msr : pt_msrs)`.
namespace ptspec::access {

/// An MSR of Intel PT in `pt_msrs`.
struct pt_msr {
    msr_index index{};
    bool is_saved = false;  ///< by XSAVES
    uint8_t quadword = 0;   ///< of the PT state in the XSAVE area, if it is saved
    /// true: the MSR has an effect if one of `ctl_bits` is 1; false: if all of them are 0
    bool is_used_if_set = false;
    uint64_t ctl_bits = 0;  ///< of IA32_RTIT_CTL; 0 for an MSR that always has an effect
};

/// True if an MSR has an effect with this IA32_RTIT_CTL.
///
/// Source: REG-037, REG-057, PRG-080.
[[nodiscard]] constexpr auto is_used(ia32_rtit_ctl ctl, pt_msr const& msr) noexcept -> bool {
    return ((ctl.raw & msr.ctl_bits) != 0) == msr.is_used_if_set;
}

namespace detail {

/// `is_used_if_set` and `ctl_bits` of an MSR: no bits for one that is always used.
constexpr auto with_use(pt_msr made, pt_msr_group group, unsigned range) noexcept -> pt_msr {
    made.is_used_if_set = group == pt_msr_group::cr3_match || group == pt_msr_group::range;
    switch (group) {
        case pt_msr_group::control: break;
        case pt_msr_group::output: made.ctl_bits = field_mask<ia32_rtit_ctl::FabricEn>; break;
        case pt_msr_group::cr3_match: made.ctl_bits = field_mask<ia32_rtit_ctl::CR3Filter>; break;
        case pt_msr_group::range:
            made.ctl_bits = field_mask<ia32_rtit_ctl::ADDR0_CFG> << 4 * range;
            break;
    }
    return made;
}

template <class... Rows>
constexpr auto count_of(type_list<Rows...>) noexcept -> size_t {
    return (... + Rows::count);
}

struct pt_msr_table {
    pt_msr msrs[count_of(rows::pt{})] = {};

    [[nodiscard]] constexpr auto begin() const noexcept -> pt_msr const* { return msrs; }
    [[nodiscard]] constexpr auto end() const noexcept -> pt_msr const* { return msrs + size(); }
    [[nodiscard]] static constexpr auto size() noexcept -> size_t {
        return sizeof msrs / sizeof msrs[0];
    }
};

template <class... Rows>
constexpr auto table_of(type_list<Rows...>) noexcept -> pt_msr_table {
    pt_msr_group const group[] = {Rows::group...};
    uint32_t const first[] = {Rows::first...};
    uint32_t const count[] = {Rows::count...};
    uint32_t const saved[] = {Rows::saved...};
    uint32_t const quadword[] = {Rows::quadword...};
    pt_msr_table made;
    pt_msr* next = made.msrs;
    for (size_t row = 0; row < sizeof...(Rows); ++row) {
        for (uint32_t i = 0; i < count[row]; ++i) {
            *next++ = with_use(
                {first[row] + i, i < saved[row], static_cast<uint8_t>(quadword[row] + i)},
                group[row], i / 2);
        }
    }
    return made;
}

/// The value of an MSR in a state, or null if the list does not have the MSR.
///
/// noinline: inlined, a driver has 0.2 KB more (g++ 12, clang 14).
template <class... Rows>
PTSPEC_ATTRIBUTE(noinline)
constexpr auto value_in(type_list<Rows...>, msr_state& state, uint32_t index) noexcept
    -> uint64_t* {
    uint64_t* found = nullptr;
    (void)(... || (index - Rows::first < Rows::count &&
                   (found = &Rows::in(state, index - Rows::first), true)));
    return found;
}

}  // namespace detail

/// The MSRs of Intel PT: IA32_RTIT_CTL, IA32_RTIT_STATUS, IA32_RTIT_OUTPUT_BASE,
/// IA32_RTIT_OUTPUT_MASK_PTRS, IA32_RTIT_CR3_MATCH, IA32_RTIT_ADDR0_A to IA32_RTIT_ADDR3_B.
///
/// `value_of` and `set_raw` access the value of an MSR in a state. `exists` is true if a processor
/// has the MSR, `is_used` if it has an effect.
/// Source: REG-012..018.
inline constexpr auto pt_msrs = detail::table_of(detail::rows::pt{});

/// The value of a covered MSR, whether or not the processor has it. The two registers that set and
/// reset IA32_PERF_GLOBAL_STATUS read 0.
///
/// Source: REG-011, REG-080.
[[nodiscard]] constexpr auto value_of(msr_state const& state, msr_index index) noexcept
    -> uint64_t {
    switch (index.value) {
        case reg::ia32_perf_global_status::address: return state.perf_global_status.raw;
        case reg::ia32_xss::address: return state.xss.raw;
        case reg::ia32_debugctl::address: return state.debugctl.raw;
        default: break;
    }
    auto const* const found = detail::value_in(detail::rows::pt{}, const_cast<msr_state&>(state),
                                               index.value);
    return found == nullptr ? 0 : *found;
}

/// Stores a value in a covered MSR without checks or side effects.
///
/// Errors: none; ignored for an MSR that is not covered or has no storage. LowerMask always reads
///         as ones.
/// Source: REG-072.
constexpr void set_raw(msr_state& state, msr_index index, uint64_t value) noexcept {
    switch (index.value) {
        case ia32_rtit_output_mask_ptrs::address:
            value |= ia32_rtit_output_mask_ptrs::forced_1_mask();
            break;
        case reg::ia32_perf_global_status::address: state.perf_global_status = {value}; return;
        case reg::ia32_xss::address: state.xss = {value}; return;
        case reg::ia32_debugctl::address: state.debugctl = {value}; return;
        default: break;
    }
    auto* const found = detail::value_in(detail::rows::pt{}, state, index.value);
    if (found != nullptr) { *found = value; }
}

}  // namespace ptspec::access

#undef PTSPEC_ATTRIBUTE
