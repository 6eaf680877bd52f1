// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/streams.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

#include <algorithm>
#include <map>
#include <random>
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

/// An event whose records end in TID, TIME, CPU and IDENTIFIER.
constexpr uint64_t ends = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16;
constexpr auto event(uint64_t sample_type = ends) {
    return perf_record(
        64, 0, join(test::perf_attr{.sample_type = sample_type, .flags = 1 << 18}.bytes(), u64(5)));
}
/// An AUX record. The stream `auxtrace(idx, ..)` is of the processor idx + 2.
constexpr auto aux(unsigned cpu, uint64_t offset, uint64_t size, uint64_t flags) {
    return perf_record(11, 0,
                       join(u64(offset), u64(size), u64(flags), u32(9), u32(9), u64(100), u32(cpu),
                            u32(0), u64(5)));
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
    CHECK_TWICE([](auto value) {
        // More zeros than PADs, also where the next offset is far from them.
        auto const has_gap = [&](uint64_t offset) {
            auto const all = value(perf_pipe(info(), auxtrace(0, 0, join(eight(1), eight(0))),
                                             auxtrace(0, offset, eight(2))));
            piece slots[2] = {};
            auto const one = *streams_of(open(all), slots).begin();
            return one[0].trace.size() == 16 && one[1].has_gap_before;
        };
        return has_gap(8) && has_gap(~uint64_t{0} - 7);
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
        return !got && got.result.error == read_error::too_few_slots && got.needed == 2 &&
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
        bool const right = why(without) == read_status{read_error::no_auxtrace_info, 0} &&
                           why(other) == read_status{read_error::not_intel_pt, 24} &&
                           why({}) == read_status{read_error::not_perf_data, 0};
        auto const got = streams_of(open(cut), slots);
        return right && got.result == read_status{read_error::truncated, 16 + 96 + 56} &&
               got.size() == 1 && count_pieces(open(cut)) == 1 &&
               count_pieces(open(byte_view{})) == 0;
    });
}

// ------------------------------------------------------------------------------------ AUX records

TEST_CASE("TRUNCATED and COLLISION: bytes are missing after the last byte of the record") {
    CHECK_TWICE([](auto value) {
        bool right = true;
        for (uint64_t const flags : {1U, 8U, 9U, 3U}) {
            auto const all = value(perf_pipe(event(), info(), aux(2, 0, 5, flags),
                                             auxtrace(0, 0, eight(1)), auxtrace(0, 8, eight(2))));
            piece slots[3] = {};
            auto const got = streams_of(open(all), slots);
            auto const one = *got.begin();
            right = right && got && got.needed == 3 && count_pieces(open(all)) == 3 &&
                    one.size() == 3 && one[0].trace.size() == 5 && !one[0].has_gap_before &&
                    one[1].trace.size() == 3 && one[1].has_gap_before && one[1].offset == 5 &&
                    one[1].flags.raw == (flags & 9) && one[1].aux_size == 5 &&
                    one[1].reference == 7 && one[1].idx == 0 && one[1].tid == 1 &&
                    one[1].cpu == 2 && one[2].trace.size() == 8 && !one[2].has_gap_before;
        }
        return right;
    });
}

TEST_CASE("a record of size 0 has its place at its offset, also at a border and at the end") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(event(), info(), auxtrace(0, 0, eight(1)),
                                         auxtrace(0, 8, eight(2)), aux(2, 0, 0, 1), aux(2, 8, 0, 1),
                                         aux(2, 16, 0, 8)));
        piece slots[5] = {};
        auto const one = *streams_of(open(all), slots).begin();
        size_t const sizes[] = {0, 8, 0, 8, 0};
        bool right = one.size() == 5;
        for (size_t i = 0; i < 5; ++i) {
            right = right && one[i].trace.size() == sizes[i] &&
                    one[i].has_gap_before == (i % 2 == 0);
        }
        return right && one[0].reference == 7 && one[0].tid == 1;
    });
}

TEST_CASE("PARTIAL begins a piece and loses nothing; OVERWRITE changes nothing") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(event(), info(), auxtrace(0, 0, eight(1)), aux(2, 2, 6, 4),
                                         aux(2, 0, 8, 2), aux(2, 3, 1, 0)));
        piece slots[2] = {};
        auto const got = streams_of(open(all), slots);
        auto const one = *got.begin();
        return got && one.size() == 2 && one[0].trace.size() == 2 && one[1].trace.size() == 6 &&
               !one[1].has_gap_before && one[1].flags.raw == 4 && one[1].aux_size == 6;
    });
}

TEST_CASE("where a loss and a PARTIAL record meet, the loss comes first") {
    CHECK_TWICE([](auto value) {
        auto const all = value(
            perf_pipe(event(), info(), auxtrace(0, 0, eight(1)), aux(2, 4, 4, 4), aux(2, 0, 4, 1)));
        piece slots[3] = {};
        auto const one = *streams_of(open(all), slots).begin();
        return one[1].flags.raw == 1 && one[1].trace.empty() && one[2].flags.raw == 4 &&
               one[2].trace.size() == 4 && !one[2].has_gap_before;
    });
}

TEST_CASE("after a loss at the end, the PADs of perf are no trace") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](auto const& trace, uint64_t size) {
            auto const all = value(
                perf_pipe(event(), info(), auxtrace(0, 0, trace), aux(2, 0, size, 1)));
            piece slots[2] = {};
            return (*streams_of(open(all), slots).begin())[1].trace.size();
        };
        return of(bytes(1, 2, 3, 0, 0, 0, 0, 0), 3) == 0 && of(eight(1), 3) == 5 &&
               of(bytes(0, 0, 0, 0, 0, 0, 0, 0), 0) == 8;
    });
}

TEST_CASE(
    "an AUX record belongs to the stream of its processor, of its thread, or to the only one") {
    CHECK_TWICE([](auto value) {
        auto const marked = [&](auto const& all) {
            piece slots[8] = {};
            auto const got = streams_of(open(all), slots);
            uint64_t found = got.unplaced * 100;
            for (auto const one : got) {
                for (auto const& part : one) { found += part.flags.raw * (one.idx() + 1); }
            }
            return found;
        };
        auto const of_thread = [&](unsigned idx, unsigned tid) {
            return join(perf_record(71, 0,
                                    join(u64(8), u64(0), u64(0), u32(idx), u32(tid),
                                         u32(0xFFFF'FFFF), u32(0))),
                        eight(1));
        };
        auto const one = auxtrace(0, 0, eight(1));
        auto const two = auxtrace(1, 0, eight(1));
        auto const plain = perf_record(11, 0, join(u64(4), u64(0), u64(1)));
        return marked(value(perf_pipe(event(), info(), one, two, aux(3, 4, 0, 1)))) == 2 &&
               marked(value(perf_pipe(event(), info(), one, two, aux(4, 4, 0, 1)))) == 100 &&
               marked(value(perf_pipe(event(), info(), of_thread(6, 8), of_thread(2, 9),
                                      aux(4, 4, 0, 1)))) == 3 &&
               marked(value(perf_pipe(event(), info(), of_thread(6, 8), of_thread(2, 7),
                                      aux(4, 4, 0, 1)))) == 100 &&
               // No event: the record does not end with a processor.
               marked(value(perf_pipe(info(), one, plain))) == 1 &&
               marked(value(perf_pipe(info(), one, two, plain))) == 100 &&
               marked(value(perf_pipe(event(), info(), one, aux(4, 4, 0, 1)))) == 100 &&
               marked(value(perf_pipe(event(), info(), aux(4, 4, 0, 1)))) == 100;
    });
}

TEST_CASE("in snapshots the place of a loss is not known: it is before the next one") {
    CHECK_TWICE([](auto value) {
        auto const segment = [&](unsigned tsc) {
            return join(test::psb, bytes(0x19, tsc, 0, 0, 0, 0, 0, 0), bytes(0x02, 0x23));
        };
        auto const all = value(perf_pipe(event(), info(1), auxtrace(0, 500, segment(1)),
                                         aux(2, 3, 0, 3), aux(2, 3, 0, 6),
                                         auxtrace(0, 100, join(segment(1), segment(2)))));
        piece slots[4] = {};
        auto const one = *streams_of(open(all), slots).begin();
        return one.size() == 4 && one[1].trace.empty() && one[1].has_gap_before &&
               !one[2].has_gap_before && one[2].flags.raw == 4 && one[3].trace.size() == 26 &&
               !one[3].has_gap_before;
    });
}

TEST_CASE("snapshots without a PSB are no base for the next, and missing only if none has them") {
    CHECK_TWICE([](auto value) {
        auto const segment = [&](unsigned tsc) {
            return join(test::psb, bytes(0x19, tsc, 0, 0, 0, 0, 0, 0), bytes(0x02, 0x23));
        };
        auto const first = auxtrace(0, 0, segment(1));
        auto const none = auxtrace(0, 0, bytes(0x19, 1, 0, 0, 0, 0, 0, 0));
        auto const next = auxtrace(0, 0, join(segment(1), segment(2)));
        auto const other = auxtrace(0, 0, segment(7));
        auto const gaps = [&](auto const& all) {
            piece slots[4] = {};
            auto const one = *streams_of(open(all), slots).begin();
            uint64_t found = 0;
            for (auto const& part : one) {
                found = found * 1000 + part.trace.size() + (part.has_gap_before ? 100 : 0);
            }
            return found;
        };
        return gaps(value(perf_pipe(info(1), first, none, none, next))) == 26'000'000'026 &&
               gaps(value(perf_pipe(info(1), first, none, other))) == 26'000'126 &&
               gaps(value(perf_pipe(info(1), first, none, none))) == 26'100'000 &&
               gaps(value(perf_pipe(info(1), first, next, none, next))) == 26'026'100'000;
    });
}

TEST_CASE("a malformed AUXTRACE_INFO is not absent") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(perf_record(70, 0, u32(1)), auxtrace(0, 0, eight(1))));
        piece slots[1] = {};
        return streams_of(open(all), slots).result ==
                   read_status{read_error::bad_auxtrace_info, 16} &&
               describe(read_error::bad_auxtrace_info) == "the AUXTRACE_INFO record is malformed";
    });
}

// ------------------------------------------------------------------------------------ samples

TEST_CASE("AUX area samples are pieces of a processor or a thread, in the order of their times") {
    CHECK_TWICE([](auto value) {
        constexpr uint64_t with_aux = 1 << 20;
        auto const segment = [&](unsigned tsc) {
            return join(test::psb, bytes(0x19, tsc, 0, 0, 0, 0, 0, 0), bytes(0x02, 0x23));
        };
        auto const sample = [&](unsigned tid, unsigned time, unsigned cpu, auto const& trace) {
            return perf_record(9, 2,
                               join(u64(5), u32(tid), u32(tid), u64(time), u32(cpu), u32(0),
                                    u64(trace.size()), trace));
        };
        auto const of_thread = [&](unsigned tid, unsigned time, auto const& trace) {
            return perf_record(9, 2, join(u32(tid), u32(tid), u64(time), u64(trace.size()), trace));
        };
        auto const by_cpu = value(perf_pipe(
            event(ends | with_aux), info(), sample(7, 30, 1, join(segment(2), segment(3))),
            sample(8, 20, 1, join(segment(1), segment(2))), sample(7, 10, 0, segment(9)),
            sample(7, 40, 1, segment(8))));
        piece slots[4] = {};
        auto const got = streams_of(open(by_cpu), slots);
        auto at = got.begin();
        auto const zero = *at;
        auto const one = *++at;
        bool const right = got && got.size() == 2 && zero.cpu() == 0 && zero.tid() == 7 &&
                           zero.size() == 1 && one.cpu() == 1 && one.tid() == no_tid &&
                           one.size() == 3 && one[0].time == 20 && one[0].is_sample &&
                           one[0].trace.size() == 52 && !one[0].has_gap_before &&
                           one[1].recorded.size() == 52 && one[1].trace.size() == 26 &&
                           !one[1].has_gap_before && one[2].has_gap_before;
        auto const by_thread = value(perf_pipe(event(1 << 1 | 1 << 2 | with_aux), info(),
                                               of_thread(6, 1, segment(1)),
                                               of_thread(4, 2, segment(1))));
        auto const threads = streams_of(open(by_thread), slots);
        auto const four = *threads.begin();
        auto const short_one = value(
            perf_pipe(event(ends | with_aux), info(),
                      perf_record(9, 2, join(u64(5), u64(0), u64(0), u64(0), u64(8), u32(1)))));
        auto const wrong = streams_of(open(short_one), slots);
        return right && threads.size() == 2 && four.tid() == 4 && four.idx() == 4 &&
               four.cpu() == no_cpu && four[0].trace.size() == 26 &&
               wrong.result.error == read_error::record_too_short && wrong.size() == 0;
    });
}

// ------------------------------------------------------------------------------------ mixtures

namespace {

struct made_file {
    std::vector<std::uint8_t> bytes{};

    template <class More>
    void add(More const& more) {
        bytes.insert(bytes.end(), more.data(), more.data() + more.size());
    }
    void add_auxtrace(unsigned idx, std::uint64_t offset, std::vector<std::uint8_t> trace) {
        trace.resize((trace.size() + 7) / 8 * 8);
        add(perf_record(71, 0,
                        join(u64(trace.size()), u64(offset), u64(7), u32(idx), u32(idx + 1),
                             u32(idx + 2), u32(0))));
        add(trace);
    }
    [[nodiscard]] auto streams(std::vector<piece>& slots) const -> stream_list {
        auto const of = open(bytes);
        slots.resize(count_pieces(of));
        return streams_of(of, slots.data(), slots.size());
    }
};

/// A trace as the kernel and perf hand it over, and what is known of it.
struct made_trace {
    std::vector<std::uint8_t> bytes{};
    std::vector<bool> recorded{};                ///< perf has the byte
    std::map<std::uint64_t, unsigned> losses{};  ///< before a byte: AUX records that say so
    std::multimap<std::uint64_t, std::uint64_t> partial{};  ///< the size of the record

    [[nodiscard]] auto is_hole(std::size_t at) const -> bool {
        return at != 0 && at <= bytes.size() && !recorded[at - 1];
    }
};

auto make_trace(std::mt19937& random, made_file& to, unsigned idx) -> made_trace {
    auto const below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
    made_trace made;
    // The AUX records of the kernel, some of size 0, with all mixtures of flags.
    std::vector<std::vector<std::uint8_t>> records;
    for (unsigned count = 1 + below(8); count != 0; --count) {
        unsigned const size = below(4) == 0 ? 0 : 1 + below(60);
        unsigned const flags = below(2) == 0 ? 0 : below(16);
        std::uint64_t const begin = made.bytes.size();
        for (unsigned i = 0; i < size; ++i) {
            made.bytes.push_back(static_cast<std::uint8_t>(below(3) == 0 ? 0 : random()));
        }
        if ((flags & 9) != 0) { made.losses[begin + size] += 1; }
        if ((flags & 4) != 0) { made.partial.emplace(begin, size); }
        made_file one;
        one.add(aux(idx + 2, begin, size, flags));
        records.push_back(one.bytes);
    }
    if (!made.bytes.empty()) { made.bytes.back() |= 1; }  // PADs of perf follow
    // AUXTRACE records end anywhere; some are lost.
    made.recorded.assign(made.bytes.size(), true);
    for (std::uint64_t begin = 0; begin < made.bytes.size();) {
        std::uint64_t const end = std::min<std::uint64_t>(begin + 8 + below(50), made.bytes.size());
        auto const at = [&](std::uint64_t i) {
            return made.bytes.begin() + static_cast<std::ptrdiff_t>(i);
        };
        if (end != made.bytes.size() && end - begin >= 8 && below(8) == 0) {
            std::fill(made.recorded.begin() + static_cast<std::ptrdiff_t>(begin),
                      made.recorded.begin() + static_cast<std::ptrdiff_t>(end), false);
        } else {
            made_file one;
            one.add_auxtrace(idx, begin, {at(begin), at(end)});
            records.push_back(one.bytes);
        }
        begin = end;
    }
    std::shuffle(records.begin(), records.end(), random);
    for (auto const& one : records) { to.add(one); }
    return made;
}

/// True if the pieces of a stream are what is known of its trace.
auto is_right(stream const of, made_trace const& wanted) -> bool {
    std::vector<unsigned> seen(wanted.bytes.size());
    auto losses = wanted.losses;
    auto partial = wanted.partial;
    std::size_t next = 0;  // the byte after the last one
    bool has_gap = false;  // since then
    for (auto const& one : of) {
        has_gap = has_gap || one.has_gap_before;
        if ((one.flags.raw & 9) != 0) {
            auto const found = losses.find(one.offset);
            if (found == losses.end() || !one.has_gap_before || found->second == 0) {
                return false;
            }
            found->second -= 1;
        }
        if ((one.flags.raw & 4) != 0) {
            auto const [first, end] = partial.equal_range(one.offset);
            auto const found = std::find_if(first, end, [&](auto const& of_record) {
                return of_record.second == one.aux_size;
            });
            if (found == end) { return false; }
            partial.erase(found);
        }
        for (std::size_t i = 0; i < one.trace.size(); ++i) {
            auto const at = static_cast<std::size_t>(one.offset + i);
            bool const is_pad = at >= wanted.bytes.size() || !wanted.recorded[at];
            if (is_pad) {
                if (one.trace[i] != 0 || one.trace.size() - i > 7) { return false; }
                continue;
            }
            bool const breaks = wanted.is_hole(at) ||
                                (next <= at &&
                                 wanted.losses.lower_bound(next) != wanted.losses.upper_bound(at));
            if (one.trace[i] != wanted.bytes[at] || seen[at]++ != 0 || at < next ||
                has_gap != breaks) {
                return false;
            }
            has_gap = false;
            next = at + 1;
            // A loss at `next` counts before the byte there.
        }
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i] != (wanted.recorded[i] ? 1 : 0)) { return false; }
    }
    bool const ends_with_loss = !wanted.losses.empty() &&
                                wanted.losses.rbegin()->first == wanted.bytes.size();
    return partial.empty() && has_gap == ends_with_loss &&
           std::all_of(losses.begin(), losses.end(),
                       [](auto const& one) { return one.second == 0; });
}

}  // namespace

TEST_CASE("AUX records with all mixtures of flags: each byte is there once, gaps are in place") {
    std::mt19937 random{1};
    unsigned wrong = 0;
    std::vector<piece> slots;
    for (unsigned round = 0; round < 6000; ++round) {
        made_file file;
        file.add(perf_pipe(event(), info()));
        std::vector<made_trace> traces;
        unsigned const count = 1 + static_cast<unsigned>(random() % 3);
        for (unsigned idx = 0; idx < count; ++idx) {
            traces.push_back(make_trace(random, file, idx));
        }
        auto const got = file.streams(slots);
        std::vector<bool> found(count);
        for (auto const one : got) {
            found[one.idx()] = true;
            wrong += is_right(one, traces[one.idx()]) ? 0 : 1;
        }
        for (unsigned idx = 0; idx < count; ++idx) {
            bool const has_bytes = std::count(traces[idx].recorded.begin(),
                                              traces[idx].recorded.end(), true) != 0;
            wrong += found[idx] == has_bytes ? 0 : 1;
        }
        wrong += got ? 0 : 1;
    }
    CHECK(wrong == 0);
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
