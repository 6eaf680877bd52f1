// SPDX-License-Identifier: BSL-1.0
#pragma once

// A process that already runs: its threads, name and mappings.

#include "recording.hpp"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace pt_trace {

/// The threads of a process; empty: there is no such process.
inline auto threads_of(int process) -> std::vector<int> {
    std::vector<int> all;
    std::error_code why;
    auto const folder = "/proc/" + std::to_string(process) + "/task";
    for (auto const& one : std::filesystem::directory_iterator{folder, why}) {
        all.push_back(std::stoi(one.path().filename().string()));
    }
    return all;
}

/// All processes that this user sees.
inline auto all_processes() -> std::vector<int> {
    std::vector<int> all;
    std::error_code why;
    for (auto const& one : std::filesystem::directory_iterator{"/proc", why}) {
        auto const name = one.path().filename().string();
        if (name.find_first_not_of("0123456789") == std::string::npos) {
            all.push_back(std::stoi(name));
        }
    }
    return all;
}

/// Writes the name and the code of a process as the kernel would have, had it been traced then.
inline void write_process(int process, tool::perf_data_file& to) {
    auto const folder = "/proc/" + std::to_string(process);
    auto const id = static_cast<std::uint32_t>(process);
    std::string name;
    std::ifstream comm{folder + "/comm"};
    std::getline(comm, name);
    if (name.empty()) { return; }  // it has ended
    for (auto const thread : threads_of(process)) {
        to.write(perf_data::comm_record{.pid = id, .tid = static_cast<std::uint32_t>(thread)},
                 text{name.data(), name.size()});
    }
    std::ifstream maps{folder + "/maps"};
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words{line};
        std::uint64_t first = 0, end = 0, offset = 0, inode = 0;
        std::uint32_t major = 0, minor = 0;
        char separator = 0;
        std::string access, path;
        words >> std::hex >> first >> separator >> end >> access >> offset >> major >> separator >>
            minor >> std::dec >> inode >> std::ws;
        std::getline(words, path);
        if (access.size() < 4 || access[2] != 'x') { continue; }
        if (path.empty()) { path = "//anon"; }
        perf_data::mmap2_record const mapping{
            .pid = id,
            .tid = id,
            .addr = first,
            .len = end - first,
            .pgoff = offset,
            .inode = {.dev_major = major, .dev_minor = minor, .ino = inode},
            .prot = perf_data::prot_read | perf_data::prot_exec,
            .flags = perf_data::map_private};
        to.write(mapping, text{path.data(), path.size()});
    }
}

}  // namespace pt_trace
