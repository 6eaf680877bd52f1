// SPDX-License-Identifier: BSL-1.0
// Measures the speed of reading, with libipt in the same process.
//
//   read [--real FILE] [--mega N] [options of Google Benchmark]
//   read [--real FILE] [--mega N] --count WAY/STREAM ...   reads once, for callgrind, and prints
//                                                          the number of packets
//
// The rows called `real` read FILE, repeated to N MB (64); without it they read a generated trace.
// Each iteration reads the whole trace with both libraries, in alternating order, and the ratio is
// that of the two adjacent times. Before a measurement, both must read the same packets: the same
// number, IPs, branches and cycle counts.
//
// Rows `search`: four times the size without a PSB, against libipt; `none` against reading all
// bytes as words. Row `threads`: two threads of ours against one; `additions` the same with threads
// that only add.

#include <bench/paired.hpp>
#include <bench/streams.hpp>
#include <support/libipt.hpp>

#include <ptspec/trace/split.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace ptspec;
using bench::buffer;
using bench::compare;
using bench::timed;
using bench::timed_threads;

/// The result of a pass over a trace. The sums are over all packets.
struct seen {
    uint64_t packets = 0;
    uint64_t ips = 0;       ///< the last IPs
    uint64_t branches = 0;  ///< the branch bits of TNTs and the number of branches
    uint64_t counts = 0;    ///< cycle counts of CYCs

    friend auto operator==(seen const&, seen const&) -> bool = default;
};

// ------------------------------------------------------------------------------------ libipt

struct their_decoder {
    pt_packet_decoder* decoder;

    explicit their_decoder(buffer const& trace) {
        pt_config config;
        pt_config_init(&config);
        config.begin = const_cast<uint8_t*>(trace.data());  // libipt only reads
        config.end = config.begin + trace.size();
        decoder = pt_pkt_alloc_decoder(&config);
        if (decoder == nullptr || pt_pkt_sync_set(decoder, 0) < 0) { std::abort(); }
    }
    ~their_decoder() { pt_pkt_free_decoder(decoder); }
    their_decoder(their_decoder const&) = delete;
    auto operator=(their_decoder const&) -> their_decoder& = delete;
};

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
            case ppt_fup: ip = test::libipt_ip_after(packet.payload.ip, ip); break;
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
    uint64_t packets = 0;  // scalars: compilers keep a struct in memory
    uint64_t ips = 0;
    uint64_t branches = 0;
    uint64_t counts = 0;
    while (true) {
        auto const got = in.next();
        if (got.what != trace::item_type::packet) { break; }
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
        benchmark::DoNotOptimize(got.packet.raw().low);  // forces the whole packet to be built
        benchmark::DoNotOptimize(got.packet.raw().high);
        benchmark::DoNotOptimize(got.length);
    }
    return {packets, ips, branches, counts};
}

struct summing {
    seen all{};  // a member of the visitor, so that it can stay in registers

    template <packet::packet_type Packet>
    void operator()(Packet const& packet, trace::packet_place where) {
        if constexpr (same_as<Packet, packet::tnt_short> || same_as<Packet, packet::tnt_long>) {
            all.branches += sum_of(packet.taken());
        } else if constexpr (same_as<Packet, packet::cyc>) {
            all.counts += packet.value();
        }
        all.packets += 1;
        all.ips += where.ip;
    }
    void pads(unsigned count, trace::packet_place where) {
        all.packets += count;
        all.ips += count * where.ip;
    }
};

auto we_visit(buffer const& trace) -> seen {
    trace::reader in{byte_view{trace.data(), trace.size()}, {.sync = false}};
    summing sums;
    (void)in.for_each<packet::all>(sums);
    return sums.all;
}

auto we_scan(buffer const& trace) -> seen {
    trace::reader in{byte_view{trace.data(), trace.size()}, {.sync = false}};
    seen all;
    all.packets = in.scan().total();
    return all;
}

// ------------------------------------------------------------------------------------ rows

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
    auto const we = [&] { run(ours); };
    auto const they = [&] { run(they_read); };
    compare(state, static_cast<double>(expected.packets), timed(we), timed(they));
}

// ------------------------------------------------------------------------------------ PSB search

/// Bytes without a PSB, some of which resemble one.
auto without_psb(std::string_view how, size_t size) -> buffer {
    buffer all(size, how == "all_02" ? uint8_t{0x02} : uint8_t{0});
    if (how == "none") {
        std::mt19937_64 random{1};
        for (size_t at = 0; at + 8 <= size; at += 8) { store_le64(&all[at], random()); }
    } else if (how == "near_miss") {
        for (size_t at = 0; at < size; ++at) {
            all[at] = at % 16 < 14 ? (at % 2 == 0 ? uint8_t{0x02} : uint8_t{0x82}) : uint8_t{0};
        }
    }
    return all;
}

/// More bytes than the caches hold: the memory limits the speed of reading, not the compiled loop.
constexpr size_t in_no_cache = size_t{256} << 20;

/// The least cost: reading all bytes as words.
auto plain_read(buffer const& bytes) -> uint64_t {
    uint64_t sum = 0;
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) { sum += load_le64(&bytes[at]); }
    return sum;
}

void search_row(benchmark::State& state, std::string_view how, buffer const& bytes) {
    auto const ours = [&] {
        benchmark::DoNotOptimize(trace::find_psb(byte_view{bytes.data(), bytes.size()}));
    };
    pt_config config;
    pt_config_init(&config);
    config.begin = const_cast<uint8_t*>(bytes.data());  // libipt only reads
    config.end = config.begin + bytes.size();
    auto const theirs = [&] {
        auto* const decoder = pt_pkt_alloc_decoder(&config);
        benchmark::DoNotOptimize(pt_pkt_sync_forward(decoder));
        pt_pkt_free_decoder(decoder);
    };
    auto const words = [&] { benchmark::DoNotOptimize(plain_read(bytes)); };
    double const units = static_cast<double>(bytes.size());
    how == "none" ? compare(state, units, timed(ours), timed(words))
                  : compare(state, units, timed(ours), timed(theirs));
}

// ------------------------------------------------------------------------------------ threads

/// Runs `work` in `count` threads.
template <class Work>
void in_threads(unsigned count, Work const& work) {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < count; ++i) { threads.emplace_back(work); }
    work();
}

/// Counts packets in `count` threads, each of which takes the next part of the trace.
auto count_in_threads(buffer const& trace, unsigned count) -> uint64_t {
    std::vector<byte_view> pieces;
    for (byte_view const piece : trace::split{byte_view{trace.data(), trace.size()}, 16}) {
        pieces.push_back(piece);
    }
    std::atomic<size_t> next{0};
    std::atomic<uint64_t> packets{0};
    auto const work = [&] {
        uint64_t found = 0;
        for (size_t i = next++; i < pieces.size(); i = next++) {
            found += trace::reader{pieces[i]}.scan().total();
        }
        packets += found;
    };
    in_threads(count, work);
    return packets;
}

void thread_row(benchmark::State& state, buffer const& trace) {
    auto const run = [&](unsigned count) {
        benchmark::DoNotOptimize(count_in_threads(trace, count));
    };
    if (count_in_threads(trace, 2) != count_in_threads(trace, 1)) {
        return state.SkipWithError("two threads saw other packets than one");
    }
    auto const two = [&] { run(2); };
    auto const one = [&] { run(1); };
    compare(state, static_cast<double>(trace.size()), timed_threads(two), timed_threads(one));
}

/// Threads that share no data: an upper bound of the speed-up on this machine.
void additions_row(benchmark::State& state) {
    constexpr uint64_t additions = uint64_t{1} << 26;
    auto const run = [](unsigned count) {
        in_threads(count, [count] {
            uint64_t sum = 0;
            for (uint64_t i = 0; i < additions / count; ++i) { sum = hide_from_optimizer(sum + i); }
            benchmark::DoNotOptimize(sum);
        });
    };
    auto const two = [&] { run(2); };
    auto const one = [&] { run(1); };
    compare(state, static_cast<double>(additions), timed_threads(two), timed_threads(one));
}

/// One of our ways to read.
struct way {
    char const* name;
    pass read;
    bool whole;  ///< returns all sums, not only the number of packets
};
constexpr way ways[] = {
    {"next", we_read, true},
    {"for_each", we_visit, true},
    {"scan", we_scan, false},
};

/// Reads once, for callgrind. Returns false for an unknown row.
auto count_row(bench::arguments const& given, std::string_view row) -> bool {
    size_t const slash = row.find('/');
    auto const trace = bench::make_stream(row.substr(slash + 1), given.size, given.real);
    for (way const& one : ways) {
        if (row.substr(0, slash) != one.name) { continue; }
        auto all = one.read(trace);
        bench::count(row, all.packets, [&] { benchmark::DoNotOptimize(all = one.read(trace)); });
        return true;
    }
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    bench::arguments const given{argc, argv, 64};
    for (std::string_view const row : given.counted) {
        if (!count_row(given, row)) { return 2; }
    }
    if (!given.counted.empty()) { return 0; }

    std::map<std::string, buffer> streams;
    for (char const* name : {"real", "cyc", "user", "all", "tnt", "ptw"}) {
        streams[name] = bench::make_stream(name, given.size, given.real);
    }
    for (way const& one : ways) {
        for (auto const& [name, trace] : streams) {
            benchmark::RegisterBenchmark((std::string{one.name} + "/" + name).c_str(),
                                         [&stream = trace, one](benchmark::State& state) {
                                             read_row(state, stream, one.read, one.whole);
                                         })
                ->UseManualTime()
                ->Unit(benchmark::kMillisecond);
        }
    }
    std::map<std::string_view, buffer> searched;  // filled when a row first runs
    for (std::string_view const how : {"none", "all_02", "near_miss"}) {
        size_t const size = how == "none" ? in_no_cache : 4 * given.size;
        benchmark::RegisterBenchmark(("search/" + std::string{how}).c_str(),
                                     [&bytes = searched[how], how, size](benchmark::State& state) {
                                         if (bytes.empty()) { bytes = without_psb(how, size); }
                                         search_row(state, how, bytes);
                                     })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
    }
    benchmark::RegisterBenchmark(
        "threads/real", [&streams](benchmark::State& state) { thread_row(state, streams["real"]); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("threads/additions", additions_row)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
