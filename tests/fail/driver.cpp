// SPDX-License-Identifier: BSL-1.0
/// Drivers and their ports

#include <ptspec/driver/drain.hpp>
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

namespace drain_into_numbers {
/// An address is no number of bytes: it has a type of its own.
// expect: the visitor of a ring is called with (ptspec::phys_addr base, uint64_t bytes)
// also clang
auto read(ptspec::driver::ring const& in, ptspec::driver::ring_reader& reader,
          ptspec::driver::stopped_trace const& at) {
    uint64_t sum = 0;
#ifndef SHOULD_FAIL
    auto const add = [&](ptspec::phys_addr, uint64_t bytes) { sum += bytes; };
#else
    auto const add = [&](uint64_t, uint64_t bytes) { sum += bytes; };
#endif
    return ptspec::driver::drain(in, reader, at, add).new_bytes + sum;
}
}  // namespace drain_into_numbers

namespace drain_into_a_number {
/// A result that is not bool would be ignored.
// expect: it returns nothing, or bool: false stops
struct consumed {
    uint64_t bytes;
};

auto read(ptspec::driver::ring const& in, ptspec::driver::ring_reader& reader,
          ptspec::driver::stopped_trace const& at) {
#ifndef SHOULD_FAIL
    auto const add = [](ptspec::phys_addr, uint64_t bytes) { return bytes < 4096; };
#else
    auto const add = [](ptspec::phys_addr, uint64_t bytes) { return consumed{bytes}; };
#endif
    return ptspec::driver::drain(in, reader, at, add).new_bytes;
}
}  // namespace drain_into_a_number

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
