// SPDX-License-Identifier: BSL-1.0

// What happened, and when: prints each interrupt of a trace with its time, and how long the code
// before it was traced.
//
//   what_happened TRACE [CPUID.15H:EBX CPUID.15H:EAX MTCFreq]

#include "standard_output.hpp"

#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>
#include <ptspec/trace/psb_search.hpp>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;
using trace::event_type;

void print_interrupts(byte_view bytes, trace::clock_options const& how) {
    trace::event_reader<trace::clock> reader{bytes, trace::clock{how}};
    uint64_t branches = 0, all_branches = 0, exits = 0;
    while (auto const& event = reader.next()) {
        auto const& when = event.when;
        switch (event.what) {
            case event_type::branches: branches += event.branches().count; break;
            case event_type::disabled: ++exits; break;
            case event_type::async_branch:
            case event_type::async_disabled:
                std::printf("TSC %" PRIu64 ", between %" PRIu64 " and ", when.tsc, when.earliest);
                when.latest == trace::time::unbounded ? std::printf("?")
                                                      : std::printf("%" PRIu64, when.latest);
                std::printf(": interrupted at %" PRIx64 " after %" PRIu64 " branches\n", event.ip,
                            branches);
                all_branches += branches;
                branches = 0;
                break;
            case event_type::damage:
                std::printf("%" PRIx64 ": %s\n", event.offset, describe(event.broken).data());
                break;
            default: break;
        }
    }
    std::printf("%" PRIu64 " conditional branches; traced code left %" PRIu64 " times\n",
                all_branches + branches, exits);
}

auto number(char const* text) -> uint32_t {
    return static_cast<uint32_t>(std::strtoul(text, nullptr, 0));
}

}  // namespace

auto main(int count, char** arguments) -> int {
    bool const asks = count == 2 && std::string_view{arguments[1]} == "--help";
    if (asks || (count != 2 && count != 5)) {
        std::puts("usage: what_happened TRACE [CPUID.15H:EBX CPUID.15H:EAX MTCFreq]");
        return asks ? 0 : 2;
    }
    std::ifstream file;
    if (!std::filesystem::is_directory(arguments[1])) { file.open(arguments[1], std::ios::binary); }
    std::vector<uint8_t> const bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.empty()) {
        std::fprintf(stderr, "what_happened: %s: cannot be read, or is empty\n", arguments[1]);
        return 2;
    }
    trace::clock_options how;
    if (count == 5) {
        how.tsc_numerator = number(arguments[2]);
        how.tsc_denominator = number(arguments[3]);
        how.tsc_age = trace::tsc_age_of(how.tsc_numerator, how.tsc_denominator);
        how.mtc_freq = static_cast<uint8_t>(number(arguments[4]) & 15);
    }
    byte_view const trace{bytes.data(), bytes.size()};
    if (trace::find_psb(trace) == trace::npos) {
        std::fprintf(stderr, "what_happened: %s: no PSB to begin at\n", arguments[1]);
        return 3;
    }
    print_interrupts(trace, how);
    return 0;
}
