// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "tool.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace tool {

/// A progress bar on standard error, of a task of `total` bytes. It is shown at a terminal, and for
/// more than 16 MB.
class progress {
public:
    explicit progress(std::uint64_t total)
        : total_{::isatty(STDERR_FILENO) == 1 && total > 16U << 20 ? total : 0} {}
    progress(progress const&) = delete;
    auto operator=(progress const&) -> progress& = delete;
    ~progress() {
        if (shown_ >= 0) { clear_progress(); }
    }

    void at(std::uint64_t done) {
        if (total_ == 0) { return; }
        int const percent = static_cast<int>(std::min(done, total_) * 100 / total_);
        if (percent == shown_) { return; }
        shown_ = percent;
        shows_progress = true;
        std::string const bar(static_cast<std::size_t>(percent / 2), '#');
        std::fprintf(stderr, "\r[%-50s] %3d %%", bar.c_str(), percent);
        std::fflush(stderr);
    }

private:
    std::uint64_t total_;
    int shown_ = -1;
};

/// The progress of a task of unknown length: a line on standard error, if that is a terminal. It is
/// updated up to five times a second, and cleared by messages and at the end.
class status_line {
public:
    status_line() = default;
    status_line(status_line const&) = delete;
    auto operator=(status_line const&) -> status_line& = delete;
    ~status_line() {
        if (is_shown_) { clear_progress(); }
    }

    /// `text()` is the line.
    template <class Text>
    void show(Text const& text) {
        using clock = std::chrono::steady_clock;
        auto const now = clock::now();
        if (!is_terminal_ || now - last_ < std::chrono::milliseconds{200}) { return; }
        last_ = now;
        is_shown_ = shows_progress = true;
        std::fprintf(stderr, "\r%s\033[K", text().c_str());
        std::fflush(stderr);
    }

private:
    bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
    bool is_shown_ = false;
    std::chrono::steady_clock::time_point last_{};
};

}  // namespace tool
