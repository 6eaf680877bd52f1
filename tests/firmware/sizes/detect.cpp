// SPDX-License-Identifier: BSL-1.0
// at most: 600 bytes by g++
// at most: 700 bytes by clang++
// Detection with the capability MSRs and TraceEn. The instructions are inline.

#include <ptspec/driver/detect.hpp>
#include <ptspec/ports/x86.hpp>

using namespace ptspec;

auto detect() noexcept -> driver::detection {
    ports::x86_cpuid cpuid;
    ports::x86_msrs<> msrs;
    return driver::detect(cpuid, msrs);
}
