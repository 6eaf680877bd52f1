// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/transition.hpp>

#include <cstdint>

// The controls of Intel PT by their bits, two values of CTL, and what `vmx::check` finds.
namespace ptspec::test {

inline constexpr uint32_t conceal_nonroot = 1U << 19;
inline constexpr uint32_t guest_physical = 1U << 24;
inline constexpr uint32_t conceal_exits = 1U << 24;
inline constexpr uint32_t clear_ctl = 1U << 25;
inline constexpr uint32_t conceal_entries = 1U << 17;
inline constexpr uint32_t load_ctl = 1U << 18;

/// The findings of `vmx::check`, in order.
struct findings {
    vmx::violation all[8] = {};
    unsigned count = 0;

    [[nodiscard]] constexpr auto is(vmx::violation const& only) const -> bool {
        return count == 1 && all[0] == only;
    }
};

constexpr auto found_in(cpu::capabilities const& caps, vmx::vmcs_fields const& fields,
                        access::msr_state const& host = {}, access::policy const& policy = {})
    -> findings {
    findings found;
    vmx::check(
        caps, fields, host,
        [&](vmx::violation const& one) {
            if (found.count < 8) { found.all[found.count] = one; }
            ++found.count;
        },
        policy);
    return found;
}

constexpr auto with_ctl(reg::ia32_rtit_ctl ctl) -> access::msr_state {
    access::msr_state state;
    state.ctl = ctl;
    return state;
}

}  // namespace ptspec::test
