// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_trigger.hpp>
#include <ptspec/rule.hpp>

/// Trigger tracing: which trigger configurations are meaningful. A processor may accept others
/// without a fault, so these rules help to build a configuration, and no check of a WRMSR uses
/// them.
///
/// UNCONFIRMED: most of it has only one source.
namespace ptspec::access {

using cpu::capabilities;
using reg::ia32_rtit_triggerx_cfg;

/// The number of triggers: four for each IA32_RTIT_TRIGGERx_CFG.
///
/// Source: REG-215.
[[nodiscard]] constexpr auto triggers(capabilities const& caps) noexcept -> unsigned {
    using eax = reg::cpuid_14h_1_eax;
    bool const has_triggers = caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::PTTT>() &&
                              caps.leaf_14_0_eax.raw != 0;
    return has_triggers ? 4 * static_cast<unsigned>(caps.leaf_14_1_eax.get<eax::TRIGGER_CFG_CNT>())
                        : 0;
}

/// True for a valid trigger input: 0 to 7 and 20H to 27H are general counters, 40H to 43H are
/// matches of DR0 to DR3.
///
/// Source: REG-217.
[[nodiscard]] constexpr auto is_trigger_input(capabilities const& caps, uint64_t input) noexcept
    -> bool {
    bool const counter = (input & ~uint64_t{0x27}) == 0;
    bool const debug_register = (input & ~uint64_t{3}) == 0x40;
    return counter ||
           (debug_register && caps.leaf_14_1_ecx.get<reg::cpuid_14h_1_ecx::TRIGGER_DR_MATCH>());
}

namespace detail {

template <class Input, class Action12, class Action13, class EnIcnt, class Found>
constexpr void find_broken_rules_of_slot(capabilities const& caps, ia32_rtit_triggerx_cfg value,
                                         Found&& found) noexcept {
    using leaf = reg::cpuid_14h_1_ecx;
    bool const acts = value.get<Action12>() || value.get<Action13>();
    if ((acts && !caps.leaf_14_1_ecx.get<leaf::TRIGGER_PAUSE_RESUME>()) ||
        (value.get<EnIcnt>() && !caps.leaf_14_1_ecx.get<leaf::TRIGGER_ATTRIBUTION>())) {
        found(rule::REG_216);
    }
    if (!is_trigger_input(caps, value.get<Input>())) { found(rule::REG_217); }
}

}  // namespace detail

/// Calls `found` with every rule that a trigger configuration breaks, slot by slot.
///
/// Errors: REG-216 reserved bits, or an action that is not enumerated; REG-217 an input that does
///         not exist.
/// Source: REG-215..218.
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_triggerx_cfg value,
                                 Found&& found) noexcept {
    using cfg = ia32_rtit_triggerx_cfg;
    using namespace detail;
    if (value.reserved_bits_set() != 0) { found(rule::REG_216); }
    find_broken_rules_of_slot<cfg::Input0, cfg::Action12_0, cfg::Action13_0, cfg::EnIcnt0>(
        caps, value, found);
    find_broken_rules_of_slot<cfg::Input1, cfg::Action12_1, cfg::Action13_1, cfg::EnIcnt1>(
        caps, value, found);
    find_broken_rules_of_slot<cfg::Input2, cfg::Action12_2, cfg::Action13_2, cfg::EnIcnt2>(
        caps, value, found);
    find_broken_rules_of_slot<cfg::Input3, cfg::Action12_3, cfg::Action13_3, cfg::EnIcnt3>(
        caps, value, found);
}

/// The DR7 bits that the enabled slots need to receive matches of their debug registers.
///
/// Source: REG-217, REG-219.
[[nodiscard]] constexpr auto needed_dr7(ia32_rtit_triggerx_cfg value) noexcept -> reg::dr7 {
    using cfg = ia32_rtit_triggerx_cfg;
    uint64_t bits = 0;
    for (unsigned slot = 0; slot < 4; ++slot) {
        uint64_t const slot_bits = value.raw >> 16 * slot;
        uint64_t const input = slot_bits & low_bits(cfg::Input0::msb + 1);
        bool const enabled = (slot_bits >> cfg::En0::lsb & 1) != 0;
        if (enabled && (input & ~uint64_t{3}) == 0x40) {
            bits |= uint64_t{1} << (reg::dr7::DR0_PT_LOG::lsb + (input & 3));
        }
    }
    return {bits};
}

/// The first rule that a trigger configuration breaks.
///
/// Source: REG-215..218.
[[nodiscard]] constexpr auto broken_rule(capabilities const& caps,
                                         ia32_rtit_triggerx_cfg value) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, value, first);
    return first.found;
}

}  // namespace ptspec::access
