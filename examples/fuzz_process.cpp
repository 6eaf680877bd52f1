// SPDX-License-Identifier: BSL-1.0

// A fuzzer of a function in its own process, guided by the processor's Intel PT: it keeps each
// input whose execution has a new edge, and so finds the one of 2^24 for which the function is
// true. Tracing is on only while the function runs, and only in code of this program.
//
//   g++ -std=c++20 -O1 -Iinclude examples/fuzz_process.cpp -o fuzz_process && ./fuzz_process 100000

#include "standard_output.hpp"

#include <ptspec/flow.hpp>
#include <ptspec/ports/perf_event.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <link.h>
#include <unistd.h>

namespace {

using namespace ptspec;
namespace perf_event = ports::perf_event;

/// The function that is tested.
[[gnu::noinline]] auto is_magic(char const* input) -> bool {
    if (input[0] != 'P') { return false; }
    if (input[1] != 'T') { return false; }
    return input[2] == '!';
}

/// The code of this program, where it is: its executable segment.
struct own_code {
    std::uint64_t first = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  ///< in the file

    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t) const -> byte_view {
        if (address - first >= size) { return {}; }
        auto const left = size - (address - first);
        return {reinterpret_cast<std::uint8_t const*>(address), static_cast<std::size_t>(left)};
    }
    /// As the kernel takes it. Linux takes the first byte of a mapping for one of the mapping that
    /// ends there, whose range is then empty.
    [[nodiscard]] auto filter() const -> std::string {
        char path[4096] = {};
        if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0) { return {}; }
        return "filter " + std::to_string(offset + 1) + "/" + std::to_string(size - 1) + "@" + path;
    }
};
/// The program is the first that the loader lists.
auto find_code() -> own_code {
    own_code found;
    (void)::dl_iterate_phdr(
        [](dl_phdr_info* program, std::size_t, void* to) {
            for (unsigned i = 0; i < program->dlpi_phnum; ++i) {
                auto const& one = program->dlpi_phdr[i];
                if (one.p_type != PT_LOAD || (one.p_flags & PF_X) == 0) { continue; }
                *static_cast<own_code*>(to) = {program->dlpi_addr + one.p_vaddr, one.p_filesz,
                                               one.p_offset};
            }
            return 1;
        },
        &found);
    return found;
}

/// Counts the edges of an execution from the trace in the ring, without a copy.
struct edge_counter {
    flow::walker<own_code>& walker;
    flow::coverage& counts;
    std::uint64_t bytes = 0, gaps = 0;

    void trace(perf_event::aux_bytes const& trace) {
        bytes += trace.size();
        for (auto const part : trace.parts) { take(part); }
    }
    void record(file::perf_data::record const&) {}
    void gap(std::uint64_t, perf_event::loss) { ++gaps; }
    void take(byte_view bytes_of_trace) {
        (void)walker.feed(bytes_of_trace);
        (void)walker.run(counts);
    }
    /// The walker reads ahead: a packet without effect ends the trace of this execution.
    void end_execution() {
        constexpr std::uint8_t cbr[] = {0x02, 0x03, 0x01, 0x00};
        take(byte_view{cbr});
    }
};

auto fails(perf_event::trace_result const& done) -> bool {
    if (!done) { std::fprintf(stderr, "%s\n", describe(done.what).data()); }
    return !done;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    if (count != 2) { return std::puts("usage: fuzz_process EXECUTIONS") < 0 ? 1 : 0; }
    auto code = find_code();
    auto const pmu = perf_event::read_pmu();
    perf_event::perf_trace trace;
    if (fails(pmu.result) || fails(trace.open({.config = {.user = true}}, pmu.pmu, {})) ||
        fails(trace.map({})) || fails(trace.set_filters(code.filter().c_str()))) {
        return 1;
    }
    std::vector<flow::block> blocks(4096);
    std::vector<flow::run> runs(4096);
    flow::block_cache cache{blocks.data(), blocks.size()};
    flow::run_table known{runs.data(), runs.size()};
    std::vector<std::uint8_t> counts(65536);
    std::vector<bool> seen(counts.size());
    flow::coverage coverage{counts.data(), counts.size(), &known};
    flow::walker walker{code, cache};
    perf_event::area_reader areas{trace.areas()};
    edge_counter counter{walker, coverage};
    std::vector<std::string> kept{"..."};
    auto const most = std::strtoull(arguments[1], nullptr, 10);
    for (unsigned long long number = 1; number <= most; ++number) {
        auto input = kept[number % kept.size()];
        input[number / kept.size() % 3] = static_cast<char>(number * 0x9E37'79B9 >> 24 & 0x7F);
        if (fails(trace.enable())) { return 1; }
        bool const is_found = is_magic(input.c_str());
        if (fails(trace.disable())) { return 1; }
        (void)areas.read(counter);
        counter.end_execution();
        bool is_new = false;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            is_new = is_new || (counts[i] != 0 && !seen[i]);
            seen[i] = seen[i] || counts[i] != 0;
            counts[i] = 0;
        }
        if (is_new) { kept.push_back(input); }
        if (!is_found && number != most) { continue; }
        std::printf("%s after %llu executions, with %zu inputs kept; %llu bytes an execution%s\n",
                    is_found ? "found" : "not found", number, kept.size() - 1,
                    static_cast<unsigned long long>(counter.bytes / number),
                    counter.gaps == 0 && walker.gaps().is_complete() ? "" : "; with gaps");
        return is_found ? 0 : 1;
    }
    return 1;
}
