// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/msr_exits.hpp>

namespace ptspec::test {

/// A guest before its first access.
constexpr auto a_guest(cpu::capabilities const& caps = cpu::preset::ice_lake_u) -> vmx::guest_pt {
    vmx::guest_pt guest;
    guest.caps = caps;
    return guest;
}
constexpr auto gp(rule broken) -> vmx::exit_answer { return {vmx::exit_action::inject_gp, broken}; }

}  // namespace ptspec::test
