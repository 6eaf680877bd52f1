// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/event_reader.hpp>

#include <support/check_twice.hpp>
#include <support/event_text.hpp>
#include <support/little_endian.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::bytes;
using test::join;
using test::perf_pipe;
using test::perf_record;
using test::short_text;
using test::u32;
using test::u64;

namespace {

/// A file of an event of Intel PT with MTCFreq 3, on a processor with a TSC of 84 times the
/// crystal clock, and TSC * 2 + 77 as nanoseconds.
template <class... Records>
constexpr auto file_of(Records const&... all) {
    auto const info = join(u32(1), u32(0), u64(8), u64(0), u64(2), u64(77), u64(1), u64(0x400),
                           u64(0x800), u64(0), u64(0), u64(0), u64(0x200), u64(0x3C000), u64(168),
                           u64(2), u64(2), u64(24));
    return perf_pipe(
        perf_record(64, 0, test::perf_attr{.config = 0x600 | 3 << 14, .sample_type = 2}.bytes()),
        perf_record(70, 0, info), all...);
}
template <class Bytes>
constexpr auto auxtrace(uint64_t offset, Bytes const& trace) {
    return join(perf_record(71, 0,
                            join(u64(trace.size()), u64(offset), u64(uint64_t{5} << 56), u32(0),
                                 u32(9), u32(0xFFFF'FFFF), u32(0))),
                trace);
}
constexpr auto loss(uint64_t offset) {
    return perf_record(11, 0, join(u64(offset), u64(0), u64(1), u32(9), u32(9)));
}

/// PSB, TSC, PSBEND, MODE.Exec, TIP.PGE.
constexpr auto begin(unsigned tsc, unsigned ip) {
    return join(test::psb, bytes(0x19, tsc, 0, 0, 0, 0, 0, 0), bytes(0x02, 0x23),
                bytes(0x99, 0x01, 0x71, 0, ip, 0, 0, 0, 0));
}

/// The events of the first stream: `|` at each gap.
constexpr auto events_of(byte_view file) -> short_text {
    short_text got;
    auto const of = open(file);
    piece slots[8] = {};
    auto const config = decoder_config_of(of);
    auto const streams = streams_of(of, slots);
    if (!config || !streams) { return got.add("error"), got; }
    event_reader events{*streams.begin(), config};
    size_t gaps = 0;
    for (auto one = events.next(); one; one = events.next()) {
        for (; gaps < events.gaps(); ++gaps) { got.add("| "); }
        got.add_hex(one.offset).add("/").add_hex(one.when.tsc).add(":");
        test::add_event(got, one);
        got.add(" ");
    }
    for (; gaps < events.gaps(); ++gaps) { got.add("| "); }
    return got;
}

}  // namespace

TEST_CASE("events across pieces, with the times that the file says") {
    CHECK_TWICE([](auto value) {
        // The border of the pieces is in the TIP.
        auto const all = value(file_of(auxtrace(0, join(begin(0x10, 0x10), bytes(0x06, 0x2D))),
                                       auxtrace(37, bytes(0, 0x20, 0x0E, 0, 0))));
        return events_of(all) == "18/500000000000010:psb 1c/500000000000010:enabled@1000 "
                                 "1a/500000000000010:exec_mode@1000 23/500000000000010:branches:T "
                                 "24/500000000000010:indirect>2000 27/500000000000010:branches:TT ";
    });
}

TEST_CASE("after a gap the events begin at the next PSB, and times go on") {
    CHECK_TWICE([](auto value) {
        auto const one = join(begin(0x10, 0x10), bytes(0x06, 0x2D));
        auto const two = join(bytes(0x06), begin(0x20, 0x30));
        auto const wanted = [&](byte_view file) {
            return events_of(file) ==
                   "18/500000000000010:psb 1c/500000000000010:enabled@1000 "
                   "1a/500000000000010:exec_mode@1000 23/500000000000010:branches:T "
                   "24/500000000000010:damage!PKT255 | 26/500000000000010:synced "
                   "3e/500000000000020:psb 42/500000000000020:enabled@3000 "
                   "40/500000000000020:exec_mode@3000 ";
        };
        return wanted(value(file_of(auxtrace(0, one), auxtrace(99, two)))) &&
               wanted(value(file_of(loss(37), auxtrace(0, join(one, two)))));
    });
}

TEST_CASE("gaps before the first piece and after the last one") {
    CHECK_TWICE([](auto value) {
        auto const text = "| 18/500000000000010:psb 1c/500000000000010:enabled@1000 "
                          "1a/500000000000010:exec_mode@1000 ";
        auto const late = value(file_of(auxtrace(8, begin(0x10, 0x10))));
        auto const early = value(file_of(loss(0), auxtrace(0, begin(0x10, 0x10))));
        auto const last = value(file_of(loss(35), auxtrace(0, begin(0x10, 0x10))));
        return events_of(late) == text && events_of(early) == text &&
               events_of(last) == "18/500000000000010:psb 1c/500000000000010:enabled@1000 "
                                  "1a/500000000000010:exec_mode@1000 | " &&
               event_reader{{}, {}}.next().what == trace::event_type::end;
    });
}

TEST_CASE("the options of a clock are those of the file") {
    CHECK_TWICE([](auto value) {
        auto const all = value(file_of());
        auto const config = decoder_config_of(open(all));
        auto const got = clock_options_of(config);
        decoder_config large = config;
        large.max_non_turbo_ratio = value(256U);
        return got.mtc_freq == 3 && got.cyc_thresh == 0 && got.max_non_turbo_ratio == 24 &&
               got.tsc_numerator == 168 && got.tsc_denominator == 2 && got.tsc_age == 84 &&
               got.tsc_reference == 0 && config.clock.time_of(3) == 83 &&
               clock_options_of(large).max_non_turbo_ratio == 0;
    });
}
