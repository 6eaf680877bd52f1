// SPDX-License-Identifier: BSL-1.0

// Prints the events of a perf.data file, with their times in nanoseconds:
//
//   perf record -e intel_pt// PROGRAM && perf_events perf.data

#include "standard_output.hpp"

#include <ptspec/file/perf_data/event_reader.hpp>

#include <cstdio>
#include <vector>

/// Calls `visit(stream, event, config)` for the events of each stream, which is a CPU or a thread.
/// `slots` has room for `count_pieces(file)` pieces. Returns what is wrong with the file.
template <class Visitor>
auto visit_events(ptspec::file::perf_data::input const& file, ptspec::file::perf_data::piece* slots,
                  size_t room, Visitor visit) -> ptspec::file::perf_data::read_status {
    using namespace ptspec::file::perf_data;
    auto const config = decoder_config_of(file);
    auto const streams = streams_of(file, slots, room);
    for (auto const stream : streams) {
        event_reader events{stream, config};
        while (auto const& event = events.next()) { visit(stream, event, config); }
    }
    return config ? streams.result : config.result;  // an error of `open` is in both
}

void print(unsigned stream, ptspec::trace::event const& one,
           ptspec::trace::time_conversion const& clock) {
    auto const number = [](auto value) { return static_cast<unsigned long long>(value); };
    std::printf("stream %u: ", stream);
    if (one.when.is_absolute() && clock.mult != 0) {
        std::printf("%llu ns ", number(clock.time_of(one.when.tsc)));
    }
    std::fputs(name_of(one.what).data(), stdout);
    if (one.has_ip) { std::printf(" ip=%llx", number(one.ip)); }
    if (one.has_to) { std::printf(" to=%llx", number(one.to)); }
    std::puts("");
}

auto main(int count, char** arguments) -> int {
    if (count != 2) { return std::puts("usage: perf_events FILE") < 0 ? 1 : 0; }
    std::FILE* const in = std::fopen(arguments[1], "rb");
    if (in == nullptr) {
        std::perror(arguments[1]);
        return 1;
    }
    std::vector<unsigned char> bytes;
    size_t size = 0;
    do {
        bytes.resize(size + 65536);
        size += std::fread(bytes.data() + size, 1, 65536, in);
    } while (size == bytes.size());
    bytes.resize(size);
    if (std::ferror(in) != 0) {
        std::perror(arguments[1]);
        return 1;
    }
    std::fclose(in);

    auto const file = ptspec::file::perf_data::open(bytes);
    std::vector<ptspec::file::perf_data::piece> slots(count_pieces(file));
    bool is_lost = false;  // events before the first PSB
    bool has_psb = false;
    auto const result = visit_events(
        file, slots.data(), slots.size(), [&](auto stream, auto const& event, auto const& config) {
            (event.what == ptspec::trace::event_type::lost ? is_lost : has_psb) = true;
            print(stream.idx(), event, config.clock);
        });
    if (!result) { std::fprintf(stderr, "%s\n", describe(result.error).data()); }
    if (is_lost && !has_psb) { std::fprintf(stderr, "%s: no PSB to begin at\n", arguments[1]); }
    return !result ? 1 : is_lost && !has_psb ? 3 : 0;
}
