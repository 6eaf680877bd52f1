// SPDX-License-Identifier: BSL-1.0
// Measures the speed of reading events, with libipt's query decoder in the same process.
//
//   events --real FILE --cyc FILE [--mega N] [options of Google Benchmark]
//   events --real FILE --cyc FILE [--mega N] --count WAY/STREAM ...
//                            reads once, for callgrind, and prints the number of packets
//
// The traces are those of the files, repeated to N MB (16). Ways: `binder` binds every packet,
// `events` reads events, `times` events with their times. libipt is asked for each event, branch
// and target; for `times` also for its time. Both must see the same branches and targets.

#include <bench/paired.hpp>

#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>

#include <intel-pt.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;
using bench::compare;
using bench::timed;
using buffer = std::vector<uint8_t>;

constexpr trace::clock_options clock_options{
    .mtc_freq = 3, .max_non_turbo_ratio = 24, .tsc_numerator = 168, .tsc_denominator = 2};

/// The result of a pass over a trace.
struct seen {
    uint64_t branches = 0;
    uint64_t taken = 0;
    uint64_t targets = 0;
    uint64_t ips = 0;    ///< the sum of the targets
    uint64_t times = 0;  ///< the sum of the times

    auto has_same_flow(seen const& other) const -> bool {
        return branches == other.branches && taken == other.taken && targets == other.targets &&
               ips == other.ips;
    }
};

// ------------------------------------------------------------------------------------ libipt

template <bool WithTime>
auto they_read(buffer const& trace) -> seen {
    pt_config config;
    pt_config_init(&config);
    config.begin = const_cast<uint8_t*>(trace.data());  // libipt only reads
    config.end = config.begin + trace.size();
    config.mtc_freq = clock_options.mtc_freq;
    config.nom_freq = clock_options.max_non_turbo_ratio;
    config.cpuid_0x15_eax = clock_options.tsc_denominator;
    config.cpuid_0x15_ebx = clock_options.tsc_numerator;
    auto* const from = pt_qry_alloc_decoder(&config);
    seen all;
    auto const add_time = [&] {
        if constexpr (WithTime) {
            uint64_t time = 0;
            (void)pt_qry_time(from, &time, nullptr, nullptr);
            all.times += time;
        }
    };
    uint64_t ip = 0;
    int status = pt_qry_sync_forward(from, &ip);
    while (true) {
        if (status < 0) {
            if (status == -pte_eos) { break; }
            status = pt_qry_sync_forward(from, &ip);
            if (status < 0) { break; }
            continue;
        }
        if ((status & pts_event_pending) != 0) {
            pt_event event;
            status = pt_qry_event(from, &event, sizeof event);
            if constexpr (WithTime) { all.times += event.tsc; }
            continue;
        }
        int taken = 0;
        int const branch = pt_qry_cond_branch(from, &taken);
        if (branch >= 0) {
            all.branches += 1;
            all.taken += static_cast<unsigned>(taken);
            add_time();
            status = branch;
            continue;
        }
        status = branch;
        if (branch == -pte_bad_query) {
            status = pt_qry_indirect_branch(from, &ip);
            if (status >= 0) {
                all.targets += 1;
                all.ips += (status & pts_ip_suppressed) != 0 ? 0 : ip;
                add_time();
            }
        }
    }
    pt_qry_free_decoder(from);
    return all;
}

// ------------------------------------------------------------------------------------ ours

template <class Clock>
auto read_events(buffer const& trace, Clock const& clock) -> seen {
    trace::event_reader<Clock> from{byte_view{trace.data(), trace.size()}, clock};
    seen all;
    while (auto const& e = from.next()) {
        if (e.what == trace::event_type::branches) {
            auto const which = e.branches();
            all.branches += which.count;
            all.taken += popcount(which.bits);
        } else if (e.what == trace::event_type::indirect_branch) {
            all.targets += 1;
            all.ips += e.to;
        }
        if constexpr (!__is_empty(Clock)) { all.times += e.when.tsc; }
    }
    return all;
}
auto we_read(buffer const& trace) -> seen { return read_events(trace, trace::no_clock{}); }
auto we_read_times(buffer const& trace) -> seen {
    return read_events(trace, trace::clock{clock_options});
}

/// Binds all packets, and counts the branches that they belong to.
struct counted {
    trace::binder binder_{};
    seen all{};

    template <packet::packet_type Packet>
    void operator()(Packet const& which, trace::packet_place where) {
        auto const bound = binder_.add(which, where);
        if constexpr (one_of<Packet, packet::tnt_short, packet::tnt_long>) {
            if (bound.to != trace::owner::branch) { return; }
            all.branches += which.taken().count;
            all.taken += popcount(which.taken().bits);
        } else if constexpr (same_as<Packet, packet::tip>) {
            if (bound.to != trace::owner::branch) { return; }
            all.targets += 1;
            all.ips += which.has_ip() ? where.ip : 0;
        } else {
            benchmark::DoNotOptimize(bound);
        }
    }
    void operator()(trace::item const&) { binder_.restart(); }
    void pads(unsigned, trace::packet_place) {}
};

auto we_bind(buffer const& trace) -> seen {
    trace::reader from{byte_view{trace.data(), trace.size()}, trace::reader_options{.sync = true}};
    counted made;
    (void)from.for_each(made);
    return made.all;
}

// ------------------------------------------------------------------------------------ rows

using pass = auto (*)(buffer const&) -> seen;

struct way {
    char const* name;
    pass ours;
    pass theirs;
};
constexpr way ways[] = {
    {"binder", we_bind, they_read<false>},
    {"events", we_read, they_read<false>},
    {"times", we_read_times, they_read<true>},
};

auto packets_in(buffer const& trace) -> uint64_t {
    return trace::reader{byte_view{trace.data(), trace.size()}}.scan().total();
}

void row(benchmark::State& state, buffer const& trace, way const& one) {
    if (!one.ours(trace).has_same_flow(one.theirs(trace))) {
        return state.SkipWithError("the two did not see the same branches");
    }
    auto const run = [&](pass which) {
        auto all = which(trace);
        benchmark::DoNotOptimize(all);
    };
    auto const we = [&] { run(one.ours); };
    auto const they = [&] { run(one.theirs); };
    compare(state, static_cast<double>(packets_in(trace)), timed(we), timed(they));
}

/// A file, repeated to a size.
auto repeated(char const* name, size_t size) -> buffer {
    std::ifstream file{name, std::ios::binary};
    buffer const one{std::istreambuf_iterator<char>(file), {}};
    buffer all;
    while (!one.empty() && all.size() < size) { all.insert(all.end(), one.begin(), one.end()); }
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    bench::arguments const given{argc, argv, 16};
    std::map<std::string, buffer> streams;
    if (given.real != nullptr) { streams["real"] = repeated(given.real, given.size); }
    if (given.cyc != nullptr) { streams["cyc"] = repeated(given.cyc, given.size); }
    for (std::string_view const wanted : given.counted) {
        size_t const slash = wanted.find('/');
        auto const trace = streams.find(std::string{wanted.substr(slash + 1)});
        if (trace == streams.end()) { return 2; }
        for (way const& one : ways) {
            if (wanted.substr(0, slash) != one.name) { continue; }
            auto all = one.ours(trace->second);
            bench::count(wanted, packets_in(trace->second),
                         [&] { benchmark::DoNotOptimize(all = one.ours(trace->second)); });
        }
    }
    if (!given.counted.empty()) { return 0; }
    for (way const& one : ways) {
        for (auto const& [name, trace] : streams) {
            benchmark::RegisterBenchmark(
                (std::string{one.name} + "/" + name).c_str(),
                [&bytes = trace, one](benchmark::State& state) { row(state, bytes, one); })
                ->UseManualTime()
                ->Unit(benchmark::kMillisecond);
        }
    }
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
