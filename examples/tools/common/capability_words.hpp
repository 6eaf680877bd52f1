// SPDX-License-Identifier: BSL-1.0
#pragma once

// All words of cpu::capabilities: of CPUID, then MSRs.

#include <ptspec/cpu/capabilities.hpp>

#include <cstddef>

namespace capability_words {

using namespace ptspec;

template <auto... Members>
struct member_list {
    static_assert(((sizeof(cpu::capabilities{}.*Members) + ...) + alignof(cpu::capabilities) - 1) /
                          alignof(cpu::capabilities) * alignof(cpu::capabilities) ==
                      sizeof(cpu::capabilities),
                  "a word of the capabilities is missing");
};

using c = cpu::capabilities;
using members = member_list<
    &c::leaf_01_eax, &c::leaf_01_ecx, &c::leaf_07_0_ebx, &c::leaf_07_1_eax, &c::leaf_0a_eax,
    &c::leaf_0d_1_eax, &c::leaf_0d_1_ecx, &c::leaf_0d_8_eax, &c::leaf_0d_8_ecx, &c::leaf_14_0_eax,
    &c::leaf_14_0_ebx, &c::leaf_14_0_ecx, &c::leaf_14_1_eax, &c::leaf_14_1_ebx, &c::leaf_14_1_ecx,
    &c::leaf_15_eax, &c::leaf_15_ebx, &c::leaf_15_ecx, &c::leaf_80000008_eax, &c::platform_info,
    &c::perf_capabilities, &c::vmx_misc, &c::vmx_procbased_ctls2, &c::vmx_exit_ctls,
    &c::vmx_entry_ctls>;

/// Calls `visit` with each word.
template <class Capabilities, auto... Members, class Visit>
void for_each(Capabilities& caps, member_list<Members...>, Visit const& visit) {
    (visit(caps.*Members), ...);
}

}  // namespace capability_words
