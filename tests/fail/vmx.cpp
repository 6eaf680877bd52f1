// SPDX-License-Identifier: BSL-1.0
/// Guests

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/ports.hpp>
#include <ptspec/vmx/controls.hpp>
#include <ptspec/edit/rewrite.hpp>
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

namespace parts_of_another_rewriting {
/// These parts of a trace were found for PIPs; a new TSC offset changes TSCs.
// expect: no matching function for call to
#ifndef SHOULD_FAIL
using changed = packet::tsc;
#else
using changed = packet::pip;
#endif

auto rebase(edit::trace_parts<changed>& parts, byte_window const (&part)[1]) -> bool {
    return static_cast<bool>(edit::rebase_tsc(parts, part, {.offset = 1}));
}
}  // namespace parts_of_another_rewriting
