// SPDX-License-Identifier: BSL-1.0

// Prints the events of a perf.data file, with their times in nanoseconds:
//
//   perf record -e intel_pt// PROGRAM && perf_events perf.data

#include <ptspec/file/perf_data/event_reader.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

using namespace ptspec::file;

auto main(int count, char** arguments) -> int {
    if (count != 2) { return std::puts("usage: perf_events FILE") < 0 ? 1 : 0; }
    std::ifstream in{arguments[1], std::ios::binary};
    std::vector<char> const bytes{std::istreambuf_iterator<char>{in}, {}};

    auto const file = perf_data::open(bytes);
    auto const config = perf_data::decoder_config_of(file);
    std::vector<perf_data::piece> slots(perf_data::count_pieces(file));
    auto const streams = perf_data::streams_of(file, slots.data(), slots.size());
    for (auto const stream : streams) {
        perf_data::event_reader events{stream, config};
        while (auto const& one = events.next()) {
            auto const name = name_of(one.what);
            std::printf("stream %u: %llu ns %.*s ip=%llx to=%llx\n", stream.idx(),
                        static_cast<unsigned long long>(config.clock.time_of(one.when.tsc)),
                        static_cast<int>(name.size()), name.data(),
                        static_cast<unsigned long long>(one.has_ip ? one.ip : 0),
                        static_cast<unsigned long long>(one.has_to ? one.to : 0));
        }
    }
    auto const text = describe(config ? streams.result.error : config.result.error);
    if (!config || !streams) { std::fprintf(stderr, "%s\n", text.data()); }
    return config && streams ? 0 : 1;
}
