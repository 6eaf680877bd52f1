// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/unit_memory.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/plan.hpp>
#include <ptspec/simulate/fake_processor.hpp>

// A modelled processor for tests of the driver's procedures.
namespace ptspec::test {

using machine = simulate::fake_processor<machine_memory, simulate::no_tap>;

/// A processor in the kernel at 1000H, and its memory, where nothing is programmed.
struct world {
    machine_memory memory{};
    simulate::no_tap tap{};
    machine cpu;

    constexpr explicit world(cpu::capabilities const& of = cpu::preset::skylake_x,
                             engine::execution_context const& code = {})
        : cpu{of, memory, tap, code, 0x1000} {}
};

/// A plan for the table of `machine_memory`: TraceEn, OS, User, ToPA, TSCEn, BranchEn.
inline constexpr access::msr_state topa_plan{.ctl = {0x250D},
                                             .output = driver::in_topa({.table = table})};

}  // namespace ptspec::test
