// SPDX-License-Identifier: BSL-1.0

// Prints the events of a perf.data file, with their times in nanoseconds:
//
//   perf record -e intel_pt// PROGRAM && perf_events perf.data

#include <ptspec/file/perf_data/event_reader.hpp>

#include <cstdio>
#include <vector>

/// Prints the events of each stream of a perf.data file: a CPU, or a thread. Returns what is wrong.
auto print_events(ptspec::byte_view bytes) -> ptspec::file::perf_data::read_status {
    using namespace ptspec::file::perf_data;
    auto const file = open(bytes);
    auto const config = decoder_config_of(file);
    std::vector<piece> slots(count_pieces(file));
    auto const streams = streams_of(file, slots.data(), slots.size());
    for (auto const stream : streams) {
        event_reader events{stream, config};
        while (auto const& one = events.next()) {
            std::printf("stream %u: ", stream.idx());
            if (one.when.is_absolute() && config.clock.mult != 0) {
                std::printf("%llu ns ", 0ULL + config.clock.time_of(one.when.tsc));
            }
            std::fputs(name_of(one.what).data(), stdout);
            if (one.has_ip) { std::printf(" ip=%llx", 0ULL + one.ip); }
            if (one.has_to) { std::printf(" to=%llx", 0ULL + one.to); }
            std::puts("");
        }
    }
    return config ? streams.result : config.result;  // an error of `open` is in both
}

auto main(int count, char** arguments) -> int {
    if (count != 2) { return std::puts("usage: perf_events FILE") < 0 ? 1 : 0; }
    std::FILE* const in = std::fopen(arguments[1], "rb");
    if (in == nullptr) {
        std::perror(arguments[1]);
        return 1;
    }
    std::vector<unsigned char> bytes;
    for (int one = std::getc(in); one != EOF; one = std::getc(in)) {
        bytes.push_back(static_cast<unsigned char>(one));
    }
    std::fclose(in);
    auto const result = print_events(bytes);
    if (!result) { std::fprintf(stderr, "%s\n", describe(result.error).data()); }
    return result ? 0 : 1;
}
