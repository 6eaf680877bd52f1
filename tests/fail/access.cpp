// SPDX-License-Identifier: BSL-1.0
/// Accesses of MSRs

#include <ptspec/access/check.hpp>
#include <ptspec/access/pt_msrs.hpp>

using namespace ptspec;

namespace msr_index_from_phys_addr {
/// The value of IA32_RTIT_OUTPUT_BASE is not its index.
// expect: phys_addr
// expect: msr_index
auto base_of(access::msr_state const& now, phys_addr table) -> uint64_t {
#ifndef SHOULD_FAIL
    return access::value_of(now, reg::ia32_rtit_output_base::address) - table.value;
#else
    return access::value_of(now, table);
#endif
}
}  // namespace msr_index_from_phys_addr

namespace msr_index_from_value {
/// The index of an MSR and the value for it, swapped: an integer of 64 bits is no index.
// expect: deleted
// expect: msr_index
auto is_allowed(cpu::capabilities const& caps, access::msr_state const& now, uint32_t index,
                uint64_t value) -> bool {
#ifndef SHOULD_FAIL
    return static_cast<bool>(access::check_write(caps, now, index, value));
#else
    return static_cast<bool>(access::check_write(caps, now, value, index));
#endif
}
}  // namespace msr_index_from_value
