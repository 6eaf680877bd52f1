// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/streams.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

#include <vector>

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

constexpr auto info(uint64_t snapshot = 0, unsigned kind = 1) {
    return perf_record(70, 0,
                       join(u32(kind), u32(0), u64(8), u64(0), u64(0), u64(0), u64(0), u64(0),
                            u64(0), u64(0), u64(snapshot), u64(0)));
}

template <class Bytes>
constexpr auto auxtrace(unsigned idx, uint64_t offset, Bytes const& trace) {
    return join(perf_record(71, 0,
                            join(u64(trace.size()), u64(offset), u64(offset + 7), u32(idx),
                                 u32(idx + 1), u32(idx + 2), u32(0))),
                trace);
}

constexpr auto eight(unsigned byte) {
    return bytes(byte, byte, byte, byte, byte, byte, byte, byte);
}

}  // namespace

TEST_CASE("the pieces of an idx are one stream, in the order of their offsets") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(auxtrace(7, 8, eight(2)), auxtrace(3, 0, eight(3)), info(),
                                         auxtrace(7, 0, eight(1)), auxtrace(7, 24, eight(4)),
                                         perf_record(81, 0), auxtrace(3, 8, eight(5))));
        auto const of = open(all);
        piece slots[8] = {};
        auto const got = streams_of(of, slots);
        bool right = got && got.size() == 2 && got.needed == 5 && count_pieces(of) == 5 &&
                     got.has_compressed && !got.is_snapshot;
        auto at = got.begin();
        auto const three = *at;
        right = right && three.idx() == 3 && three.tid() == 4 && three.cpu() == 5 &&
                three.size() == 2 && three[0].trace == byte_view{eight(3)} &&
                three[1].trace == byte_view{eight(5)} && !three[1].has_gap_before;
        ++at;
        auto const seven = *at;
        right = right && seven.idx() == 7 && seven.size() == 3 &&
                seven[0].trace == byte_view{eight(1)} && seven[1].trace == byte_view{eight(2)} &&
                !seven[0].has_gap_before && !seven[1].has_gap_before && seven[2].has_gap_before &&
                seven[2].offset == 24 && seven[2].reference == 31;
        ++at;
        return right && at == got.end();
    });
}

TEST_CASE("PADs of perf between two pieces are removed") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(info(), auxtrace(0, 0, bytes(1, 2, 3, 0, 0, 0, 0, 0)),
                                         auxtrace(0, 3, bytes(4, 5, 6, 7, 8, 9, 10, 0)),
                                         auxtrace(0, 10, eight(8)), auxtrace(0, 17, eight(9))));
        piece slots[4] = {};
        auto const got = streams_of(open(all), slots);
        auto const one = *got.begin();
        return one[0].trace == byte_view{bytes(1, 2, 3)} && one[0].recorded.size() == 8 &&
               one[1].trace == byte_view{bytes(4, 5, 6, 7, 8, 9, 10)} && !one[1].has_gap_before &&
               !one[2].has_gap_before &&
               // One byte less, which is no PAD: the bytes stay, and they do not continue.
               one[2].trace.size() == 8 && one[3].has_gap_before;
    });
}

TEST_CASE("a stream without its begin has a gap before it") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(info(), auxtrace(0, 8, eight(1))));
        piece slots[1] = {};
        auto const got = streams_of(open(all), slots);
        return (*got.begin())[0].has_gap_before;
    });
}

TEST_CASE("a snapshot is trimmed to what is new, in the order of the file") {
    CHECK_TWICE([](auto value) {
        auto const psbend = bytes(0x02, 0x23);
        auto const segment = [&](unsigned tsc) {
            return join(test::psb, bytes(0x19, tsc, 0, 0, 0, 0, 0, 0), psbend);
        };
        auto const first = join(segment(1), segment(2), bytes(0x2D, 0, 0, 0));
        auto const second = join(segment(2), bytes(0x2D, 0x11, 0x22, 0x06, 0x06, 0x06));
        auto const third = segment(9);
        auto const all = value(perf_pipe(info(1), auxtrace(0, 500, first), auxtrace(0, 100, second),
                                         auxtrace(0, 300, third)));
        piece slots[3] = {};
        auto const got = streams_of(open(all), slots);
        auto const one = *got.begin();
        return got.is_snapshot && got.size() == 1 && one[0].trace.size() == 26 * 2 + 1 &&
               !one[0].has_gap_before && one[1].trace == byte_view{second}.from(27) &&
               !one[1].has_gap_before && one[2].trace.size() == third.size() &&
               one[2].has_gap_before;
    });
}

TEST_CASE("too few slots, and their number") {
    CHECK_TWICE([](auto value) {
        auto const all = value(
            perf_pipe(info(), auxtrace(0, 0, eight(1)), auxtrace(0, 8, eight(2))));
        piece slots[1] = {};
        auto const got = streams_of(open(all), slots);
        return !got && got.result.why == read_error::too_few_slots && got.needed == 2 &&
               got.size() == 0;
    });
}

TEST_CASE("files without traces of Intel PT, and broken ones") {
    CHECK_TWICE([](auto value) {
        auto const without = value(perf_pipe(auxtrace(0, 0, eight(1))));
        auto const other = value(
            perf_pipe(perf_record(68, 0), info(0, 3), auxtrace(0, 0, eight(1))));
        auto const whole = value(
            perf_pipe(info(), auxtrace(0, 0, eight(1)), auxtrace(0, 8, eight(2))));
        auto const cut = byte_view{whole}.first(whole.size() - 1);
        piece slots[2] = {};
        auto const why = [&](byte_view of) { return streams_of(open(of), slots).result; };
        bool const right = why(without) == read_result{read_error::no_auxtrace_info, 0} &&
                           why(other) == read_result{read_error::not_intel_pt, 24} &&
                           why({}) == read_result{read_error::not_perf_data, 0};
        auto const got = streams_of(open(cut), slots);
        return right && got.result == read_result{read_error::truncated, 16 + 96 + 56} &&
               got.size() == 1 && count_pieces(open(cut)) == 1 &&
               count_pieces(open(byte_view{})) == 0;
    });
}

TEST_CASE("a million records in the worst order are sorted") {
    std::vector<std::uint8_t> file;
    auto const add = [&](auto const& more) {
        file.insert(file.end(), more.data(), more.data() + more.size());
    };
    add(perf_pipe(info()));
    constexpr unsigned count = 1'000'000;
    for (unsigned i = count; i != 0; --i) {
        add(perf_record(71, 0, join(u64(0), u64(i % 7), u64(0), u32(i / 3), u32(0), u64(0))));
    }
    auto const of = open(file);
    std::vector<piece> slots(count_pieces(of));
    auto const got = streams_of(of, slots.data(), slots.size());
    CHECK(got);
    CHECK(got.needed == count);
    CHECK(got.size() == count / 3 + 1);
    bool sorted = true;
    for (unsigned i = 1; i < count; ++i) {
        auto const& one = slots[i - 1];
        auto const& two = slots[i];
        sorted = sorted && (one.idx < two.idx || (one.idx == two.idx && one.offset <= two.offset));
    }
    CHECK(sorted);
}
