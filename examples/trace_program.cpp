// SPDX-License-Identifier: BSL-1.0

// Traces a program on Linux while it runs, without perf, and counts its branches.
//
//   g++ -std=c++20 -Iinclude examples/trace_program.cpp -o trace_program && ./trace_program ls

#include "standard_output.hpp"

#include <ptspec/events.hpp>
#include <ptspec/ports/perf_event.hpp>

#include <cstdio>

using namespace ptspec;
using namespace ptspec::ports;

/// Counts the branches of a trace that comes in chunks.
struct branch_counter {
    trace::event_reader<> events{};
    unsigned long long branches = 0, gaps = 0;

    void trace(perf_event::aux_bytes const& bytes) {
        for (auto const part : bytes.parts) {
            for ((void)events.feed(part);;) {
                auto const& one = events.next();
                if (one.what == trace::event_type::need_input) { break; }
                if (one.what == trace::event_type::branches) { branches += one.branches().count; }
                if (one.what == trace::event_type::indirect_branch) { ++branches; }
            }
        }
    }
    void record(file::perf_data::record const&) {}
    void gap(uint64_t, perf_event::loss) { events = trace::event_reader<>{}, ++gaps; }
};

auto main(int count, char** arguments) -> int {
    if (count < 2) { return std::puts("usage: trace_program PROGRAM [ARGUMENT..]") < 0 ? 1 : 0; }
    auto const pmu = perf_event::read_pmu();
    perf_event::program child;
    perf_event::perf_trace trace;
    constexpr perf_event::trace_options user{{.user = true}, perf_event::begin::at_exec};
    auto done = pmu.result;
    if (done) { done = child.start(arguments + 1); }
    if (done) { done = trace.open(user, pmu.pmu, {.thread = child.thread()}); }
    if (done) { done = trace.map({}); }
    if (done) { done = child.run(); }
    if (!done) { return std::fprintf(stderr, "%s\n", describe(done.what).data()) < 0 ? 2 : 1; }
    perf_event::area_reader areas{trace.areas()};
    branch_counter counted;
    done = follow(trace, areas, counted);
    std::printf("%llu branches, %llu gaps\n", counted.branches, counted.gaps);
    return child.wait() == 0 && done ? 0 : 1;
}
