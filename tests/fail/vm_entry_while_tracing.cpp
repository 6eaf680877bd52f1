// SPDX-License-Identifier: BSL-1.0
// expect: vm_entry_loads_ctl_while_the_host_traces
#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/controls.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr reg::ia32_rtit_ctl host{0x250C};
#else
constexpr reg::ia32_rtit_ctl host{0x250D};
#endif

auto controls_of_guest() {
    constexpr auto set = vmx::with_guest_pt(cpu::preset::ice_lake_u, {.enable_ept = true},
                                            vmx::guest_output::guest_physical);
    return vmx::constant_controls(cpu::preset::ice_lake_u, set, host);
}
