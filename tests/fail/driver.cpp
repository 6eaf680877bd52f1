// SPDX-License-Identifier: BSL-1.0
/// Drivers and their ports

#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/driver/ring.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/ports/x86.hpp>
#include <ptspec/reg/lbr.hpp>
#include <ptspec/reg/perf.hpp>

namespace port_without_fence {
/// Before the state of a trace is saved, its bytes must be visible: the port has no `fence()`.
// expect: port.fence()
// also clang
struct kernel_msrs {
    auto read(uint32_t) -> ptspec::port_value { return {}; }
    auto write(uint32_t, uint64_t) -> bool { return false; }
#ifndef SHOULD_FAIL
    void fence() {}
#endif
};

auto saved(kernel_msrs& msrs) { return ptspec::driver::save(msrs); }
}  // namespace port_without_fence

namespace access_without_wrmsr {
/// The port executes RDMSR only.
// expect: try_wrmsr
struct half_an_access {
    static auto try_rdmsr(uint32_t, uint64_t&) -> bool { return false; }
#ifndef SHOULD_FAIL
    static auto try_wrmsr(uint32_t, uint64_t) -> bool { return false; }
#endif
};

using port = ptspec::ports::x86_msrs<half_an_access>;
}  // namespace access_without_wrmsr

namespace write_of_a_read_only_msr {
/// WRMSR of IA32_PERF_GLOBAL_STATUS always faults.
// expect: writable_msr
// also clang
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
}  // namespace write_of_a_read_only_msr

namespace write_of_msr_platform_info {
/// MSR_PLATFORM_INFO is read only.
// expect: writable_msr
#ifndef SHOULD_FAIL
using word = ptspec::reg::ia32_debugctl;
#else
using word = ptspec::reg::msr_platform_info;
#endif

struct kernel_msrs {
    auto read(uint32_t) -> ptspec::port_value { return {}; }
    auto write(uint32_t, uint64_t) -> bool { return false; }
};

auto written(kernel_msrs& msrs) { return ptspec::driver::write(msrs, word{}); }
}  // namespace write_of_msr_platform_info

namespace set_marks_in_a_row {
/// The unread bytes and the head of a ring, swapped: they have names.
// expect: set_marks
// expect: ring_marks
auto move_marks(ptspec::driver::ring const& ring, uint64_t head, uint64_t unread) -> bool {
#ifndef SHOULD_FAIL
    return ptspec::driver::set_marks(ring,
                                     {.head = head, .unread = unread, .wake_up_bytes = 0x1000});
#else
    return ptspec::driver::set_marks(ring, unread, head, 0x1000);
#endif
}
}  // namespace set_marks_in_a_row
