// SPDX-License-Identifier: BSL-1.0
#pragma once

// Included by a program that prints with functions of <cstdio>: at its end, an error of standard
// output becomes a line on standard error and the status 2. tool.hpp has the same for its tools.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace standard_output {

inline void check() {
    errno = 0;
    bool const is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (is_written) { return; }
    if (errno != EPIPE) {
        std::fprintf(stderr, "standard output: %s\n",
                     errno != 0 ? std::strerror(errno) : "not all could be written");
    }
    std::_Exit(2);
}
inline int const is_checked = std::atexit(check);

}  // namespace standard_output
