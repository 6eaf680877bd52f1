// SPDX-License-Identifier: BSL-1.0
// Measures how fast executed instructions are found, beside libipt's instruction decoder in the
// same process.
//
//   flow TRACE MEMORY ADDRESSES [--mega PASSES] [options of Google Benchmark]
//   flow TRACE MEMORY ADDRESSES --count WAY ...
//                            walks once, for callgrind, and prints the number of instructions
//
// MEMORY has pages of 4096 bytes, ADDRESSES a line `0xADDRESS` for each, sorted. libipt maps pages
// that follow each other as one section of the file. Ways: `instructions` reports each, with code
// that is decoded already; `blocks` and `coverage_cold` begin with empty caches; `coverage` counts
// edges with full ones. Row `threads`: two threads of ours against one.

#include <bench/paired.hpp>

#include <ptspec/flow.hpp>

#include <intel-pt.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace ptspec;
using buffer = std::vector<uint8_t>;

auto read_file(char const* name) -> buffer {
    std::ifstream file{name, std::ios::binary};
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A trace, and its code.
class recorded {
public:
    recorded(char const* trace, char const* memory, char const* addresses)
        : trace_{read_file(trace)}, memory_{memory}, code_{read_file(memory)} {
        std::ifstream lines{addresses};
        std::string line;
        while (std::getline(lines, line)) {
            addresses_.push_back(std::strtoull(line.c_str(), nullptr, 16));
        }
    }
    [[nodiscard]] auto trace() const -> borrowed_bytes {
        return borrowed_bytes{trace_.data(), trace_.size()};
    }
    [[nodiscard]] auto code() const -> flow::code_pages {
        return {addresses_.data(), addresses_.size(), code_.data()};
    }
    /// The sum of the addresses of all instructions, as libipt finds them.
    auto they_walk() const -> uint64_t {
        pt_config config;
        pt_config_init(&config);
        config.begin = const_cast<uint8_t*>(trace_.data());  // libipt only reads
        config.end = config.begin + trace_.size();
        config.errata.bdm70 = 1;
        auto* const from = pt_insn_alloc_decoder(&config);
        auto* const image = pt_insn_get_image(from);
        for (size_t first = 0, next = 0; first != addresses_.size(); first = next) {
            for (next = first + 1; next != addresses_.size(); ++next) {
                if (addresses_[next] != addresses_[next - 1] + page_size) { break; }
            }
            (void)pt_image_add_file(image, memory_, first * page_size, (next - first) * page_size,
                                    nullptr, addresses_[first]);
        }
        uint64_t sum = 0;
        int status = pt_insn_sync_forward(from);
        while (status != -pte_eos) {
            if (status < 0) {
                status = pt_insn_sync_forward(from);
                if (status < 0) { break; }
            } else if ((status & pts_event_pending) != 0) {
                pt_event event;
                status = pt_insn_event(from, &event, sizeof event);
            } else {
                pt_insn next;
                next.iclass = ptic_error;
                status = pt_insn_next(from, &next, sizeof next);
                if (next.iclass != ptic_error) { sum += next.ip; }
            }
        }
        pt_insn_free_decoder(from);
        return sum;
    }

private:
    static constexpr size_t page_size = 4096;

    buffer trace_;
    char const* memory_;
    std::vector<uint64_t> addresses_{};
    buffer code_;
};

struct instruction_sum {
    using ignores_gaps = instruction_sum;

    uint64_t count = 0;
    uint64_t ips = 0;

    void instruction(flow::executed const& one) {
        ++count;
        ips += one.ip;
    }
};
struct block_sum {
    using ignores_gaps = block_sum;

    uint64_t ips = 0;

    void block(flow::executed_block const& one) { ips += one.ip; }
};

/// Caches of the usual sizes.
struct caches {
    flow::block block_storage[16384];
    flow::path path_storage[8192];
    uint8_t counts[65536];
    flow::block_cache blocks{block_storage};
    flow::path_cache paths{path_storage};
};

template <class Sink>
void walk(recorded const& of, caches& with, Sink& to) {
    auto code = of.code();
    flow::walker walker{of.trace(), code, with.blocks};
    (void)walker.run(to);
}
void clear(caches& with) {
    with.blocks.clear();
    with.paths.clear();
}

using pass = void (*)(recorded const&, caches&);

void instructions(recorded const& of, caches& with) {
    instruction_sum to;
    walk(of, with, to);
    benchmark::DoNotOptimize(to);
}
void blocks(recorded const& of, caches& with) {
    clear(with);
    block_sum to;
    walk(of, with, to);
    benchmark::DoNotOptimize(to);
}
void coverage(recorded const& of, caches& with) {
    flow::coverage to{with.counts, sizeof with.counts, &with.paths};
    walk(of, with, to);
    benchmark::DoNotOptimize(with.counts);
}
void coverage_cold(recorded const& of, caches& with) {
    clear(with);
    coverage(of, with);
}

struct way {
    char const* name;
    pass ours;
};
constexpr way ways[] = {{"instructions", instructions},
                        {"blocks", blocks},
                        {"coverage_cold", coverage_cold},
                        {"coverage", coverage}};

void row(benchmark::State& state, recorded const& of, caches& with, way const& one,
         uint64_t count) {
    // An untimed pass first: libipt has replaced the contents of the processor's caches.
    constexpr int passes = 5;
    auto const ours = [&] {
        one.ours(of, with);
        return bench::time_of([&] {
                   for (int i = 0; i < passes; ++i) { one.ours(of, with); }
               }) /
               passes;
    };
    bench::compare(state, static_cast<double>(count), ours, bench::timed([&] {
                       auto sum = of.they_walk();
                       benchmark::DoNotOptimize(sum);
                   }));
}

/// Two threads of ours, each of which takes the next part of the trace, against one.
void threads_row(benchmark::State& state, recorded const& of, uint64_t instructions) {
    std::unique_ptr<caches> with[2] = {std::make_unique<caches>(), std::make_unique<caches>()};
    auto const walk_parts = [&](size_t count) {
        std::vector<flow::part> parts;
        for (auto const& part : flow::parts{of.trace(), 16}) { parts.push_back(part); }
        std::atomic<size_t> next{0};
        std::atomic<uint64_t> found{0};
        auto const work = [&](size_t number) {
            auto code = of.code();
            instruction_sum to;
            for (size_t i = next++; i < parts.size(); i = next++) {
                auto const& part = parts[i];
                flow::walker walker{borrowed_bytes{part.bytes.data(), part.bytes.size()}, code,
                                    with[number]->blocks, part.options({})};
                (void)walker.run(to);
            }
            found += to.count;
        };
        {
            std::vector<std::jthread> threads;
            for (size_t i = 1; i < count; ++i) { threads.emplace_back(work, i); }
            work(0);
        }
        return found.load();
    };
    if (walk_parts(2) != instructions || walk_parts(1) != instructions) {
        return state.SkipWithError("two threads found other instructions than one");
    }
    auto const two = [&] { benchmark::DoNotOptimize(walk_parts(2)); };
    auto const one = [&] { benchmark::DoNotOptimize(walk_parts(1)); };
    bench::compare(state, static_cast<double>(instructions), bench::timed_threads(two),
                   bench::timed_threads(one));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fputs("usage: flow TRACE MEMORY ADDRESSES [--count WAY].. [OPTION..]\n", stderr);
        return 2;
    }
    recorded const of{argv[1], argv[2], argv[3]};
    argv[3] = argv[0];
    bench::arguments const given{argc - 3, argv + 3, 1};
    auto const with = std::make_unique<caches>();
    instruction_sum all;
    walk(of, *with, all);
    for (std::string_view const wanted : given.counted) {
        for (way const& one : ways) {
            if (wanted.substr(wanted.find('/') + 1) != one.name) { continue; }
            one.ours(of, *with);
            bench::count(wanted, static_cast<size_t>(all.count), [&] { one.ours(of, *with); });
        }
    }
    if (!given.counted.empty()) { return 0; }
    if (all.count == 0 || all.ips != of.they_walk()) {
        std::fputs("libipt finds other instructions\n", stderr);
        return 1;
    }
    for (way const& one : ways) {
        benchmark::RegisterBenchmark((std::string{"flow/"} + one.name).c_str(),
                                     [&of, &with, one, &all](benchmark::State& state) {
                                         row(state, of, *with, one, all.count);
                                     })
            ->UseManualTime()
            ->Iterations(static_cast<benchmark::IterationCount>(given.size >> 20))
            ->Unit(benchmark::kMillisecond);
    }
    benchmark::RegisterBenchmark(
        "flow/threads", [&](benchmark::State& state) { threads_row(state, of, all.count); })
        ->UseManualTime()
        ->Iterations(20)
        ->Unit(benchmark::kMillisecond);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
