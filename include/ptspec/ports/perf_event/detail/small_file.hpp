// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

/// Reads the small files of the kernel: a number or a word each.
namespace ptspec::ports::perf_event::detail {

/// A path in parts, `folder/part/part`. Empty if it is too long.
struct small_path {
    char letters[512] = {};

    template <class... Part>
    explicit small_path(char const* folder, Part const*... parts) noexcept {
        bool const fits = append(folder) && ((append("/") && append(parts)) && ...);
        if (!fits) { letters[0] = 0; }
    }

private:
    auto append(char const* part) noexcept -> bool {
        for (; *part != 0; ++part, ++size_) {
            if (size_ + 1 == sizeof letters) { return false; }
            letters[size_] = *part;
        }
        return true;
    }

    size_t size_ = 0;
};

/// The first bytes of a file, as text.
class small_file {
public:
    explicit small_file(char const* path) noexcept {
        int file = -1;
        do { file = ::open(path, O_RDONLY | O_CLOEXEC); } while (file < 0 && errno == EINTR);
        error_ = file < 0 ? errno : 0;
        ssize_t got = 1;
        while (file >= 0 && got > 0 && size_ < sizeof letters_) {
            do {
                got = ::read(file, letters_ + size_, sizeof letters_ - size_);
            } while (got < 0 && errno == EINTR);
            if (got < 0) { error_ = errno; }
            size_ += got > 0 ? static_cast<size_t>(got) : 0;
        }
        if (file >= 0) { (void)::close(file); }
    }

    /// The errno of what could not be done.
    [[nodiscard]] auto error() const noexcept -> int { return error_; }
    [[nodiscard]] auto content() const noexcept -> text { return {letters_, size_}; }

private:
    char letters_[256] = {};
    size_t size_ = 0;
    int error_ = 0;
};

/// Takes text from the front: words, and numbers in decimal or hexadecimal without a prefix.
class text_reader {
public:
    constexpr explicit text_reader(text from) noexcept
        : at_{from.data()}, end_{from.data() + from.size()} {}

    [[nodiscard]] constexpr auto is_at_end() const noexcept -> bool {
        char const* rest = at_;
        while (rest != end_ && (*rest == '\n' || *rest == ' ')) { ++rest; }
        return rest == end_;
    }
    /// Takes these letters, if they are next.
    constexpr auto take(text word) noexcept -> bool {
        if (static_cast<size_t>(end_ - at_) < word.size()) { return false; }
        for (size_t i = 0; i < word.size(); ++i) {
            if (at_[i] != word.data()[i]) { return false; }
        }
        at_ += word.size();
        return true;
    }
    /// Takes a number. False if there is none, or it has more than 64 bits.
    constexpr auto take_number(uint64_t& to, unsigned base = 10) noexcept -> bool {
        uint64_t made = 0;
        bool has_digits = false;
        for (; at_ != end_; ++at_, has_digits = true) {
            unsigned const digit = digit_of(*at_);
            if (digit >= base) { break; }
            if (made > (~uint64_t{0} - digit) / base) { return false; }
            made = made * base + digit;
        }
        to = made;
        return has_digits;
    }

private:
    static constexpr auto digit_of(char letter) noexcept -> unsigned {
        if (letter >= '0' && letter <= '9') { return static_cast<unsigned>(letter - '0'); }
        if (letter >= 'a' && letter <= 'f') { return static_cast<unsigned>(letter - 'a' + 10); }
        if (letter >= 'A' && letter <= 'F') { return static_cast<unsigned>(letter - 'A' + 10); }
        return ~0U;
    }

    char const* at_;
    char const* end_;
};

/// The number that a file has, and nothing else.
struct file_number {
    uint64_t value = 0;
    int error = 0;  ///< of `open` and `read`; EINVAL: no number

    constexpr explicit operator bool() const noexcept { return error == 0; }
};
inline auto number_in(small_path const& path, unsigned base = 10) noexcept -> file_number {
    small_file const file{path.letters};
    if (file.error() != 0) { return {0, file.error()}; }
    text_reader reader{file.content()};
    file_number made;
    bool const is_number = reader.take_number(made.value, base) && reader.is_at_end();
    return is_number ? made : file_number{0, EINVAL};
}

}  // namespace ptspec::ports::perf_event::detail
