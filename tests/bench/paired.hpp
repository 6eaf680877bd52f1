// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

/// Two ways to do something, measured in turns in one process, so that both meet the same machine.
namespace ptspec::bench {

inline auto nanoseconds() -> double {
    auto const now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(now).count();
}

template <class Body>
auto time_of(Body const& body) -> double {
    double const begin = nanoseconds();
    body();
    return nanoseconds() - begin;
}

/// What `compare` measures: `body`, with nothing around it.
template <class Body>
auto timed(Body const& body) {
    return [&body] { return time_of(body); };
}

inline auto median(std::vector<double> values) -> double {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Measures two against each other, each of which returns the nanoseconds that it took; `units` is
/// what the time is told for: packets, or bytes.
///
/// The counters of the row: `ratio` (median), `min` and `max`, the times that ours is faster;
/// `ours_ns` and `their_ns`, medians for one unit.
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

}  // namespace ptspec::bench
