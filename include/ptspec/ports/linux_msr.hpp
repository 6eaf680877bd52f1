// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/ports/open_result.hpp>

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

/// The MSRs and CPUID of a logical processor, through the Linux devices /dev/cpu/N/msr and
/// /dev/cpu/N/cpuid. They need root, and the kernel modules `msr` and `cpuid`.
namespace ptspec::ports {

namespace detail {

/// A file with a record at each offset.
class record_file {
public:
    constexpr record_file() noexcept = default;
    record_file(record_file const&) = delete;
    record_file(record_file&& from) noexcept : file_{from.file_}, error_{from.error_} {
        from.file_ = -1;
    }
    auto operator=(record_file const&) -> record_file& = delete;
    auto operator=(record_file&& from) noexcept -> record_file& {
        if (this != &from) {
            close();
            file_ = from.file_;
            error_ = from.error_;
            from.file_ = -1;
        }
        return *this;
    }
    ~record_file() { close(); }

    auto open(char const* path, int flags) noexcept -> open_result {
        close();
        do { file_ = ::open(path, flags | O_CLOEXEC); } while (file_ < 0 && errno == EINTR);
        return {file_ < 0 ? errno : 0};
    }
    void close() noexcept {
        if (file_ >= 0) { (void)::close(file_); }
        file_ = -1;
    }
    [[nodiscard]] auto is_open() const noexcept -> bool { return file_ >= 0; }
    [[nodiscard]] auto error() const noexcept -> int { return error_; }

    /// Transfers a record. False, and an error, unless all of it was transferred.
    auto read(uint64_t offset, void* buffer, size_t bytes) noexcept -> bool {
        return transfer(offset, bytes, [&](off_t at) { return ::pread(file_, buffer, bytes, at); });
    }
    auto write(uint64_t offset, void const* buffer, size_t bytes) noexcept -> bool {
        return transfer(offset, bytes,
                        [&](off_t at) { return ::pwrite(file_, buffer, bytes, at); });
    }

private:
    template <class Call>
    auto transfer(uint64_t offset, size_t bytes, Call call) noexcept -> bool {
        auto const at = static_cast<off_t>(offset);
        if (at < 0 || static_cast<uint64_t>(at) != offset) {
            error_ = EOVERFLOW;
            return false;
        }
        ssize_t done = 0;
        do { done = call(at); } while (done < 0 && errno == EINTR);
        error_ = done < 0 ? errno : static_cast<size_t>(done) != bytes ? ENODATA : 0;
        return error_ == 0;
    }

    int file_ = -1;
    int error_ = 0;
};

/// /dev/cpu/N/NAME.
struct device_path {
    char letters[40] = {};

    constexpr device_path(unsigned cpu, char const* name) noexcept {
        size_t at = append(0, "/dev/cpu/");
        char digits[10] = {};
        size_t count = 0;
        do {
            digits[count++] = static_cast<char>('0' + cpu % 10);
            cpu /= 10;
        } while (cpu != 0);
        while (count != 0) { letters[at++] = digits[--count]; }
        (void)append(append(at, "/"), name);
    }

private:
    constexpr auto append(size_t at, char const* word) noexcept -> size_t {
        while (*word != '\0') { letters[at++] = *word++; }
        return at;
    }
};

}  // namespace detail

/// The MSRs of a logical processor, as a `driver::fenced_msr_port`. Each access is a system call
/// that interrupts this processor.
///
/// Errors: an access fails if it raises #GP, and if the kernel refuses it: see `error`.
/// Source: msr(4).
class linux_msrs {
public:
    /// Opens /dev/cpu/N/msr. Without `writable` every write fails with EBADF.
    auto open(unsigned cpu, bool writable = true) noexcept -> open_result {
        return open_file(detail::device_path{cpu, "msr"}.letters, writable);
    }
    /// Opens another file in which the 8 bytes at offset N are MSR N.
    auto open_file(char const* path, bool writable = true) noexcept -> open_result {
        return file_.open(path, writable ? O_RDWR : O_RDONLY);
    }
    void close() noexcept { file_.close(); }
    [[nodiscard]] auto is_open() const noexcept -> bool { return file_.is_open(); }

    auto read(uint32_t index) noexcept -> port_value {
        port_value got;
        got.has_value = file_.read(index, &got.value, sizeof got.value);
        return got.has_value ? got : port_value{};
    }
    auto write(uint32_t index, uint64_t value) noexcept -> bool {
        return file_.write(index, &value, sizeof value);
    }
    /// Orders the reads of this program. The kernel makes the trace visible: it executes stores on
    /// the traced processor between an access and the return of the system call. Source: PRG-062.
    void fence() noexcept { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

    /// The errno of the last access; 0 if it was done. EIO is a #GP; EPERM, a kernel that allows no
    /// write; EBADF, a device that is not open; ENODATA, fewer than 8 bytes; EOVERFLOW, an index
    /// that is too large for a 32-bit off_t.
    [[nodiscard]] auto error() const noexcept -> int { return file_.error(); }

private:
    detail::record_file file_{};
};

/// CPUID of a logical processor, as a `cpuid_port`.
///
/// Errors: all zeros, and `error`. A 32-bit program needs _FILE_OFFSET_BITS=64.
/// Source: cpuid(4).
class linux_cpuid {
public:
    /// Opens /dev/cpu/N/cpuid.
    auto open(unsigned cpu) noexcept -> open_result {
        return open_file(detail::device_path{cpu, "cpuid"}.letters);
    }
    /// Opens another file in which the 16 bytes at offset `subleaf << 32 | leaf` are EAX, EBX, ECX
    /// and EDX.
    auto open_file(char const* path) noexcept -> open_result { return file_.open(path, O_RDONLY); }
    void close() noexcept { file_.close(); }
    [[nodiscard]] auto is_open() const noexcept -> bool { return file_.is_open(); }

    [[nodiscard]] auto query(uint32_t leaf, uint32_t subleaf) noexcept -> cpuid_registers {
        cpuid_registers got;
        static_assert(sizeof got == 16);
        bool const done = file_.read(uint64_t{subleaf} << 32 | leaf, &got, sizeof got);
        return done ? got : cpuid_registers{};
    }

    /// The errno of the last query, as in `linux_msrs`.
    [[nodiscard]] auto error() const noexcept -> int { return file_.error(); }

private:
    detail::record_file file_{};
};

static_assert(driver::fenced_msr_port<linux_msrs> && cpuid_port<linux_cpuid>);

}  // namespace ptspec::ports
