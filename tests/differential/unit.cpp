// SPDX-License-Identifier: BSL-1.0
// Reads the traces of trace units of each kind with libipt 2.0.5 and with ptspec: both must read
// the same packets with the same fields, and no error; known differences must be exactly as listed
// (comparison.hpp). libipt's instruction flow decoder also reads the trace of machine code, and
// must return the executed instructions (flow.hpp).
//
//   unit [--packets N] [--count N] [--seed S]
//
//   --packets N  at least N packets of random programs, and as many of random events (two million)
//   --count N    machine code of N programs (1500)
//   --seed S     the seed of the random numbers (1)

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <differential/comparison.hpp>
#include <differential/flow.hpp>
#include <support/any_events.hpp>

#include "../../examples/tools/common/trace_script/why.hpp"

namespace {

using namespace differential;
namespace programs = test::programs;

/// A memory and a fabric that record the stream of bytes.
struct recorder {
    using ignores_pmis = recorder;

    buffer stream{};

    auto load(uint64_t) const noexcept -> port_value { return {}; }
    auto store(uint64_t, byte_view bytes) noexcept -> size_t {
        stream.insert(stream.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
    auto send(byte_view bytes) noexcept -> size_t { return store(0, bytes); }
};

void read(buffer& stream) {
    if (!stream.empty()) { (void)compare_all(stream); }
}

auto sum_of(uint64_t const* counts, size_t count) -> uint64_t {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; ++i) { sum += counts[i]; }
    return sum;
}
/// The packets compared so far, PADs not counted.
auto packets() -> uint64_t {
    return sum_of(packets_of_kind, packet::kind_count) - packets_of_kind[underlying(kind::pad)];
}

/// Reads the trace of a random program on a processor of this kind.
void read_program(test::dice& from, engine::model_kind_info const& of) {
    auto const with = programs::random_setting(from);
    programs::program one{with, programs::random_options(from, with, of), from};
    one.run(1000, false);
    buffer stream{one.bytes().begin(), one.bytes().end()};
    read(stream);
}

/// Reads the trace of random events, on a processor of this kind with all features.
void read_anything(test::dice& from, engine::model_kind_info const& of) {
    auto how = of.options;
    if (of.which == engine::model_kind::manual) {
        how.tnt_capacity = from.chance(30) ? 47 : 6;
        how.pads = from.chance(20) ? trace::pad_policy::within_words : trace::pad_policy::none;
        how.has_tsx = from.chance(50);
        how.vmcs_before_pip = from.chance(20);
    }
    how.swintr_events = from.chance(50);
    engine::trace_unit<> unit{cpu::preset::P_FUT, {}, 0x40'0000, how};
    programs::any_events events{unit, from};
    recorder memory;
    uint64_t lost = 0;
    for (unsigned i = 0; i < 1000; ++i) {
        (void)events.step(memory);
        if (unit.total().lost != lost) {  // a reset
            lost = unit.total().lost;
            read(memory.stream);
            memory.stream.clear();
        }
    }
    read(memory.stream);
}

}  // namespace

auto main(int count, char** arguments) -> int {
    uint64_t wanted = 2'000'000;
    uint64_t machine_programs = 1500;
    uint64_t seed = 1;
    for (int i = 1; i < count; ++i) {
        std::string_view const name{arguments[i]};
        if (name == "--packets" && i + 1 < count) {
            wanted = std::strtoull(arguments[++i], nullptr, 0);
        } else if (name == "--count" && i + 1 < count) {
            machine_programs = std::strtoull(arguments[++i], nullptr, 0);
        } else if (name == "--seed" && i + 1 < count) {
            seed = std::strtoull(arguments[++i], nullptr, 0);
        } else {
            std::fprintf(stderr, "usage: unit [--packets N] [--count N] [--seed S]\n");
            return 2;
        }
    }
    flow::packet_counts flows[programs::kind_count];
    for (uint64_t i = 0; i < machine_programs; ++i) {
        auto const& of = programs::kind_of_run(i);
        flow::run(seed + i, of, flows[underlying(of.which)]);
    }
    bool are_alike = true;
    for (auto const& of : engine::model_kinds) {
        are_alike = flow::print(of, flows[underlying(of.which)]) && are_alike;
    }
    if (!are_alike) { return 1; }

    test::dice from{seed};
    uint64_t of_programs[programs::kind_count] = {};
    uint64_t of_anything[programs::kind_count] = {};
    auto const read_all = [&](uint64_t(&counts)[programs::kind_count], auto const& read_one) {
        uint64_t const begin = packets();
        for (uint64_t i = 0; packets() - begin < wanted; ++i) {
            auto const& of = programs::kind_of_run(i);
            uint64_t const before = packets();
            read_one(from, of);
            counts[underlying(of.which)] += packets() - before;
        }
    };
    read_all(of_programs, read_program);
    read_all(of_anything, read_anything);

    for (auto const& of : engine::model_kinds) {
        std::printf("%s: %" PRIu64 " packets of programs, %" PRIu64 " of anything\n",
                    flow::name_of(of).c_str(), of_programs[underlying(of.which)],
                    of_anything[underlying(of.which)]);
    }
    bool const met = print_kinds([](kind which) { return !trace_script::why(which).empty(); });
    (void)print_differences();
    if (sum_of(errors_of_kind, 5) != 0) {
        std::printf("%" PRIu64 " errors\n", sum_of(errors_of_kind, 5));
        return 1;
    }
    if (!met) {
        std::printf("\nkinds of packets were never met\n");
        return 1;
    }
    return 0;
}
