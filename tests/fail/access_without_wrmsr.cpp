// SPDX-License-Identifier: BSL-1.0
// expect: try_wrmsr
#include <ptspec/ports/x86.hpp>

/// Executes RDMSR only.
struct half_an_access {
    static auto try_rdmsr(uint32_t, uint64_t&) -> bool { return false; }
#ifndef SHOULD_FAIL
    static auto try_wrmsr(uint32_t, uint64_t) -> bool { return false; }
#endif
};

using port = ptspec::ports::x86_msrs<half_an_access>;
