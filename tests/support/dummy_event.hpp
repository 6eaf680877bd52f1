// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/perf_event/perf_trace.hpp>

#include <support/skip.hpp>

#include <doctest/doctest.h>

#include <dirent.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace ptspec::test {

using namespace ptspec::ports::perf_event;

/// The attributes of an event without a trace, which every kernel has: the same records.
inline auto dummy() -> file::perf_data::perf_event_attr {
    auto made = attributes_of(
        {.config = {.user = true}, .begin = begin::at_exec, .records_switches = true}, {});
    made.attr.type = uint32_t{PERF_TYPE_SOFTWARE};
    made.attr.config = uint64_t{PERF_COUNT_SW_DUMMY};
    made.attr.sample_period = uint64_t{0};
    return made.attr;
}
/// Whether an event may be opened, which many containers refuse. Else `part` is skipped.
inline auto may_open(char const* part) -> bool {
    perf_trace one;
    auto const done = one.open(dummy(), {});
    if (!done) { skip(std::string{"perf_event_open: "} + describe(done.what).data(), part); }
    return static_cast<bool>(done);
}
/// The descriptors, and the mappings of events.
inline auto resources() -> std::vector<std::string> {
    std::vector<std::string> all;
    if (DIR* const folder = ::opendir("/proc/self/fd")) {
        while (auto const* const one = ::readdir(folder)) { all.emplace_back(one->d_name); }
        ::closedir(folder);
    }
    if (std::FILE* const maps = std::fopen("/proc/self/maps", "r")) {
        char line[512];
        while (std::fgets(line, sizeof line, maps) != nullptr) {
            if (std::string_view{line}.find("perf_event") != std::string_view::npos) {
                all.emplace_back(line);
            }
        }
        (void)std::fclose(maps);
    }
    return all;
}

}  // namespace ptspec::test
