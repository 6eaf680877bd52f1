// SPDX-License-Identifier: BSL-1.0
// The value of IA32_RTIT_OUTPUT_BASE is not its index.
// expect: phys_addr
// expect: msr_index
#include <ptspec/access/pt_msrs.hpp>

using namespace ptspec;

auto base_of(access::msr_state const& now, phys_addr table) -> uint64_t {
#ifndef SHOULD_FAIL
    return access::value_of(now, reg::ia32_rtit_output_base::address) - table.value;
#else
    return access::value_of(now, table);
#endif
}
