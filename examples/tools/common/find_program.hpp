// SPDX-License-Identifier: BSL-1.0
#pragma once

// Finds the file of a program that the user named.

#include "tool.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace tool {

/// The path of a program, as a shell finds it. Throws if there is none.
inline auto find_program(std::string const& program) -> std::string {
    if (program.find('/') != std::string::npos) {
        std::error_code ignored;
        if (std::filesystem::is_directory(program, ignored)) {
            throw failure{program + ": Is a directory"};
        }
        if (::access(program.c_str(), X_OK) != 0) {
            throw failure{program + ": " + std::strerror(errno)};
        }
        return program;
    }
    char const* const variable = std::getenv("PATH");
    std::string_view left = variable != nullptr ? variable : "/usr/bin:/bin";
    for (;;) {
        std::size_t const colon = left.find(':');
        std::string const folder{left.substr(0, colon)};
        std::string const path = (folder.empty() ? "." : folder) + "/" + program;
        std::error_code ignored;
        if (::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, ignored)) {
            return path;
        }
        if (colon == std::string_view::npos) { break; }
        left.remove_prefix(colon + 1);
    }
    throw failure{program + ": no such program in PATH"};
}

}  // namespace tool
