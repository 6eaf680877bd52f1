// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/xsave.hpp>
#include <ptspec/base/rule.hpp>
#include <ptspec/base/attribute.hpp>

/// The list of the MSRs of Intel PT.
namespace ptspec::access {

using cpu::capabilities;
using reg::xsave_pt_state;

namespace detail {

using namespace ptspec::detail;

/// What decides whether a processor has an MSR, and whether IA32_RTIT_CTL gives it an effect.
enum class pt_msr_group : uint8_t { control, output, cr3_match, range };

/// An MSR: its type, its group, its quadword of the PT state in the XSAVE area, and the members of
/// `msr_state` that lead to its value.
template <class Word, pt_msr_group Group, class Quadword, auto... Path>
struct pt_row {
    using word = Word;
    static constexpr auto group = Group;
    static constexpr uint32_t first = Word::address;
    static constexpr uint32_t count = 1;
    static constexpr uint32_t saved = 1;
    static constexpr uint32_t quadword = Quadword::lsb / 64;

    static constexpr auto in(msr_state& state, uint32_t) noexcept -> uint64_t& {
        return (state.*....*Path).raw;
    }
};

/// The MSRs of the address ranges. XSAVES saves those of ranges 0 and 1.
struct pt_range_row {
    using word = ia32_rtit_addr;
    static constexpr auto group = pt_msr_group::range;
    static constexpr uint32_t first = ia32_rtit_addr::address(0, range_end::a);
    static constexpr uint32_t count = 2 * ia32_rtit_addr::count;
    static constexpr uint32_t saved = 4;
    static constexpr uint32_t quadword = xsave_pt_state::IA32_RTIT_ADDR0_A::lsb / 64;

    static constexpr auto in(msr_state& state, uint32_t number) noexcept -> uint64_t& {
        auto& range = state.addr[number / 2];
        return number % 2 == 0 ? range.a.raw : range.b.raw;
    }
};

/// The MSRs of Intel PT. Everything about all of them, such as `pt_msrs`, is derived from this
/// list.
namespace rows {

using area = xsave_pt_state;
using group = pt_msr_group;
using msrs = msr_state;
using output = output_registers;

// clang-format off
using ctl = pt_row<ia32_rtit_ctl, group::control, area::IA32_RTIT_CTL, &msrs::ctl>;
using other_than_ctl = type_list<
    pt_row<ia32_rtit_status, group::control, area::IA32_RTIT_STATUS, &msrs::status>,
    pt_row<ia32_rtit_output_base, group::output, area::IA32_RTIT_OUTPUT_BASE,
           &msrs::output, &output::base>,
    pt_row<ia32_rtit_output_mask_ptrs, group::output, area::IA32_RTIT_OUTPUT_MASK_PTRS,
           &msrs::output, &output::mask_ptrs>,
    pt_row<ia32_rtit_cr3_match, group::cr3_match, area::IA32_RTIT_CR3_MATCH, &msrs::cr3_match>,
    pt_range_row>;
// clang-format on

template <class... Rows>
constexpr auto with_ctl(type_list<Rows...>) noexcept -> type_list<ctl, Rows...>;
using pt = decltype(with_ctl(other_than_ctl{}));

}  // namespace rows

/// What the list has about an MSR: its group, and its number in its row.
struct pt_msr_facts {
    bool is_listed = false;
    pt_msr_group group = pt_msr_group::control;
    uint32_t number = 0;
};

/// What the row that covers an MSR says about it.
///
/// always_inline: as `rule_of_absence`.
template <class... Rows>
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto facts_in(type_list<Rows...>, uint32_t index) noexcept -> pt_msr_facts {
    pt_msr_facts found;
    (void)(... || (index - Rows::first < Rows::count &&
                   (found = {true, Rows::group, index - Rows::first}, true)));
    return found;
}

}  // namespace detail

/// The first and the last MSR index that is reserved for Intel PT.
///
/// Source: REG-017.
inline constexpr uint32_t first_pt_msr = ia32_rtit_output_base::address;
inline constexpr uint32_t last_pt_msr = ia32_rtit_addr::address(ia32_rtit_addr::count - 1,
                                                                range_end::b);

/// True for the MSRs of Intel PT, 560H to 587H, whether or not the processor has them.
///
/// Source: REG-017.
[[nodiscard]] constexpr auto is_pt_msr(msr_index index) noexcept -> bool {
    return index.value >= first_pt_msr && index.value <= last_pt_msr;
}

/// True for the MSRs that this directory models: those of Intel PT, and the fields of Intel PT in
/// IA32_DEBUGCTL, IA32_XSS and the three IA32_PERF_GLOBAL_STATUS registers.
///
/// always_inline: without it the check of a constant index has 2 instructions more (g++ 12).
///
/// Source: REG-017, REG-018.
PTSPEC_ATTRIBUTE(always_inline) [[nodiscard]]
constexpr auto is_covered_msr(msr_index index) noexcept -> bool {
    return is_pt_msr(index) || index == reg::ia32_perf_global_status::address ||
           index == reg::ia32_perf_global_status_reset::address ||
           index == reg::ia32_perf_global_status_set::address || index == reg::ia32_xss::address ||
           index == reg::ia32_debugctl::address;
}

// ------------------------------------------------------------------------------------ presence

namespace detail {

/// The rule that makes an MSR absent on a processor, or none.
///
/// Source: REG-001, REG-012..015, REG-017.
///
/// always_inline: without it a WRMSR that faults takes 6 % more instructions (clang 19).
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto rule_of_absence(capabilities const& caps, msr_index index) noexcept -> rule {
    if (!is_pt_msr(index)) { return rule::none; }
    auto const msr = facts_in(rows::pt{}, index.value);
    if (!msr.is_listed) { return rule::REG_017; }
    rule missing = rule::none;
    switch (msr.group) {
        case pt_msr_group::control: break;
        case pt_msr_group::output:
            if (!caps.has_output_msrs()) { missing = rule::REG_012; }
            break;
        case pt_msr_group::cr3_match:
            if (!caps.has_cr3_filtering()) { missing = rule::REG_013; }
            break;
        case pt_msr_group::range:
            if (msr.number >= 2 * caps.address_ranges()) { missing = rule::REG_014; }
            break;
    }
    return caps.has_pt() ? missing : rule::REG_001;
}

}  // namespace detail

/// True if a processor has an MSR of Intel PT; true for any other MSR.
///
/// Source: REG-001, REG-012..015, REG-017.
[[nodiscard]] constexpr auto exists(capabilities const& caps, msr_index index) noexcept -> bool {
    return detail::rule_of_absence(caps, index) == rule::none;
}

}  // namespace ptspec::access

#undef PTSPEC_ATTRIBUTE
