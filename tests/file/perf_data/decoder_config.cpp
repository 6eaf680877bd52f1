// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/decoder_config.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::bytes;
using test::join;
using test::letters;
using test::perf_pipe;
using test::perf_record;
using test::u32;
using test::u64;

namespace {

constexpr auto attr(unsigned type, uint64_t config, uint64_t flags) {
    return perf_record(64, 0,
                       test::perf_attr{.type = type, .config = config, .flags = flags}.bytes());
}

/// What a test changes of AUXTRACE_INFO.
struct numbers {
    uint64_t shift = 31;
    uint64_t mult = 0x4000'0000;
    uint64_t has_zero = 1;
    uint64_t n = 168;
    uint64_t d = 2;
    uint64_t ratio = 24;
    uint64_t tsc_bit = 0x400;
    uint64_t noretcomp_bit = 0x800;
    uint64_t mtc_bit = 0x200;
    uint64_t mtc_freq_bits = 0x3'C000;
    uint64_t cyc_bit = 2;
};
constexpr auto info(numbers of = {}, unsigned kind = 1) {
    return perf_record(70, 0,
                       join(u32(kind), u32(0), u64(8), u64(of.shift), u64(of.mult), u64(77),
                            u64(of.has_zero), u64(of.tsc_bit), u64(of.noretcomp_bit), u64(0),
                            u64(0), u64(0), u64(of.mtc_bit), u64(of.mtc_freq_bits), u64(of.n),
                            u64(of.d), u64(of.cyc_bit), u64(of.ratio), u64(0), u64(1)));
}

constexpr auto cpuid = perf_record(80, 0,
                                   join(u64(9), u32(20), letters("GenuineIntel,6,78,3"), bytes(0)));

}  // namespace

TEST_CASE("what a decoder needs") {
    CHECK_TWICE([](auto value) {
        auto const all = value(
            perf_pipe(cpuid, attr(1, 0xFFFF, 0), attr(8, 0x0300'E601, 1 << 5), info()));
        auto const got = decoder_config_of(open(all));
        // TSC, MTC, branches, MTCFreq 3 and PSBFreq 3; User and ToPA.
        return got && got.ctl.raw == (0x0300'E600 | 0x8 | 0x100) && got.event.type == 8 &&
               got.unknown_config == 0 && got.has_event_trace && got.clock.shift == 31 &&
               got.clock.mult == 0x4000'0000 && got.clock.zero == 77 && got.tsc_ctc_n == 168 &&
               got.tsc_ctc_d == 2 && got.max_non_turbo_ratio == 24 && got.model &&
               got.model.model == cpu::cpu_model{6, 78, 3} && got.quirks.has(cpu::quirk::skd007) &&
               config::config_of(got.ctl).mtc_every.encoding() == 3;
    });
}

TEST_CASE("the masks of AUXTRACE_INFO tell where bits of the event are") {
    CHECK_TWICE([](auto value) {
        auto const ctl = [&](uint64_t config, numbers of = {}, uint64_t flags = 0) {
            auto const all = value(perf_pipe(attr(8, config, flags), info(of)));
            return decoder_config_of(open(all)).ctl.raw;
        };
        constexpr uint64_t always = 0x4 | 0x8 | 0x100;
        constexpr uint64_t branch = 0x2000;
        return ctl(0) == (always | branch) && ctl(1) == always &&
               ctl(0x2001) == (always | branch) && ctl(1 | 0x400) == (always | 0x400) &&
               ctl(1 | 0x800) == (always | 0x800) && ctl(1 | 0x2) == (always | 0x2) &&
               ctl(1 | 0x200) == (always | 0x200) && ctl(1 | 0x1'4000) == (always | 0x1'4000) &&
               ctl(1 | 0x1030) == (always | 0x1030) &&
               ctl(1 | uint64_t{1} << 55) == (always | uint64_t{1} << 55) &&
               ctl(1 | 0x400 | uint64_t{1} << 40, {.tsc_bit = uint64_t{1} << 40}) ==
                   (always | 0x400) &&
               ctl(1 | 0x400, {.tsc_bit = uint64_t{1} << 40}) == always &&
               ctl(1 | 0x400, {.tsc_bit = 0}) == always &&
               ctl(1 | uint64_t{5} << 48 | uint64_t{0xF} << 40,
                   {.tsc_bit = uint64_t{1} << 40,
                    .noretcomp_bit = uint64_t{1} << 41,
                    .mtc_bit = uint64_t{1} << 42,
                    .mtc_freq_bits = uint64_t{0xF} << 48,
                    .cyc_bit = uint64_t{1} << 43}) ==
                   (always | 0x400 | 0x800 | 0x200 | 5 << 14 | 2) &&
               ctl(0x3'CE03, {.tsc_bit = 0,
                              .noretcomp_bit = 0,
                              .mtc_bit = 0,
                              .mtc_freq_bits = 0,
                              .cyc_bit = 0}) == always &&
               ctl(1, {}, 1 << 4) == (0x4 | 0x100) && ctl(1, {}, 1 << 5) == (0x8 | 0x100);
    });
}

TEST_CASE("address filters are ADDRn_CFG (REG-058, REG-068)") {
    CHECK_TWICE([](auto value) {
        // FILTER_STR_LEN, the filters with a NUL, padded to 8 bytes, CAP_EVENT_TRACE.
        auto const with = [&](auto const& filters, uint64_t size, auto padding) {
            auto const record = perf_record(
                70, 0,
                join(u32(1), u32(0), u64(8), u64(31), u64(1), u64(0), u64(1), u64(0x400),
                     u64(0x800), u64(0), u64(0), u64(0), u64(0x200), u64(0x3'C000), u64(168),
                     u64(2), u64(2), u64(24), u64(size), filters, padding, u64(1)));
            auto const all = value(perf_pipe(attr(8, 0, 0), record));
            auto const got = decoder_config_of(open(all));
            return got.filter.size() == size ? got.ctl.raw >> 32 : 0;
        };
        return with(letters("filter 0x1000/16,stop 32/8@/b"), 29, bytes(0, 0, 0)) == 0x21 &&
               with(letters("filter 1/1 filter 2/2 stop 3/3 filter 4/4 stop 5/5"), 50,
                    bytes(0, 0, 0, 0, 0, 0)) == 0x1211 &&
               with(letters("start 0x1000/16"), 15, bytes(0)) == 0;
    });
}

TEST_CASE("a bit of the event that means nothing is reported") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(attr(8, 0x101 | uint64_t{1} << 63, 0), info()));
        return decoder_config_of(open(all)).unknown_config == (0x100 | uint64_t{1} << 63);
    });
}

TEST_CASE("numbers that no processor can have are unknown") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](numbers change) {
            auto const all = value(perf_pipe(attr(8, 0, 0), info(change)));
            return decoder_config_of(open(all));
        };
        constexpr uint64_t large = uint64_t{1} << 32;
        return of({.shift = 63}).clock.mult != 0 && of({.shift = 64}).clock.mult == 0 &&
               of({.mult = large}).clock.mult == 0 && of({.has_zero = 0}).clock.mult == 0 &&
               of({.n = 0}).tsc_ctc_d == 0 && of({.d = 0}).tsc_ctc_n == 0 &&
               of({.n = large}).tsc_ctc_d == 0 && of({.d = large}).tsc_ctc_n == 0 &&
               of({.ratio = large}).max_non_turbo_ratio == 0 && !of({}).model &&
               of({}).quirks == cpu::quirk_set{};
    });
}

TEST_CASE("files that say too little") {
    CHECK_TWICE([](auto value) {
        auto const why = [&](auto const& all) { return decoder_config_of(open(all)).result; };
        return why(value(perf_pipe(attr(8, 0, 0)))) ==
                   read_status{read_error::no_auxtrace_info, 0} &&
               why(value(perf_pipe(attr(8, 0, 0), info({}, 2)))) ==
                   read_status{read_error::not_intel_pt, 88} &&
               why(value(perf_pipe(attr(7, 0, 0), info()))) ==
                   read_status{read_error::no_intel_pt_event, 88} &&
               why(value(perf_pipe(perf_record(70, 0, u32(1))))) ==
                   read_status{read_error::bad_auxtrace_info, 16} &&
               why(value(perf_pipe(bytes(1, 2, 3)))) == read_status{read_error::truncated, 16} &&
               why(byte_view{}) == read_status{read_error::not_perf_data, 0};
    });
}
