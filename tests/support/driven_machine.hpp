// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/unit_memory.hpp>
#include <support/world.hpp>

#include <ptspec/driver/plan.hpp>

// A modelled processor for tests of the driver's procedures.
namespace ptspec::test {

using world = world_of<machine_memory>;
using machine = world::machine;

/// A plan for the table of `machine_memory`: TraceEn, OS, User, ToPA, TSCEn, BranchEn.
inline constexpr access::msr_state topa_plan{.ctl = {0x250D},
                                             .output = driver::in_topa({.table = table})};

}  // namespace ptspec::test
