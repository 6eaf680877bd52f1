// SPDX-License-Identifier: BSL-1.0
// expect: the_cpuid_leaf_differs
#include <ptspec/conformance.hpp>
#include <ptspec/reg/cpuid_14h.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms_leaf<reg::cpuid_14h_1_eax>(0x14));
#else
static_assert(conforms_leaf<reg::cpuid_14h_1_eax>(0x15));
#endif
