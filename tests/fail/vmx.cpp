// SPDX-License-Identifier: BSL-1.0
/// Guests

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/ports.hpp>
#include <ptspec/vmx/controls.hpp>
#include <ptspec/vmx/world_switch.hpp>

using namespace ptspec;

namespace entry_without_controls {
/// What a VM entry loads depends on the controls.
// expect: no matching function for call to
auto enter_guest(vmx::guest_pt& guest, vmx::host_pt& host, simulate::msr_model<1>& msrs) -> bool {
#ifndef SHOULD_FAIL
    auto const set = vmx::with_guest_pt(cpu::preset::ice_lake_u, {.enable_ept = true},
                                        guest.current_output());
    return static_cast<bool>(vmx::enter(guest, set, host, msrs));
#else
    return static_cast<bool>(vmx::enter(guest, host, msrs));
#endif
}
}  // namespace entry_without_controls
