// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>

namespace ptspec::test {

/// The capabilities that CPUID alone enumerates: those of MSRs are 0.
constexpr auto without_msrs(cpu::capabilities of) -> cpu::capabilities {
    of.platform_info = {};
    of.perf_capabilities = {};
    of.vmx_misc = {};
    of.vmx_procbased_ctls2 = {};
    of.vmx_exit_ctls = {};
    of.vmx_entry_ctls = {};
    return of;
}

}  // namespace ptspec::test
