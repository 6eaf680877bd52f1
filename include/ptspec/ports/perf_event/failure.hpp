// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/config/trace_config.hpp>

/// Why Linux does not trace a program, and what to do.
namespace ptspec::ports::perf_event {

enum class failure : uint8_t {
    none,
    no_intel_pt,           ///< the processor does not enumerate it
    no_intel_pt_in_guest,  ///< nor does the hypervisor
    no_pmu,                ///< the processor has it, the kernel does not offer it
    no_sysfs,              ///< there is no PMU at all, as in a container without /sys
    bad_pmu,               ///< a file of the PMU has another form than those of Linux
    not_permitted,         ///< perf_event_paranoid, without CAP_PERFMON
    blocked,               ///< it is permitted: seccomp, a security module, or a locked down kernel
    busy,                  ///< another event uses Intel PT
    no_such_thread,
    no_such_cpu,
    unsupported,        ///< a member of the configuration has no bits in this kernel
    refused,            ///< a combination of options, by the kernel
    bad_size,           ///< an area is not a power of 2 of pages
    over_memory_limit,  ///< RLIMIT_MEMLOCK and perf_event_mlock_kb
    no_memory,
    too_many_files,
    bad_filter,  ///< a file or a range that the kernel cannot filter, or too many
    no_program,  ///< it cannot be executed
    other,       ///< another errno
};

/// What failed. `error` is the errno; 0 if no system call failed.
struct [[nodiscard]] trace_result {
    failure what = failure::none;
    int error = 0;
    config::config_member member{};  ///< of `unsupported`

    constexpr explicit operator bool() const noexcept { return what == failure::none; }
    friend constexpr auto operator==(trace_result const&, trace_result const&) -> bool = default;
};

/// The failure as one sentence, with what to do.
[[nodiscard]] constexpr auto describe(failure what) noexcept -> text {
    switch (what) {
        case failure::none: return "nothing is wrong";
        case failure::no_intel_pt: return "this processor has no Intel PT: use another machine";
        case failure::no_intel_pt_in_guest:
            return "the hypervisor offers no Intel PT to this guest: enable it there, or use the "
                   "host";
        case failure::no_pmu:
            return "the kernel has no PMU intel_pt: look for 'pt' in dmesg; a loaded KVM, or a "
                   "firmware that traces, can use Intel PT itself";
        case failure::no_sysfs:
            return "there are no PMUs in /sys/bus/event_source: mount /sys, also in a container";
        case failure::bad_pmu:
            return "a file of the PMU intel_pt has an unknown form: this kernel is too new";
        case failure::not_permitted:
            return "this user may not trace: lower /proc/sys/kernel/perf_event_paranoid, give the "
                   "program CAP_PERFMON, or be root";
        case failure::blocked:
            return "perf_event_open is blocked although the user may trace: allow it in the "
                   "seccomp profile of the container, and look at kernel lockdown";
        case failure::busy:
            return "another program traces with Intel PT here: end it; perf stat -e intel_pt// "
                   "fails as long as it runs";
        case failure::no_such_thread: return "there is no such thread: it may have ended";
        case failure::no_such_cpu: return "this processor does not exist, or is offline";
        case failure::unsupported:
            return "the kernel has no format for a member of the configuration: use a newer "
                   "kernel, "
                   "or leave it out";
        case failure::refused:
            return "the kernel refuses the event: this processor lacks a part of the configuration";
        case failure::bad_size: return "the size of an area must be a power of 2 of pages";
        case failure::over_memory_limit:
            return "the areas exceed the limit of locked memory: make them smaller, or raise "
                   "ulimit -l or /proc/sys/kernel/perf_event_mlock_kb";
        case failure::no_memory: return "the kernel has no memory for the areas: make them smaller";
        case failure::too_many_files: return "there are too many open files: raise ulimit -n";
        case failure::bad_filter:
            return "the kernel refuses the address filters: each needs a file and a range of its "
                   "bytes, or kernel addresses, and caps/num_address_ranges is how many fit";
        case failure::no_program: return "the program cannot be executed";
        case failure::other: return "a system call failed";
    }
    return "unknown failure";
}

}  // namespace ptspec::ports::perf_event
