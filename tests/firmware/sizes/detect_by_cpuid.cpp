// SPDX-License-Identifier: BSL-1.0
// at most: 500 bytes
// The capabilities that CPUID enumerates. The instructions are inline.

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/ports/x86.hpp>

using namespace ptspec;

auto detect() noexcept -> cpu::capabilities {
    ports::x86_cpuid cpuid;
    return cpu::detect(cpuid);
}
