// SPDX-License-Identifier: BSL-1.0
// The checks of the generated C header (regmap --c), and those of the library.
#include <ptspec/access/check.hpp>
#include <ptspec/topa/entry.hpp>

#include <tests/proofs/statements/words.hpp>

#include <ptspec.h>

using namespace ptspec;

#define C_CAPS                                                                                     \
    ptspec_caps const c_caps {                                                                     \
        .cpuid_07h_0_ebx = leaf_07_0_ebx, .cpuid_0dh_1_eax = leaf_0d_1_eax,                        \
        .cpuid_0dh_1_ecx = leaf_0d_1_ecx, .cpuid_14h_0_eax = leaf_14_0_eax,                        \
        .cpuid_14h_0_ebx = leaf_14_0_ebx, .cpuid_14h_0_ecx = leaf_14_0_ecx,                        \
        .cpuid_14h_1_eax = leaf_14_1_eax, .cpuid_14h_1_ebx = leaf_14_1_ebx,                        \
        .cpuid_80000008h_eax = leaf_80000008_eax, .ia32_perf_capabilities = perf_capabilities,     \
        .ia32_vmx_misc = vmx_misc                                                                  \
    }

extern "C" {

uint32_t write_in_c(WORDS, uint64_t ctl, bool in_vmx, uint32_t index, uint64_t value) {
    C_CAPS;
    ptspec_state const state{.ctl = ctl, .in_vmx_operation = in_vmx};
    return ptspec_write_check(&c_caps, &state, index, value);
}
uint32_t write_in_cpp(WORDS, uint64_t ctl, bool in_vmx, uint32_t index, uint64_t value) {
    cpu::capabilities const caps CAPS;
    access::msr_state const now{.ctl = {ctl}, .in_vmx_operation = in_vmx};
    return static_cast<uint32_t>(access::check_write(caps, now, index, value).broken);
}
uint32_t entry_in_c(WORDS, uint64_t table, uint32_t index, uint64_t entry) {
    C_CAPS;
    return ptspec_topa_entry_check(&c_caps, table, index, entry);
}
uint32_t entry_in_cpp(WORDS, uint64_t table, uint32_t index, uint64_t entry) {
    cpu::capabilities const caps CAPS;
    return static_cast<uint32_t>(
        topa::broken_rule(topa::entry{entry}, {table, index}, topa::limits::of(caps)));
}

}  // extern "C"
