// SPDX-License-Identifier: BSL-1.0
// expect: vm_entry_fails_on_the_controls_of_intel_pt
#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/controls.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto const& caps = cpu::preset::ice_lake_u;
#else
constexpr auto const& caps = cpu::preset::skylake_x;
#endif

auto controls_of_guest() {
    constexpr auto set = vmx::with_guest_pt(cpu::preset::ice_lake_u, {.enable_ept = true},
                                            vmx::guest_output::guest_physical);
    return vmx::constant_controls(caps, set, {0x250C});
}
