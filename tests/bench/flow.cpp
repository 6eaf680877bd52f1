// SPDX-License-Identifier: BSL-1.0
// Measures how fast executed instructions are found, beside libipt in the same process:
// instructions beside its instruction decoder, blocks and coverage beside its block decoder.
//
//   flow FOLDER NAME... [--mega PASSES] [options of Google Benchmark]
//   flow FOLDER NAME... --count ROW ...
//                            walks once, for callgrind, and prints the number of instructions
//
// FOLDER has NAME.pt, a trace; NAME.mem, pages of 4096 bytes; and NAME.addr, a line `0xADDRESS` for
// each page, sorted. libipt maps few large sections of a sparse file that is written to FOLDER:
// many sections cost it up to half its speed.
//
// Rows are called `flow/WAY/NAME`. `instructions` reports each, with code that is decoded already;
// `blocks` and `coverage_cold` begin with empty caches; `coverage` counts edges with caches that
// the same trace has filled; `coverage_next` counts those of the second half of the trace with
// caches that the first half has filled, as for the next input of a fuzzer. `threads`: two threads
// of ours against one.

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

auto read_file(std::string const& name) -> buffer {
    std::ifstream file{name, std::ios::binary};
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A trace, and its code.
class recorded {
public:
    recorded(std::string const& folder, std::string const& name)
        : name_{name},
          trace_{read_file(folder + "/" + name + ".pt")},
          code_{read_file(folder + "/" + name + ".mem")},
          sparse_{folder + "/" + name + ".sparse"} {
        std::ifstream lines{folder + "/" + name + ".addr"};
        std::string line;
        while (std::getline(lines, line)) {
            addresses_.push_back(std::strtoull(line.c_str(), nullptr, 16));
        }
        write_sections();
    }
    [[nodiscard]] auto name() const -> std::string const& { return name_; }
    [[nodiscard]] auto trace() const -> byte_view { return {trace_.data(), trace_.size()}; }
    [[nodiscard]] auto code() const -> flow::code_pages {
        return {addresses_.data(), addresses_.size(), code_.data()};
    }
    /// The offset of the first PSB of the second half of the trace.
    [[nodiscard]] auto middle() const -> size_t {
        return trace::find_psb(trace(), trace_.size() / 2);
    }

    /// The sum of the addresses of all instructions, as libipt's instruction decoder finds them.
    auto they_walk() const -> uint64_t {
        auto config = config_from(0);
        auto* const from = pt_insn_alloc_decoder(&config);
        add_sections(pt_insn_get_image(from));
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
    /// The number of instructions from an offset of the trace on, as libipt's block decoder finds
    /// them.
    auto they_walk_blocks(size_t begin) const -> uint64_t {
        auto config = config_from(begin);
        auto* const from = pt_blk_alloc_decoder(&config);
        add_sections(pt_blk_get_image(from));
        uint64_t sum = 0;
        int status = pt_blk_sync_forward(from);
        while (status != -pte_eos) {
            if (status < 0) {
                status = pt_blk_sync_forward(from);
                if (status < 0) { break; }
            } else if ((status & pts_event_pending) != 0) {
                pt_event event;
                status = pt_blk_event(from, &event, sizeof event);
            } else {
                pt_block next;
                next.ninsn = 0;
                status = pt_blk_next(from, &next, sizeof next);
                sum += next.ninsn;
            }
        }
        pt_blk_free_decoder(from);
        return sum;
    }

private:
    static constexpr size_t page_size = 4096;

    /// Pages, and absent ones between them, in the sparse file.
    struct section {
        uint64_t address;
        uint64_t size;
        uint64_t offset;
    };

    void write_sections() {
        constexpr uint64_t most_absent = uint64_t{1} << 30;
        std::ofstream file{sparse_, std::ios::binary};
        uint64_t size = 0;
        for (size_t i = 0; i < addresses_.size(); ++i) {
            uint64_t const at = addresses_[i];
            bool const is_near = i != 0 && at - addresses_[i - 1] < most_absent;
            if (!is_near) { sections_.push_back({at, 0, size}); }
            auto& last = sections_.back();
            last.size = at + page_size - last.address;
            file.seekp(static_cast<std::streamoff>(last.offset + at - last.address));
            file.write(reinterpret_cast<char const*>(code_.data() + i * page_size), page_size);
            size = last.offset + last.size;
        }
    }
    auto config_from(size_t begin) const -> pt_config {
        pt_config config;
        pt_config_init(&config);
        config.begin = const_cast<uint8_t*>(trace_.data()) + begin;  // libipt only reads
        config.end = const_cast<uint8_t*>(trace_.data()) + trace_.size();
        config.errata.bdm70 = 1;
        return config;
    }
    void add_sections(pt_image* image) const {
        for (auto const& one : sections_) {
            (void)pt_image_add_file(image, sparse_.c_str(), one.offset, one.size, nullptr,
                                    one.address);
        }
    }

    std::string name_;
    buffer trace_;
    std::vector<uint64_t> addresses_{};
    buffer code_;
    std::string sparse_;
    std::vector<section> sections_{};
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
    flow::run run_storage[8192];
    uint8_t counts[65536];
    flow::block_cache blocks{block_storage};
    flow::run_table runs{run_storage};
};

/// A part of a trace, from `begin` to `end`.
struct part {
    recorded const& of;
    size_t begin;
    size_t end;
};

template <class Sink>
void walk(part const& some, caches& with, Sink& to) {
    auto code = some.of.code();
    byte_view const bytes = some.of.trace().first(some.end).from(some.begin);
    flow::walker walker{borrowed_bytes{bytes.data(), bytes.size()}, code, with.blocks};
    (void)walker.run(to);
}
void clear(caches& with) {
    with.blocks.clear();
    with.runs.clear();
}

using pass = void (*)(part const&, caches&);

void instructions(part const& some, caches& with) {
    instruction_sum to;
    walk(some, with, to);
    benchmark::DoNotOptimize(to);
}
void blocks(part const& some, caches& with) {
    clear(with);
    block_sum to;
    walk(some, with, to);
    benchmark::DoNotOptimize(to);
}
void coverage(part const& some, caches& with) {
    flow::coverage to{with.counts, sizeof with.counts, &with.runs};
    walk(some, with, to);
    benchmark::DoNotOptimize(with.counts);
}
void coverage_cold(part const& some, caches& with) {
    clear(with);
    coverage(some, with);
}
/// Fills the caches with the part of the trace before this one.
void walk_before(part const& some, caches& with) {
    clear(with);
    coverage({some.of, 0, some.begin}, with);
}
void walk_same(part const& some, caches& with) { coverage(some, with); }
void walk_nothing(part const&, caches&) {}

struct way {
    char const* name;
    pass ours;
    pass before;  ///< each pass of ours, not timed
    bool is_half = false;
    bool has_instructions = false;  ///< beside the instruction decoder
};
constexpr way ways[] = {{"instructions", instructions, walk_nothing, false, true},
                        {"blocks", blocks, walk_nothing},
                        {"coverage_cold", coverage_cold, walk_nothing},
                        {"coverage", coverage, walk_same},
                        {"coverage_next", coverage, walk_before, true}};

auto part_of(recorded const& of, way const& one) -> part {
    return {of, one.is_half ? of.middle() : 0, of.trace().size()};
}

void row(benchmark::State& state, recorded const& of, caches& with, way const& one,
         uint64_t count) {
    part const some = part_of(of, one);
    constexpr int passes = 5;
    auto const ours = [&] {
        // An untimed pass first: libipt has replaced the contents of the processor's caches.
        one.ours(some, with);
        double time = 0;
        for (int i = 0; i < passes; ++i) {
            one.before(some, with);
            time += bench::time_of([&] { one.ours(some, with); });
        }
        return time / passes;
    };
    bench::compare(state, static_cast<double>(count), ours, bench::timed([&] {
                       auto sum = one.has_instructions ? of.they_walk()
                                                       : of.they_walk_blocks(some.begin);
                       benchmark::DoNotOptimize(sum);
                   }));
}

/// Two threads of ours, each of which takes the next part of the trace, against one.
void threads_row(benchmark::State& state, recorded const& of, uint64_t instructions) {
    std::unique_ptr<caches> with[2] = {std::make_unique<caches>(), std::make_unique<caches>()};
    auto const walk_parts = [&](size_t count) {
        std::vector<flow::part> parts;
        borrowed_bytes const whole{of.trace().data(), of.trace().size()};
        for (auto const& part : flow::parts{whole, 16}) { parts.push_back(part); }
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

/// A trace, with its instructions, for which caches are ready.
struct measured {
    recorded of;
    std::unique_ptr<caches> with = std::make_unique<caches>();
    instruction_sum all{};
    uint64_t half = 0;  ///< instructions of the second half

    measured(std::string const& folder, std::string const& name) : of{folder, name} {
        instruction_sum second;
        walk({of, of.middle(), of.trace().size()}, *with, second);
        half = second.count;
        walk({of, 0, of.trace().size()}, *with, all);
    }
    /// True if libipt finds the same instructions.
    [[nodiscard]] auto is_right() const -> bool {
        return all.count != 0 && all.ips == of.they_walk() && all.count == of.they_walk_blocks(0) &&
               half == of.they_walk_blocks(of.middle());
    }
    [[nodiscard]] auto instructions_of(way const& one) const -> uint64_t {
        return one.is_half ? half : all.count;
    }
};

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::unique_ptr<measured>> traces;
    int names = 2;
    for (; names < argc && argv[names][0] != '-'; ++names) {
        traces.push_back(std::make_unique<measured>(argv[1], argv[names]));
    }
    if (traces.empty()) {
        std::fputs("usage: flow FOLDER NAME... [--count ROW].. [OPTION..]\n", stderr);
        return 2;
    }
    argv[names - 1] = argv[0];
    bench::arguments const given{argc - names + 1, argv + names - 1, 1};
    auto const for_each_row = [&](auto const& take) {
        for (auto const& trace : traces) {
            for (way const& one : ways) {
                take(*trace, one, std::string{"flow/"} + one.name + "/" + trace->of.name());
            }
        }
    };
    if (!given.counted.empty()) {
        for_each_row([&](measured const& trace, way const& one, std::string const& row) {
            for (std::string_view const wanted : given.counted) {
                if (wanted != row) { continue; }
                part const some = part_of(trace.of, one);
                one.ours(some, *trace.with);
                one.before(some, *trace.with);
                bench::count(wanted, static_cast<size_t>(trace.instructions_of(one)),
                             [&] { one.ours(some, *trace.with); });
            }
        });
        return 0;
    }
    for (auto const& trace : traces) {
        if (!trace->is_right()) {
            std::fprintf(stderr, "%s: libipt finds other instructions\n", trace->of.name().c_str());
            return 1;
        }
    }
    for_each_row([&](measured const& trace, way const& one, std::string const& name) {
        benchmark::RegisterBenchmark(name.c_str(),
                                     [&](benchmark::State& state) {
                                         row(state, trace.of, *trace.with, one,
                                             trace.instructions_of(one));
                                     })
            ->UseManualTime()
            ->Iterations(static_cast<benchmark::IterationCount>(given.size >> 20))
            ->Unit(benchmark::kMillisecond);
    });
    auto const& first = *traces.front();
    benchmark::RegisterBenchmark(
        "flow/threads",
        [&](benchmark::State& state) { threads_row(state, first.of, first.all.count); })
        ->UseManualTime()
        ->Iterations(20)
        ->Unit(benchmark::kMillisecond);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
