// SPDX-License-Identifier: BSL-1.0
// expect: port.fence()
#include <ptspec/driver/switch_context.hpp>

struct kernel_msrs {
    auto read(uint32_t) -> ptspec::port_value { return {}; }
    auto write(uint32_t, uint64_t) -> bool { return false; }
#ifndef SHOULD_FAIL
    void fence() {}
#endif
};

auto saved(kernel_msrs& msrs) { return ptspec::driver::save(msrs); }
