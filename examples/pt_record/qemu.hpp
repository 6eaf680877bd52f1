// SPDX-License-Identifier: BSL-1.0
#pragma once

// Runs a program in QEMU's user mode with the plugin.

#include "recording.hpp"

#include <common/tool.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace pt_record {

/// The path of a program, as a shell finds it. Throws if there is none.
inline auto find_program(std::string const& name) -> std::string {
    if (name.find('/') != std::string::npos) {
        if (::access(name.c_str(), X_OK) != 0) {
            throw tool::failure{name + ": " + std::strerror(errno)};
        }
        return name;
    }
    char const* const variable = std::getenv("PATH");
    std::string_view left = variable != nullptr ? variable : "/usr/bin:/bin";
    for (;;) {
        std::size_t const colon = left.find(':');
        std::string const folder{left.substr(0, colon)};
        std::string const path = (folder.empty() ? "." : folder) + "/" + name;
        std::error_code ignored;
        if (::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, ignored)) {
            return path;
        }
        if (colon == std::string_view::npos) { break; }
        left.remove_prefix(colon + 1);
    }
    throw tool::failure{name + ": no such program in PATH"};
}

/// The command with the interpreter of a script before it, as the kernel executes it.
inline auto with_interpreter(std::vector<std::string> command) -> std::vector<std::string> {
    for (int depth = 0; depth < 4; ++depth) {
        std::ifstream in{command[0], std::ios::binary};
        std::string line;
        if (in.get() != '#' || in.get() != '!' || !std::getline(in, line)) { break; }
        std::size_t const first = line.find_first_not_of(" \t");
        if (first == std::string::npos) { break; }
        std::size_t const end = line.find_last_not_of(" \t") + 1;
        std::size_t const blank = std::min(line.find_first_of(" \t", first), end);
        if (std::size_t const rest = line.find_first_not_of(" \t", blank); rest < end) {
            command.insert(command.begin(), line.substr(rest, end - rest));
        }
        command.insert(command.begin(), line.substr(first, blank - first));
    }
    return command;
}

/// A value of QEMU's options: a comma is written twice.
inline auto option_value(std::string const& from) -> std::string {
    std::string to;
    for (char const letter : from) {
        to += letter;
        if (letter == ',') { to += letter; }
    }
    return to;
}

/// The command that runs a program in QEMU with the plugin.
inline auto qemu_command(std::string const& qemu, std::string const& plugin,
                         std::string const& directory, std::vector<std::string> const& program)
    -> std::vector<std::string> {
    std::vector<std::string> all{qemu, "-plugin",
                                 option_value(plugin) + ",directory=" + option_value(directory)};
    all.insert(all.end(), program.begin(), program.end());
    return all;
}

}  // namespace pt_record
