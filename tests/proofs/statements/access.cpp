// SPDX-License-Identifier: BSL-1.0
// Which writes of an MSR fault, by which rule.
#include <ptspec/access/check.hpp>

#include <tests/proofs/statements/words.hpp>

using namespace ptspec;
using access::msr_state;
using cpu::capabilities;

namespace {

auto number_of(access::verdict found) -> uint32_t {
    return static_cast<uint32_t>(found.what) | static_cast<uint32_t>(found.broken) << 16;
}

}  // namespace

extern "C" {

bool ctl_is_legal(WORDS, uint64_t value) {
    capabilities const caps CAPS;
    return access::is_legal(caps, reg::ia32_rtit_ctl{value});
}
uint16_t ctl_broken_rule(WORDS, uint64_t value) {
    capabilities const caps CAPS;
    return static_cast<uint16_t>(access::broken_rule(caps, reg::ia32_rtit_ctl{value}));
}
uint64_t ctl_writable(WORDS) {
    capabilities const caps CAPS;
    return access::writable_ctl_mask(caps);
}
uint64_t status_faulting(WORDS) {
    capabilities const caps CAPS;
    return access::faulting_status_mask(caps);
}
uint16_t status_broken_rule(WORDS, uint64_t value) {
    capabilities const caps CAPS;
    return static_cast<uint16_t>(access::broken_rule(caps, reg::ia32_rtit_status{value}));
}
uint32_t legal_others(WORDS, uint64_t value) {
    capabilities const caps CAPS;
    return access::is_legal(caps, reg::ia32_rtit_status{value}) |
           access::is_legal(caps, reg::ia32_rtit_output_base{value}) << 1 |
           access::is_legal(caps, reg::ia32_rtit_output_mask_ptrs{value}) << 2 |
           access::is_legal(caps, reg::ia32_rtit_cr3_match{value}) << 3 |
           access::is_legal(caps, reg::ia32_rtit_addr{value}) << 4;
}
uint32_t check_write(WORDS, uint64_t ctl, bool in_vmx, bool only_enabling, uint32_t index,
                     uint64_t value, uint32_t cpl) {
    capabilities const caps CAPS;
    msr_state const now{.ctl = {ctl}, .in_vmx_operation = in_vmx};
    return number_of(access::check_write(caps, now, index, value, cpl,
                                         {.only_enabling_faults_in_vmx = only_enabling}));
}
uint32_t check_read(WORDS, uint32_t index, uint32_t cpl) {
    capabilities const caps CAPS;
    return number_of(access::check_read(caps, index, cpl));
}
void masks(uint64_t (&to)[12]) {
    to[0] = reg::ia32_rtit_ctl::reserved_mask();
    to[1] = reg::ia32_rtit_status::reserved_mask();
    to[2] = reg::ia32_rtit_status::write_ignored_mask();
    to[3] = reg::ia32_rtit_output_base::reserved_mask();
    to[4] = reg::ia32_rtit_output_mask_ptrs::reserved_mask();
    to[5] = reg::ia32_rtit_output_mask_ptrs::forced_1_mask();
    to[6] = reg::ia32_rtit_cr3_match::reserved_mask();
    to[7] = reg::ia32_rtit_addr::reserved_mask();
    to[8] = reg::ia32_perf_global_status_reset::reserved_mask();
    to[9] = reg::ia32_perf_global_status_set::reserved_mask();
    to[10] = reg::ia32_debugctl::reserved_mask();
    to[11] = reg::ia32_xss::reserved_mask();
}

}  // extern "C"
