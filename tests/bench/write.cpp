// SPDX-License-Identifier: BSL-1.0
// Measures the speed of writing packets, with libipt in the same process.
//
//   write [--real FILE] [--mega N] [options of Google Benchmark]
//   write [--real FILE] [--mega N] --count write/STREAM ...   writes once, for callgrind, and
//                                                             prints the number of packets
//
// Both write the packets of a trace of N MB (1), which they read before: ours as `any_packet`,
// libipt as `pt_packet`. They write 4096 packets at a time, which are in the caches: loading them
// from memory takes longer than writing and is not measured. The row `real` writes FILE; without it
// a generated trace. Before a measurement both must reproduce the trace, except two bits that
// libipt does not write.

#include <bench/paired.hpp>
#include <bench/streams.hpp>

#include <ptspec/trace/reader.hpp>

#include <intel-pt.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;
using bench::buffer;

auto config_of(buffer& bytes) -> pt_config {
    pt_config config;
    pt_config_init(&config);
    config.begin = bytes.data();
    config.end = bytes.data() + bytes.size();
    return config;
}

/// Writes packets to `bytes`, and returns the number of bytes.
auto we_write(std::vector<packet::any_packet> const& packets, buffer& bytes) -> size_t {
    byte_buffer out{bytes.data(), bytes.size()};
    trace::writer to{out};
    return to.put(packets.data(), packets.size()).broken == rule::none ? out.size() : 0;
}
auto they_write(std::vector<pt_packet> const& packets, buffer& bytes) -> size_t {
    pt_config config = config_of(bytes);
    auto* const encoder = pt_alloc_encoder(&config);
    if (encoder == nullptr) { std::abort(); }
    size_t written = 0;
    for (auto const& one : packets) {
        int const count = pt_enc_next(encoder, &one);
        if (count < 0) { break; }
        written += static_cast<size_t>(count);
    }
    pt_free_encoder(encoder);
    return written;
}

/// A trace, and its packets as both libraries represent them.
struct job {
    buffer trace;
    std::vector<packet::any_packet> ours{};
    std::vector<pt_packet> theirs{};
    buffer bytes{};  ///< the written bytes

    explicit job(buffer from) : trace{std::move(from)}, bytes(trace.size()) {
        trace::reader in{byte_view{trace.data(), trace.size()}, {.sync = false}};
        for (auto got = in.next(); got.what == trace::item_type::packet; got = in.next()) {
            ours.push_back(got.packet);
        }
        pt_config config = config_of(trace);
        auto* const decoder = pt_pkt_alloc_decoder(&config);
        if (decoder == nullptr || pt_pkt_sync_set(decoder, 0) < 0) { std::abort(); }
        pt_packet packet{};
        while (pt_pkt_next(decoder, &packet, sizeof packet) > 0) { theirs.push_back(packet); }
        pt_pkt_free_decoder(decoder);
    }
};

/// The time that `write` takes for all packets.
template <class Packet, class Write>
auto time_of_all(std::vector<Packet> const& packets, buffer& bytes, Write const& write) -> double {
    constexpr size_t at_once = 4096;
    double time = 0;
    std::vector<Packet> some;
    for (size_t at = 0; at < packets.size(); at += at_once) {
        auto const* const first = packets.data() + at;
        some.assign(first, first + std::min(at_once, packets.size() - at));
        time += bench::time_of([&] { benchmark::DoNotOptimize(write(some, bytes)); });
    }
    return time;
}

/// Clears the bits that libipt does not write: PWRE.HW, and bit 1 of PWRX's wake reason.
void clear_unwritten(std::vector<packet::any_packet> const& packets, buffer& bytes) {
    size_t place = 0;
    for (auto const& one : packets) {
        if (one.is<packet::pwre>()) { bytes[place + 2] &= 0x7F; }
        if (one.is<packet::pwrx>()) { bytes[place + 3] &= 0xFD; }
        place += one.length();
    }
}

/// True when both reproduce the trace.
auto both_write(job& one) -> bool {
    if (we_write(one.ours, one.bytes) != one.trace.size() || one.bytes != one.trace) {
        return false;
    }
    buffer trace = one.trace;
    bool const whole = they_write(one.theirs, one.bytes) == trace.size();
    clear_unwritten(one.ours, trace);
    clear_unwritten(one.ours, one.bytes);
    return whole && one.bytes == trace;
}

void write_row(benchmark::State& state, job& one) {
    if (!both_write(one)) { return state.SkipWithError("the two did not write the trace"); }
    bench::compare(
        state, static_cast<double>(one.ours.size()),
        [&] { return time_of_all(one.ours, one.bytes, we_write); },
        [&] { return time_of_all(one.theirs, one.bytes, they_write); });
}

}  // namespace

int main(int argc, char** argv) {
    bench::arguments const given{argc, argv, 1};
    for (std::string_view const row : given.counted) {
        job one{bench::make_stream(row.substr(row.find('/') + 1), given.size, given.real)};
        bench::count(row, one.ours.size(),
                     [&] { benchmark::DoNotOptimize(we_write(one.ours, one.bytes)); });
    }
    if (!given.counted.empty()) { return 0; }
    std::map<std::string, job> jobs;
    for (char const* name : {"real", "cyc", "user", "all"}) {
        auto& one =
            jobs.emplace(name, job{bench::make_stream(name, given.size, given.real)}).first->second;
        benchmark::RegisterBenchmark((std::string{"write/"} + name).c_str(),
                                     [&one](benchmark::State& state) { write_row(state, one); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
    }
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
