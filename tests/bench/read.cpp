// SPDX-License-Identifier: BSL-1.0
// How fast traces are read, beside libipt in the same process.
//
//   read [--real FILE] [--mega N] [options of Google Benchmark]
//   read [--real FILE] [--mega N] --passes N WAY/STREAM   only reads N times, for who counts
//                                                         instructions, and prints the packets
//
// FILE is what the rows called `real` read, repeated to N MB (64); without it a trace is made. Each
// iteration reads the whole trace with both, and who comes first changes from turn to turn; the
// ratio is taken of the two times that are neighbours. Before anything is measured both have to have
// seen the same packets: as many, with the same IPs, branches and counts.
//
// The counters of a row: `ratio` (median), `min` and `max`, the times that ours is faster;
// `ours_ns` and `their_ns`, medians for one packet.

#include <bench/streams.hpp>

#include <ptspec/trace/reader.hpp>

#include <benchmark/benchmark.h>
#include <intel-pt.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace {

using namespace ptspec;
using bench::buffer;

/// What a pass over a trace saw. The sums are over all packets.
struct seen {
    uint64_t packets = 0;
    uint64_t ips = 0;       ///< the last IPs
    uint64_t branches = 0;  ///< the bits of TNTs and their numbers
    uint64_t counts = 0;    ///< of CYC

    friend auto operator==(seen const&, seen const&) -> bool = default;
};

// ------------------------------------------------------------------------------------ libipt

struct their_decoder {
    pt_packet_decoder* decoder;

    explicit their_decoder(buffer const& trace) {
        pt_config config;
        pt_config_init(&config);
        config.begin = const_cast<uint8_t*>(trace.data());  // which it only reads
        config.end = config.begin + trace.size();
        decoder = pt_pkt_alloc_decoder(&config);
        if (decoder == nullptr || pt_pkt_sync_set(decoder, 0) < 0) { std::abort(); }
    }
    ~their_decoder() { pt_pkt_free_decoder(decoder); }
    their_decoder(their_decoder const&) = delete;
    auto operator=(their_decoder const&) -> their_decoder& = delete;
};

/// libipt leaves the last IP to its caller.
auto their_ip(pt_packet_ip const& packet, uint64_t last) -> uint64_t {
    switch (packet.ipc) {
        case pt_ipc_update_16: return (last & ~uint64_t{0xFFFF}) | packet.ip;
        case pt_ipc_update_32: return (last & ~uint64_t{0xFFFF'FFFF}) | packet.ip;
        case pt_ipc_update_48: return (last & ~uint64_t{0xFFFF'FFFF'FFFF}) | packet.ip;
        case pt_ipc_sext_48:
            return static_cast<uint64_t>(static_cast<int64_t>(packet.ip << 16) >> 16);
        case pt_ipc_full: return packet.ip;
        default: return last;
    }
}

auto they_read(buffer const& trace) -> seen {
    their_decoder const in{trace};
    seen all;
    uint64_t ip = 0;
    pt_packet packet;
    while (pt_pkt_next(in.decoder, &packet, sizeof packet) > 0) {
        switch (packet.type) {
            case ppt_tip:
            case ppt_tip_pge:
            case ppt_tip_pgd:
            case ppt_fup: ip = their_ip(packet.payload.ip, ip); break;
            case ppt_psb: ip = 0; break;
            case ppt_tnt_8:
            case ppt_tnt_64:
                all.branches += packet.payload.tnt.payload * 64 + packet.payload.tnt.bit_size;
                break;
            case ppt_cyc: all.counts += packet.payload.cyc.value; break;
            default: break;
        }
        all.packets += 1;
        all.ips += ip;
    }
    return all;
}

// ------------------------------------------------------------------------------------ ours

auto sum_of(packet::branches which) -> uint64_t { return which.bits * 64 + which.count; }

auto we_read(buffer const& trace) -> seen {
    trace::reader in{byte_view{trace.data(), trace.size()}, {.sync = false}};
    uint64_t packets = 0;  // not in one struct, which would be kept in memory
    uint64_t ips = 0;
    uint64_t branches = 0;
    uint64_t counts = 0;
    while (true) {
        auto got = in.next();
        benchmark::DoNotOptimize(got);  // so that all of it is there
        if (got.what != trace::event::packet) { break; }
        switch (got.packet.kind()) {
            case packet::kind::tnt_short:
                branches += sum_of(got.packet.as<packet::tnt_short>().taken());
                break;
            case packet::kind::tnt_long:
                branches += sum_of(got.packet.as<packet::tnt_long>().taken());
                break;
            case packet::kind::cyc: counts += got.packet.as<packet::cyc>().value(); break;
            default: break;
        }
        packets += 1;
        ips += got.ip;
    }
    return {packets, ips, branches, counts};
}

struct summing {
    seen& all;

    template <packet::packet_type Packet>
    void operator()(Packet const& packet, trace::at where) const {
        if constexpr (same_as<Packet, packet::tnt_short> || same_as<Packet, packet::tnt_long>) {
            all.branches += sum_of(packet.taken());
        } else if constexpr (same_as<Packet, packet::cyc>) {
            all.counts += packet.value();
        }
        all.packets += 1;
        all.ips += where.ip;
    }
    void pads(unsigned count, trace::at where) const {
        all.packets += count;
        all.ips += count * where.ip;
    }
};

auto we_visit(buffer const& trace) -> seen {
    trace::reader in{byte_view{trace.data(), trace.size()}, {.sync = false}};
    seen all;
    (void)in.for_each(summing{all});
    return all;
}

auto we_scan(buffer const& trace) -> seen {
    trace::reader in{byte_view{trace.data(), trace.size()}, {.sync = false}};
    seen all;
    all.packets = in.scan().total();
    return all;
}

// ------------------------------------------------------------------------------------ rows

auto nanoseconds() -> double {
    auto const now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(now).count();
}

template <class Body>
auto time_of(Body const& body) -> double {
    double const begin = nanoseconds();
    body();
    return nanoseconds() - begin;
}

auto median(std::vector<double> values) -> double {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Measures two against each other; `units` is what the time is told for: packets, or bytes.
template <class Ours, class Theirs>
void compare(benchmark::State& state, double units, Ours const& ours, Theirs const& theirs) {
    std::vector<double> ratios;
    std::vector<double> our_times;
    std::vector<double> their_times;
    bool they_begin = false;
    for (auto _ : state) {
        double const before = they_begin ? time_of(theirs) : 0;
        double const one = time_of(ours);
        double const two = they_begin ? before : time_of(theirs);
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

using pass = auto (*)(buffer const&) -> seen;

void read_row(benchmark::State& state, buffer const& trace, pass ours, bool whole) {
    auto const expected = they_read(trace);
    auto const found = ours(trace);
    if (whole ? found != expected : found.packets != expected.packets) {
        return state.SkipWithError("the two did not see the same packets");
    }
    auto const run = [&](pass which) {
        auto all = which(trace);
        benchmark::DoNotOptimize(all);
    };
    compare(
        state, static_cast<double>(expected.packets), [&] { run(ours); }, [&] { run(they_read); });
}

auto read_file(char const* path) -> buffer {
    std::ifstream in{path, std::ios::binary};
    buffer all{std::istreambuf_iterator<char>{in}, {}};
    if (all.empty()) {
        std::fprintf(stderr, "%s: nothing in it\n", path);
        std::exit(2);
    }
    return all;
}

auto repeat(buffer const& one, size_t size) -> buffer {
    buffer all;
    all.reserve(size + one.size());
    while (all.size() < size) { all.insert(all.end(), one.begin(), one.end()); }
    return all;
}

/// A way of ours to read.
struct way {
    char const* name;
    pass read;
    bool whole;  ///< it sees all of every packet
};
constexpr way ways[] = {
    {"next", we_read, true},
    {"for_each", we_visit, true},
    {"scan", we_scan, false},
};

auto make_stream(std::string_view name, size_t size, char const* real) -> buffer {
    if (name == "cyc") { return bench::cyc_stream(size); }
    if (name == "all") { return bench::all_stream(size); }
    if (name == "tnt") { return bench::tnt_stream(size); }
    if (name == "ptw") { return bench::ptw_stream(size); }
    if (name == "real" && real != nullptr) { return repeat(read_file(real), size); }
    return bench::user_stream(size);
}

/// Reads so many times, without anything around it.
auto only_read(std::string_view row, unsigned long passes, size_t size, char const* real) -> int {
    size_t const slash = row.find('/');
    for (way const& one : ways) {
        if (row.substr(0, slash) != one.name) { continue; }
        auto const trace = make_stream(row.substr(slash + 1), size, real);
        seen all;
        for (unsigned long i = 0; i < passes; ++i) { all = one.read(trace); }
        benchmark::DoNotOptimize(all);
        std::printf("%llu\n", static_cast<unsigned long long>(they_read(trace).packets));
        return 0;
    }
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    char const* real = nullptr;
    size_t megabytes = 64;
    unsigned long passes = 0;
    char const* row = nullptr;
    std::vector<char*> rest{argv[0]};
    for (int i = 1; i < argc; ++i) {
        std::string_view const word = argv[i];
        if (word == "--real" && i + 1 < argc) {
            real = argv[++i];
        } else if (word == "--mega" && i + 1 < argc) {
            megabytes = std::strtoull(argv[++i], nullptr, 10);
        } else if (word == "--passes" && i + 2 < argc) {
            passes = std::strtoull(argv[++i], nullptr, 10);
            row = argv[++i];
        } else {
            rest.push_back(argv[i]);
        }
    }
    int left = static_cast<int>(rest.size());
    benchmark::Initialize(&left, rest.data());
    if (benchmark::ReportUnrecognizedArguments(left, rest.data()) || megabytes == 0) { return 2; }

    size_t const size = megabytes << 20;
    if (row != nullptr) { return only_read(row, passes, size, real); }

    std::map<std::string, buffer> streams;
    for (char const* name : {"real", "cyc", "user", "all", "tnt", "ptw"}) {
        streams[name] = make_stream(name, size, real);
    }
    for (way const& one : ways) {
        for (auto const& [name, trace] : streams) {
            benchmark::RegisterBenchmark((std::string{one.name} + "/" + name).c_str(),
                                         [&trace = trace, one](benchmark::State& state) {
                                             read_row(state, trace, one.read, one.whole);
                                         })
                ->UseManualTime()
                ->Unit(benchmark::kMillisecond);
        }
    }
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
