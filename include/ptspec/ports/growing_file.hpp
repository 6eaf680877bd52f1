// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/open_result.hpp>
#include <ptspec/trace/write/batch.hpp>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace ptspec::ports {

/// A file that grows as packets are appended: a `trace::wide_packet_sink` for a trace without a
/// limit on its size.
///
/// The end of the file is mapped. Space is allocated before it is mapped, so that on a full disk
/// `append` fails instead of raising SIGBUS. Until `close`, zeros follow the last byte, which are
/// PADs in a trace: the file is readable after the process was killed, too.
///
/// If the program closes all descriptors of its process, the file is opened again by its path,
/// which should be absolute.
///
/// Errors: `append` returns false if space cannot be allocated, and tries again with the next
/// packet; `error` is the reason, such as ENOSPC, or EBADF if the program closed the descriptor and
/// the path has another file or none.
class growing_file {
public:
    constexpr growing_file() noexcept = default;
    growing_file(growing_file const&) = delete;
    auto operator=(growing_file const&) -> growing_file& = delete;
    ~growing_file() { (void)close(); }

    /// Creates a file, or truncates an existing one. `step` bytes are mapped at first, and up to
    /// 256 times as many at once later. `step` must be a multiple of the page size.
    auto create(char const* path, size_t step = 65'536) noexcept -> open_result {
        return open(path, O_CREAT | O_TRUNC, 0, step);
    }
    /// Opens an existing file, to append after its first `bytes` bytes. The bytes after these are
    /// removed.
    auto resume(char const* path, uint64_t bytes, size_t step = 65'536) noexcept -> open_result {
        auto const opened = open(path, 0, bytes, step);
        if (opened && ::ftruncate(file_, static_cast<off_t>(bytes)) != 0) { note(errno); }
        return {error_};
    }
    /// Unmaps the file, sets its size to that of the trace, and closes it. Returns the errno of the
    /// first error since `create`, or 0.
    auto close() noexcept -> int {
        if (file_ < 0) { return error_; }
        uint64_t const bytes = size();
        unmap();
        if (!is_own() && !open_again()) {
            note(EBADF);
        } else {
            if (::ftruncate(file_, static_cast<off_t>(bytes)) != 0) { note(errno); }
            if (::close(file_) != 0) { note(errno); }
        }
        file_ = -1;
        window_at_ = 0;
        return error_;
    }
    /// Closes the file without a change to it: for the child after a fork.
    void abandon() noexcept {
        if (file_ < 0) { return; }
        unmap();
        if (is_own()) { (void)::close(file_); }
        file_ = -1;
        error_ = 0;
        window_at_ = 0;
    }
    [[nodiscard]] auto is_open() const noexcept -> bool { return file_ >= 0; }
    /// The size of the trace in bytes.
    [[nodiscard]] auto size() const noexcept -> uint64_t {
        return window_at_ + static_cast<uint64_t>(next_ - first_);
    }
    /// The errno of the first error; 0 if there was none.
    [[nodiscard]] auto error() const noexcept -> int { return error_; }

    auto append(wide_bits bytes, size_t count) noexcept -> bool {
        if (static_cast<size_t>(end_ - next_) < 16) [[unlikely]] {
            return append(byte_view{to_le(bytes)}.first(count));
        }
        store_le64(next_, bytes.low);
        store_le64(next_ + 8, bytes.high);
        next_ += count;
        return true;
    }
    auto append(byte_view bytes) noexcept -> bool {
        if (static_cast<size_t>(end_ - next_) < bytes.size() && !grow(bytes.size())) {
            return false;
        }
        copy_bytes(next_, bytes.data(), bytes.size());
        next_ += bytes.size();
        return true;
    }

private:
    auto open(char const* path, int flags, uint64_t bytes, size_t step) noexcept -> open_result {
        (void)close();
        do {
            file_ = ::open(path, O_RDWR | O_CLOEXEC | flags, 0666);
        } while (file_ < 0 && errno == EINTR);
        error_ = file_ < 0 ? errno : 0;
        if (file_ >= 0) { take_identity(); }
        size_t length = 0;
        while (file_ >= 0 && path[length] != 0 && length + 1 < sizeof path_) { ++length; }
        copy_bytes(reinterpret_cast<uint8_t*>(path_), reinterpret_cast<uint8_t const*>(path),
                   length);
        path_[length] = 0;
        window_at_ = bytes;
        step_ = step;
        max_length_ = step * 256;
        return {error_};
    }
    void take_identity() noexcept {
        move_up();
        struct stat about{};
        if (::fstat(file_, &about) != 0) { note(errno); }
        device_ = about.st_dev;
        inode_ = about.st_ino;
    }
    /// Gives the descriptor a high number. The recorded program runs in the same process, and may
    /// expect low numbers for its own files.
    void move_up() noexcept {
        int const high = ::fcntl(file_, F_DUPFD_CLOEXEC, 512);
        if (high < 0) { return; }
        (void)::close(file_);
        file_ = high;
    }
    /// Opens the file again after the program closed its descriptor. False if another file, or
    /// none, is at the path.
    auto open_again() noexcept -> bool {
        int const before = file_;
        do { file_ = ::open(path_, O_RDWR | O_CLOEXEC); } while (file_ < 0 && errno == EINTR);
        if (file_ >= 0) {
            move_up();
            if (is_own()) { return true; }
            (void)::close(file_);
        }
        file_ = before;
        return false;
    }
    /// False if the program has closed the descriptor, or uses its number for another file.
    [[nodiscard]] auto is_own() const noexcept -> bool {
        struct stat about{};
        return ::fstat(file_, &about) == 0 && about.st_dev == device_ && about.st_ino == inode_;
    }
    void note(int error) noexcept { error_ = error_ != 0 ? error_ : error; }
    void unmap() noexcept {
        if (first_ != nullptr) { (void)::munmap(first_, static_cast<size_t>(end_ - first_)); }
        first_ = next_ = end_ = nullptr;
    }
    /// Maps the end of the trace with room for `more` bytes, or for as many bytes as the file has,
    /// if there is space for them.
    auto grow(size_t more) noexcept -> bool {
        if (file_ < 0) { return false; }
        uint64_t const bytes = size();
        uint64_t const past_step = bytes % step_;
        auto const used = static_cast<size_t>(past_step);
        size_t const min_length = (used + more + step_ - 1) / step_ * step_;
        size_t length = step_;
        while (length < max_length_ && length < bytes) { length *= 2; }
        int const before = error_;
        if (length > min_length && map(bytes - used, length, used)) { return true; }
        error_ = before;  // the smaller window may still succeed
        return map(bytes - used, min_length, used);
    }
    /// Allocates space; returns an errno or 0. Beyond the limit on the size of files the kernel
    /// would send SIGXFSZ.
    auto allocate(uint64_t at, size_t length) const noexcept -> int {
        ::rlimit limit{};
        if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && at + length > limit.rlim_cur) {
            return EFBIG;
        }
        int error = 0;
        do {
            error = ::posix_fallocate(file_, static_cast<off_t>(at), static_cast<off_t>(length));
        } while (error == EINTR);
        return error;
    }
    /// Allocates and maps `length` bytes at `at`, in place of the present window. The trace ends
    /// `used` bytes after `at`.
    auto map(uint64_t at, size_t length, size_t used) noexcept -> bool {
        int const refused = is_own() || open_again() ? allocate(at, length) : EBADF;
        void* const window = refused != 0 ? MAP_FAILED
                                          : ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                                                   MAP_SHARED, file_, static_cast<off_t>(at));
        if (window == MAP_FAILED) {
            if (error_ == 0) { error_ = refused != 0 ? refused : errno; }
            return false;
        }
        unmap();
        window_at_ = at;
        first_ = static_cast<uint8_t*>(window);
        next_ = first_ + used;
        end_ = first_ + length;
        return true;
    }

    uint8_t* next_ = nullptr;
    uint8_t* end_ = nullptr;
    uint8_t* first_ = nullptr;
    uint64_t window_at_ = 0;  ///< the offset of `first_` in the file
    size_t step_ = 0;
    size_t max_length_ = 0;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    int file_ = -1;
    int error_ = 0;
    char path_[PATH_MAX] = {};
};

static_assert(trace::wide_packet_sink<growing_file>);

}  // namespace ptspec::ports
