// SPDX-License-Identifier: BSL-1.0
// expect: writable_msr
#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/reg/perf.hpp>

#ifndef SHOULD_FAIL
using word = ptspec::reg::ia32_perf_global_status_reset;
#else
using word = ptspec::reg::ia32_perf_global_status;
#endif

struct kernel_msrs {
    auto read(uint32_t) -> ptspec::port_value { return {}; }
    auto write(uint32_t, uint64_t) -> bool { return false; }
};

auto written(kernel_msrs& msrs) { return ptspec::driver::write(msrs, word{}); }
