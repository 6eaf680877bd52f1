// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/perf_event/attributes.hpp>
#include <ptspec/ports/perf_event/mapped_page.hpp>

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/// An event of Intel PT: a trace of a thread or of a processor, by perf_event_open(2).
namespace ptspec::ports::perf_event {

/// What is traced: a thread on all processors, a thread on one, or all threads of one processor.
struct trace_target {
    static constexpr int any = -1;

    int thread = 0;  ///< 0: the caller; `any`: all, on one processor
    int cpu = any;
};

/// The sizes of the areas, which are powers of 2 of pages.
struct area_sizes {
    size_t data = size_t{1} << 16;
    size_t aux = size_t{1} << 22;
    bool is_snapshot = false;  ///< the kernel overwrites the AUX area
};

namespace detail {

inline auto page_size() noexcept -> size_t { return static_cast<size_t>(::getpagesize()); }

/// Whether perf_event_paranoid permits an event to a user without CAP_PERFMON.
inline auto is_permitted(trace_options const& wanted, trace_target const& of,
                         kernel_files const& from) noexcept -> bool {
    if (::geteuid() == 0) { return true; }
    auto const level = number_in(small_path{from.paranoid});
    bool const is_system_wide = of.thread == trace_target::any;
    uint64_t const most = is_system_wide ? 0 : wanted.config.os ? 1 : 2;
    return !level || level.value <= most;  // -1 is no number here
}
/// Whether the kernel has a processor.
inline auto has_cpu(int cpu) noexcept -> bool { return cpu < ::sysconf(_SC_NPROCESSORS_CONF); }
inline auto result_of_open(int error, bool is_permitted) noexcept -> trace_result {
    switch (error) {
        case 0: return {};
        case EACCES:
        case EPERM: return {is_permitted ? failure::blocked : failure::not_permitted, error};
        case ENOSYS: return {failure::blocked, error};
        case EBUSY: return {failure::busy, error};
        case ESRCH: return {failure::no_such_thread, error};
        case ENODEV: return {failure::no_such_cpu, error};
        case EMFILE:
        case ENFILE: return {failure::too_many_files, error};
        case ENOMEM: return {failure::no_memory, error};
        case ENOENT: return {failure::no_pmu, error};
        case EINVAL:
        case EOPNOTSUPP: return {failure::refused, error};
        default: return {failure::other, error};
    }
}
inline auto result_of_map(int error) noexcept -> trace_result {
    switch (error) {
        case EPERM: return {failure::over_memory_limit, error};
        case ENOMEM: return {failure::no_memory, error};
        case EBUSY: return {failure::busy, error};
        default: return {failure::other, error};
    }
}

}  // namespace detail

/// An event and its areas.
class perf_trace {
public:
    perf_trace() noexcept = default;
    perf_trace(perf_trace const&) = delete;
    perf_trace(perf_trace&& from) noexcept : file_{from.file_}, areas_{from.areas_} {
        from.forget();
    }
    auto operator=(perf_trace const&) -> perf_trace& = delete;
    auto operator=(perf_trace&& from) noexcept -> perf_trace& {
        if (this != &from) {
            close();
            file_ = from.file_;
            areas_ = from.areas_;
            from.forget();
        }
        return *this;
    }
    ~perf_trace() { close(); }

    /// Opens an event. Nothing is recorded before `map`.
    ///
    /// Errors: unsupported, refused; not_permitted, blocked, busy, no_such_thread, no_such_cpu,
    ///         too_many_files, no_memory, other.
    auto open(trace_options const& wanted, pmu const& of, trace_target const& target,
              kernel_files const& from = {}) noexcept -> trace_result {
        auto made = attributes_of(wanted, of);
        return made ? open(made.attr, target, detail::is_permitted(wanted, target, from))
                    : made.result;
    }
    /// The same with attributes of the caller.
    auto open(perf_event_attr const& attr, trace_target const& target,
              bool is_permitted = true) noexcept -> trace_result {
        close();
        auto bytes = file::to_bytes(attr);
        int error = 0;
        do {
            file_ = static_cast<int>(::syscall(SYS_perf_event_open, bytes.data(), target.thread,
                                               target.cpu, -1, PERF_FLAG_FD_CLOEXEC));
            error = file_ < 0 ? errno : 0;
        } while (error == EINTR);
        if (error == EINVAL && target.cpu >= 0 && !detail::has_cpu(target.cpu)) { error = ENODEV; }
        return detail::result_of_open(error, is_permitted);
    }
    /// Maps the areas. Without an AUX area, `aux` is 0.
    ///
    /// Errors: bad_size, over_memory_limit, no_memory, busy, other.
    auto map(area_sizes const& sizes) noexcept -> trace_result {
        unmap();
        size_t const page = detail::page_size();
        auto const is_good = [=](size_t size) { return size >= page && (size & (size - 1)) == 0; };
        bool const has_aux = sizes.aux != 0;
        if (!is_good(sizes.data) || (has_aux && !is_good(sizes.aux))) {
            return {failure::bad_size, 0};
        }
        auto* const first = map(page + sizes.data, 0, PROT_READ | PROT_WRITE);
        if (first == nullptr) { return detail::result_of_map(errno); }
        areas_.page = static_cast<perf_event_mmap_page*>(first);
        areas_.data = static_cast<uint8_t const*>(first) + page;
        areas_.data_size = sizes.data;
        if (!has_aux) { return {}; }
        areas_.page->aux_offset = page + sizes.data;
        areas_.page->aux_size = sizes.aux;
        int const access = sizes.is_snapshot ? PROT_READ : PROT_READ | PROT_WRITE;
        auto* const aux = map(sizes.aux, page + sizes.data, access);
        if (aux == nullptr) {
            auto const failed = detail::result_of_map(errno);
            unmap();
            return failed;
        }
        areas_.aux = static_cast<uint8_t const*>(aux);
        areas_.aux_size = sizes.aux;
        areas_.is_snapshot = sizes.is_snapshot;
        return {};
    }
    /// Sets the address filters, as `filter 0x1000/0x200@/bin/true`: those of
    /// `file::perf_data::address_filter_reader`, with commas or spaces between them. An event with
    /// none traces all code.
    ///
    /// Errors: bad_filter, not_permitted, other.
    auto set_filters(char const* filters) noexcept -> trace_result {
        int const error = control(PERF_EVENT_IOC_SET_FILTER,
                                  reinterpret_cast<unsigned long>(filters));
        switch (error) {
            case 0: return {};
            case EINVAL:
            case EOPNOTSUPP:
            case ENOENT:
            case ENOSPC: return {failure::bad_filter, error};
            case EACCES:
            case EPERM: return {failure::not_permitted, error};
            default: return {failure::other, error};
        }
    }
    /// Begins or continues to trace.
    ///
    /// Errors: other.
    auto enable() noexcept -> trace_result { return result_of(control(PERF_EVENT_IOC_ENABLE, 0)); }
    /// Stops tracing. The trace up to here is in the area when it returns.
    ///
    /// Errors: other.
    auto disable() noexcept -> trace_result {
        return result_of(control(PERF_EVENT_IOC_DISABLE, 0));
    }

    [[nodiscard]] auto areas() const noexcept -> mapped_areas const& { return areas_; }
    /// For poll(2): POLLIN, there is something to read; POLLHUP, the thread has ended.
    [[nodiscard]] auto descriptor() const noexcept -> int { return file_; }
    [[nodiscard]] auto is_open() const noexcept -> bool { return file_ >= 0; }
    void close() noexcept {
        unmap();
        if (file_ >= 0) { (void)::close(file_); }
        file_ = -1;
    }

private:
    void forget() noexcept {
        file_ = -1;
        areas_ = {};
    }
    void unmap() noexcept {
        if (areas_.aux != nullptr) {
            (void)::munmap(const_cast<uint8_t*>(areas_.aux), areas_.aux_size);
        }
        if (areas_.page != nullptr) {
            (void)::munmap(areas_.page, detail::page_size() + areas_.data_size);
        }
        areas_ = {};
    }
    auto map(size_t size, size_t at, int access) noexcept -> void* {
        void* const made = ::mmap(nullptr, size, access, MAP_SHARED, file_, static_cast<off_t>(at));
        return made == MAP_FAILED ? nullptr : made;
    }
    auto control(unsigned long what, unsigned long argument) noexcept -> int {
        int done = 0;
        do { done = ::ioctl(file_, what, argument); } while (done < 0 && errno == EINTR);
        return done < 0 ? errno : 0;
    }
    static auto result_of(int error) noexcept -> trace_result {
        return {error == 0 ? failure::none : failure::other, error};
    }

    int file_ = -1;
    mapped_areas areas_{};
};

}  // namespace ptspec::ports::perf_event
