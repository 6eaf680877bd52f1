// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <benchmark/benchmark.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <time.h>

/// Measures two functions in alternation in one process, so that both run under the same
/// conditions.
namespace ptspec::bench {

/// The processor time of this thread.
inline auto nanoseconds() -> double {
    timespec now{};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Body>
auto time_of(Body const& body) -> double {
    double const begin = nanoseconds();
    body();
    return nanoseconds() - begin;
}

/// A function for `compare` that returns the time of `body`.
template <class Body>
auto timed(Body const& body) {
    return [&body] { return time_of(body); };
}
/// The same for a body that uses several threads: the time that passes.
template <class Body>
auto timed_threads(Body const& body) {
    return [&body] {
        auto const begin = std::chrono::steady_clock::now();
        body();
        auto const passed = std::chrono::steady_clock::now() - begin;
        return std::chrono::duration<double, std::nano>(passed).count();
    };
}

inline auto median(std::vector<double> values) -> double {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Compares two functions, each of which returns the nanoseconds that it took for `units` packets
/// or bytes.
///
/// The counters of the row: `ratio` (median), `min` and `max`, how many times as fast as theirs
/// ours is; `ours_ns` and `their_ns`, the median time of one unit.
template <class Ours, class Theirs>
void compare(benchmark::State& state, double units, Ours const& ours, Theirs const& theirs) {
    std::vector<double> ratios;
    std::vector<double> our_times;
    std::vector<double> their_times;
    bool they_begin = false;
    for (auto _ : state) {
        double const before = they_begin ? theirs() : 0;
        double const one = ours();
        double const two = they_begin ? before : theirs();
        they_begin = !they_begin;
        ratios.push_back(two / one);
        our_times.push_back(one / units);
        their_times.push_back(two / units);
        state.SetIterationTime((one + two) * 1e-9);
    }
    auto const [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    state.counters["ratio"] = median(ratios);
    state.counters["min"] = *low;
    state.counters["max"] = *high;
    state.counters["ours_ns"] = median(our_times);
    state.counters["their_ns"] = median(their_times);
}

/// Runs `body` once under callgrind instrumentation, and prints the row and its number of units.
template <class Body>
void count(std::string_view row, size_t units, Body const& body) {
    std::string const name{row};
    CALLGRIND_START_INSTRUMENTATION;
    body();
    CALLGRIND_DUMP_STATS_AT(name.c_str());
    CALLGRIND_STOP_INSTRUMENTATION;
    std::printf("%s %zu\n", name.c_str(), units);
}

/// The command line of a benchmark program: its own options, then those of Google Benchmark.
struct arguments {
    char const* real = nullptr;             ///< --real FILE
    char const* cyc = nullptr;              ///< --cyc FILE
    size_t size;                            ///< --mega N, in bytes
    std::vector<std::string_view> counted;  ///< --count ROW, any number of times

    /// Exits with status 2 on wrong usage.
    arguments(int argc, char** argv, size_t usual_megabytes) : size{usual_megabytes << 20} {
        std::vector<char*> rest{argv[0]};
        for (int i = 1; i < argc; ++i) {
            std::string_view const word = argv[i];
            if (word == "--real" && i + 1 < argc) {
                real = argv[++i];
            } else if (word == "--cyc" && i + 1 < argc) {
                cyc = argv[++i];
            } else if (word == "--mega" && i + 1 < argc) {
                size = static_cast<size_t>(std::strtoull(argv[++i], nullptr, 10)) << 20;
            } else if (word == "--count" && i + 1 < argc) {
                counted.push_back(argv[++i]);
            } else {
                rest.push_back(argv[i]);
            }
        }
        int left = static_cast<int>(rest.size());
        benchmark::Initialize(&left, rest.data());
        if (benchmark::ReportUnrecognizedArguments(left, rest.data()) || size == 0) {
            std::exit(2);
        }
    }
};

}  // namespace ptspec::bench
