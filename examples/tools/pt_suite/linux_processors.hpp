// SPDX-License-Identifier: BSL-1.0
#pragma once

// The logical processors of a Linux: which are online, who else uses Intel PT, and whether the
// kernel lets MSRs be written.

#include "msr_device.hpp"

#include <ptspec/ports/perf_event/perf_trace.hpp>
#include <ptspec/reg/vmx.hpp>
#if defined(__x86_64__) || defined(__i386__)
#include <ptspec/ports/x86.hpp>
#endif

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>

namespace pt_suite {

/// The files of a Linux below a folder, which is empty but in tests.
struct linux_files {
    std::string root{};

    /// The text of a small file without the end of the line; nothing if it cannot be read.
    [[nodiscard]] auto text_in(std::string const& path) const -> std::optional<std::string> {
        try {
            auto const bytes = tool::read_all(root + path, std::size_t{1} << 16);
            std::string made{bytes.begin(), bytes.end()};
            while (!made.empty() && made.back() == '\n') { made.pop_back(); }
            return made;
        } catch (tool::failure const&) { return std::nullopt; }
    }
    [[nodiscard]] auto boot_id() const -> std::string {
        return text_in("/proc/sys/kernel/random/boot_id").value_or("");
    }
};

// ------------------------------------------------------------------------------------ lists

/// The processors of a list such as `0-3,5`, as Linux writes it; empty if it is none.
inline auto processors_in(std::string_view list) -> std::vector<unsigned> {
    constexpr std::uint64_t most = 0xFFFF;
    std::vector<unsigned> made;
    for (auto const part : tool::words_of(list, ",")) {
        auto const dash = part.find('-');
        auto const first = detail::number_in(part.substr(0, dash), 10);
        auto const last = dash == part.npos ? first : detail::number_in(part.substr(dash + 1), 10);
        if (!first || !last || *first > *last || *last > most) { return {}; }
        for (auto one = *first; one <= *last; ++one) { made.push_back(static_cast<unsigned>(one)); }
    }
    return made;
}
/// The same list of ascending numbers as a text.
inline auto list_of(std::vector<unsigned> const& all) -> std::string {
    std::string made;
    for (std::size_t i = 0; i < all.size();) {
        auto end = i + 1;
        while (end < all.size() && all[end] == all[end - 1] + 1) { ++end; }
        made += (i == 0 ? "" : ",") + std::to_string(all[i]);
        if (end - i > 1) { made += '-' + std::to_string(all[end - 1]); }
        i = end;
    }
    return made;
}
inline auto online_processors(linux_files const& from) -> std::vector<unsigned> {
    return processors_in(from.text_in("/sys/devices/system/cpu/online").value_or(""));
}

// ------------------------------------------------------------------------------------ a processor

/// Keeps the calling thread on a processor.
class pinned {
public:
    explicit pinned(unsigned cpu) {
        (void)::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t only;
        CPU_ZERO(&only);
        if (cpu < CPU_SETSIZE) { CPU_SET(cpu, &only); }
        if (::sched_setaffinity(0, sizeof only, &only) != 0) {
            throw not_asked{"processor " + std::to_string(cpu) +
                            " cannot execute CPUID for this program: " + std::strerror(errno)};
        }
    }
    pinned(pinned const&) = delete;
    auto operator=(pinned const&) -> pinned& = delete;
    ~pinned() { (void)::sched_setaffinity(0, sizeof before_, &before_); }

private:
    cpu_set_t before_{};
};

/// CPUID of the processor that executes this.
struct executed_cpuid {
    [[nodiscard]] auto query(std::uint32_t leaf, std::uint32_t subleaf) const -> cpuid_registers {
#if defined(__x86_64__) || defined(__i386__)
        return ports::cpuid(leaf, subleaf);
#else
        return (void)leaf, (void)subleaf, cpuid_registers{};
#endif
    }
};

/// A logical processor of this machine: /dev/cpu/N/msr, and CPUID, while the thread is `pinned`.
class linux_processor {
public:
    /// Errors: throws `not_asked` if the device cannot be opened.
    linux_processor(linux_files const& from, unsigned cpu, bool writes = true) {
        auto const path = from.root + ports::detail::device_path{cpu, "msr"}.letters;
        auto const opened = msrs_.open_file(path.c_str(), writes);
        if (opened) { return; }
        bool const is_missing = opened.error == ENOENT || opened.error == ENXIO;
        bool const is_denied = opened.error == EACCES || opened.error == EPERM;
        throw not_asked{path + ": " + std::strerror(opened.error) +
                        (is_missing  ? "; `modprobe msr` makes it"
                         : is_denied ? "; it needs root, with CAP_SYS_RAWIO"
                                     : "")};
    }
    auto read(std::uint32_t index) -> port_value { return msrs_.read(index); }
    auto write(std::uint32_t index, std::uint64_t value) -> bool {
        return msrs_.write(index, value);
    }
    [[nodiscard]] auto error() -> int { return msrs_.error(); }
    [[nodiscard]] auto query(std::uint32_t leaf, std::uint32_t subleaf) -> cpuid_registers {
        return executed_cpuid{}.query(leaf, subleaf);
    }

private:
    ports::linux_msrs msrs_{};
};
static_assert(suite::target<msr_target<linux_processor>>);

// ------------------------------------------------------------------------------------ the kernel

/// Why the kernel lets no MSR be written, or who else uses Intel PT, by files of the kernel; empty
/// if nothing is known.
inline auto why_not(linux_files const& from) -> std::string {
    auto const lockdown = from.text_in("/sys/kernel/security/lockdown").value_or("");
    if (!lockdown.empty() && lockdown.find("[none]") == lockdown.npos) {
        return "the kernel is locked down and refuses writes of MSRs "
               "(/sys/kernel/security/lockdown: " +
               lockdown + ")";
    }
    auto const writes = from.text_in("/sys/module/msr/parameters/allow_writes").value_or("");
    if (writes == "off") {
        return "the kernel refuses writes of MSRs: msr.allow_writes is off "
               "(/sys/module/msr/parameters/allow_writes)";
    }
    if (from.text_in("/sys/module/kvm_intel/parameters/pt_mode").value_or("0") != "0") {
        return "kvm_intel gives Intel PT to its guests (pt_mode=1): load it without that option";
    }
    return {};
}
/// What the kernel does at a write of an MSR.
inline auto what_writes_do(linux_files const& from) -> std::string {
    auto const writes = from.text_in("/sys/module/msr/parameters/allow_writes").value_or("");
    return writes == "default" ? "the kernel logs writes of MSRs, and is tainted by them (flag S)"
                               : "the kernel is tainted by writes of MSRs (flag S)";
}
/// Throws `not_asked` if one of these processors traces, or if a loaded KVM makes writes of
/// IA32_RTIT_CTL fault.
///
/// Source: REG-121, PRG-160.
inline void require_idle(linux_files const& from, std::vector<unsigned> const& online) {
    using misc = reg::ia32_vmx_misc;
    bool const has_kvm = from.text_in("/sys/module/kvm_intel/parameters/pt_mode").has_value();
    for (auto const cpu : online) {
        linux_processor device{from, cpu, false};
        if (is_tracing(device)) {
            throw not_asked{"TraceEn is 1 on processor " + std::to_string(cpu) +
                            ": another program traces, such as perf record -e intel_pt//"};
        }
        auto const vmx = device.read(misc::address);
        if (has_kvm && vmx && !misc{vmx.value}.get<misc::INTEL_PT>()) {
            throw not_asked{
                "kvm_intel is loaded, and IA32_RTIT_CTL cannot be written in VMX operation "
                "(IA32_VMX_MISC[14] is 0): unload it"};
        }
    }
}

/// A disabled event of perf for each processor: as long as it exists, perf opens no other one that
/// could set TraceEn there.
class perf_lock {
public:
    /// Errors: throws `not_asked` if perf has an event of Intel PT. Where it cannot be known,
    ///         `note` says so.
    perf_lock(linux_files const& from, std::vector<unsigned> const& cpus) {
        namespace perf = ports::perf_event;
        auto const type = from.text_in("/sys/bus/event_source/devices/intel_pt/type");
        if (!type) { return; }
        perf::perf_event_attr attr;
        attr.type = static_cast<std::uint32_t>(detail::number_in(*type, 10).value_or(0));
        attr.size = perf::perf_event_attr::size_of_writer;
        attr.flags = perf::attr_flags{}.with(perf::attr_flags::disabled{true});
        for (auto const cpu : cpus) {
            perf::perf_trace event;
            auto const opened = event.open(attr, {perf::trace_target::any, static_cast<int>(cpu)});
            if (opened.what == perf::failure::busy) {
                throw not_asked{"another program uses Intel PT through perf: end it"};
            }
            if (opened) {
                events_.push_back(std::move(event));
            } else {
                note_ = "perf may begin to trace during the checks: perf_event_open: " +
                        std::string{std::strerror(opened.error)};
            }
        }
    }
    [[nodiscard]] auto note() const -> std::string const& { return note_; }

private:
    std::vector<ports::perf_event::perf_trace> events_{};
    std::string note_{};
};

/// Throws `not_asked` unless the checks can run on these processors.
inline void require_access(linux_files const& from, std::vector<unsigned> const& cpus) {
    bool has_pt = false;
    for (auto const cpu : cpus) {
        pinned const here{cpu};
        bool const has_one = (executed_cpuid{}.query(7, 0).ebx >> 25 & 1) != 0;
        has_pt |= has_one;
        try {
            linux_processor const device{from, cpu};
        } catch (not_asked const& why) {
            if (has_one) { throw; }
            throw not_asked{"processor " + std::to_string(cpu) +
                            " lacks Intel PT, and its absence cannot be checked: " + why.what()};
        }
        if (!has_one) {
            tool::print_error("processor " + std::to_string(cpu) +
                              " lacks Intel PT: only its absence is checked");
        }
    }
    if (auto const why = why_not(from); !why.empty()) { throw not_asked{why}; }
    if (has_pt) { require_idle(from, online_processors(from)); }
}

/// The signals that would end the program between a write and what restores the MSR. They are held
/// as long as this exists, and take effect after it.
class held_signals {
public:
    held_signals() {
        (void)::sigemptyset(&held_);
        for (int const one : signals) {
            struct sigaction now{};
            bool const is_ignored = ::sigaction(one, nullptr, &now) == 0 &&
                                    now.sa_handler == SIG_IGN;
            if (!is_ignored) { (void)::sigaddset(&held_, one); }
        }
        (void)::sigprocmask(SIG_BLOCK, &held_, &before_);
    }
    held_signals(held_signals const&) = delete;
    auto operator=(held_signals const&) -> held_signals& = delete;
    ~held_signals() { (void)::sigprocmask(SIG_SETMASK, &before_, nullptr); }

    /// True if one of them came.
    [[nodiscard]] auto is_pending() const -> bool {
        sigset_t now;
        if (::sigpending(&now) != 0) { return false; }
        for (int const one : signals) {
            if (::sigismember(&held_, one) == 1 && ::sigismember(&now, one) == 1) { return true; }
        }
        return false;
    }

private:
    static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

    sigset_t held_{};
    sigset_t before_{};
};

}  // namespace pt_suite
