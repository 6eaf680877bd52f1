// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "tool.hpp"

#include <algorithm>
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

}  // namespace tool
