// SPDX-License-Identifier: BSL-1.0
// expect: no matching function for call to
#include <ptspec/vmx/rewrite.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
using changed = packet::tsc;
#else
using changed = packet::pip;
#endif

auto rebase(vmx::trace_parts<changed>& parts, byte_window const (&part)[1]) -> bool {
    return static_cast<bool>(vmx::rebase_tsc(parts, part, {.offset = 1}));
}
