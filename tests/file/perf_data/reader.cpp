// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/file/perf_data/writer.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

#include <algorithm>
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

constexpr uint64_t tid = 1 << 1;
constexpr uint64_t time = 1 << 2;
constexpr uint64_t addr = 1 << 3;
constexpr uint64_t id = 1 << 6;
constexpr uint64_t cpu_bit = 1 << 7;
constexpr uint64_t stream_id = 1 << 9;
constexpr uint64_t identifier = 1 << 16;

constexpr uint64_t sample_id_all = 0x4'0000;

/// HEADER_ATTR with one id.
constexpr auto attr(uint64_t sample_type, uint64_t own_id, uint64_t flags = sample_id_all) {
    test::perf_attr const made{.sample_type = sample_type, .flags = flags};
    return perf_record(64, 0, join(made.bytes(), u64(own_id)));
}

/// The record after `skip` others.
constexpr auto record_after(byte_view bytes, unsigned skip) -> record {
    auto all = records(open(bytes));
    record found;
    for (unsigned i = 0; i <= skip; ++i) { found = all.next(); }
    return found;
}

/// The error after `count` records.
constexpr auto fails_after(byte_view bytes, unsigned count, read_error why, uint64_t offset)
    -> bool {
    auto all = records(open(bytes));
    for (unsigned i = 0; i < count; ++i) {
        if (!all.next()) { return false; }
    }
    return !all.next() && all.result() == read_status{why, offset} && !all.next();
}

constexpr auto offset_after(byte_view bytes, unsigned count) -> uint64_t {
    auto const of = open(bytes);
    auto all = records(of);
    for (unsigned i = 0; i < count; ++i) {
        if (!all.next()) { return 0; }
    }
    return all.offset();
}

}  // namespace

TEST_CASE("a record of the kernel ends as sample_type says") {
    CHECK_TWICE([](auto value) {
        auto const content = join(u32(1), u32(2), letters("12345678"));
        auto const end = join(u32(3), u32(4), u64(5), u64(6), u64(7), u32(8), u32(9), u64(10));
        auto const all = value(
            perf_pipe(attr(tid | time | id | stream_id | cpu_bit | identifier, 10),
                      perf_record(3, 0, join(content, end))));
        auto const got = record_after(all, 1);
        return got.type == record_type::comm && got.offset == 16 + 80 && got.bytes.size() == 72 &&
               got.body() == byte_view{content} && got.id.thread == thread_id{3, 4} &&
               got.id.time == 5 && got.id.stream_id == 7 && got.id.cpu == 8 && got.id.id == 10 &&
               got.id.has.raw == 0x1'02C6;
    });
    CHECK_TWICE([](auto value) {
        auto const all = value(
            perf_pipe(attr(time | id, 10), perf_record(12, 0, join(u64(1), u64(5), u64(10)))));
        auto const got = record_after(all, 1);
        return got.body() == byte_view{u64(1)} && got.id.time == 5 && got.id.id == 10 &&
               got.id.cpu == no_cpu && got.id.thread == thread_id{};
    });
}

TEST_CASE("without sample_id_all, and in records of perf, there is no end") {
    CHECK_TWICE([](auto value) {
        auto const comm = perf_record(3, 0, join(u64(1), u64(2)));
        auto const all = value(perf_pipe(attr(tid | time, 10, 0), comm));
        auto const other = value(
            perf_pipe(attr(tid | time, 10), perf_record(84, 0, join(u64(1), u64(2)))));
        return record_after(all, 1).body().size() == 16 && record_after(all, 1).id.id == 0 &&
               record_after(all, 1).id == sample_id{} &&
               record_after(other, 1).body().size() == 16 &&
               record_after(other, 1).id == sample_id{};
    });
}

TEST_CASE("the id of a record tells which event it belongs to") {
    CHECK_TWICE([](auto value) {
        auto const all = value(
            perf_pipe(attr(tid | identifier, 10), attr(tid | time | identifier, 20),
                      perf_record(12, 0, join(u64(1), u32(3), u32(4), u64(5), u64(20))),
                      perf_record(12, 0, join(u64(1), u32(3), u32(4), u64(10))),
                      perf_record(12, 0, join(u64(1), u32(3), u32(4), u64(5), u64(20))),
                      perf_record(12, 0, join(u64(1), u32(3), u32(4), u64(0)))));
        return record_after(all, 2).id.time == 5 && record_after(all, 2).id.id == 20 &&
               record_after(all, 3).id.thread == thread_id{3, 4} &&
               record_after(all, 3).id.has.raw == 0x1'0002 &&
               record_after(all, 4).body().size() == 8 && record_after(all, 5).body().size() == 8;
    });
}

TEST_CASE("a SAMPLE is read as its event says") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(
            attr(tid | identifier, 10), attr(tid | time | addr | identifier | cpu_bit, 20),
            perf_record(9, 0, join(u64(20), u32(3), u32(4), u64(5), u64(6), u32(7), u32(0))),
            perf_record(9, 0, join(u64(10), u32(3), u32(4), u64(99)))));
        auto const one = record_after(all, 2);
        auto const two = record_after(all, 3);
        return one.id.thread == thread_id{3, 4} && one.id.time == 5 && one.id.cpu == 7 &&
               one.id.id == 20 && read_as<sample_record>(one)->addr == 6 &&
               read_as<sample_record>(one).rest.empty() && two.id.id == 10 &&
               read_as<sample_record>(two).rest == byte_view{u64(99)};
    });
}

TEST_CASE("the id of a SAMPLE is IDENTIFIER, or else ID") {
    CHECK_TWICE([](auto value) {
        auto const both = value(
            perf_pipe(attr(id | identifier, 10), perf_record(9, 0, join(u64(10), u64(11)))));
        auto const plain = value(perf_pipe(attr(id, 10), perf_record(9, 0, u64(11))));
        auto const alone = value(perf_pipe(attr(identifier, 10), attr(tid | identifier, 20),
                                           perf_record(9, 0, u64(10))));
        return record_after(both, 1).id.id == 10 && record_after(plain, 1).id.id == 11 &&
               record_after(alone, 2).id.id == 10;
    });
}

TEST_CASE("the last bytes of a file can be those of a trace") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(
            perf_record(71, 0, join(u64(8), u64(0), u64(0), u32(0), u32(1), u64(2))), u64(9)));
        auto of = records(open(all));
        return of.next().trace == byte_view{u64(9)} && !of.next() && of.result();
    });
}

TEST_CASE("an id that no event has is an error where events differ") {
    CHECK_TWICE([](auto value) {
        auto const comm = perf_record(12, 0, join(u64(1), u32(3), u32(4), u64(99)));
        auto const differ = value(
            perf_pipe(attr(tid | identifier, 10), attr(tid | time | identifier, 20), comm));
        auto const same = value(
            perf_pipe(attr(tid | identifier, 10), attr(tid | addr | identifier, 20), comm));
        auto const without = value(perf_pipe(attr(tid, 10), attr(tid | time, 20), comm));
        return fails_after(differ, 2, read_error::unknown_id, 176) &&
               record_after(same, 2).id.id == 99 &&
               fails_after(without, 2, read_error::unknown_id, 176);
    });
}

TEST_CASE("bytes after AUXTRACE and HEADER_TRACING_DATA are no records") {
    CHECK_TWICE([](auto value) {
        auto const trace = join(u64(0x0202'0202'0202'0202), u64(0));
        auto const all = value(
            perf_pipe(perf_record(71, 0, join(u64(16), u64(0), u64(0), u32(0), u32(1), u64(2))),
                      trace, perf_record(66, 0, join(u32(8), u32(0))), u64(7), perf_record(68, 0)));
        return record_after(all, 0).trace == byte_view{trace} &&
               record_after(all, 1).trace == byte_view{u64(7)} &&
               record_after(all, 2).type == record_type::finished_round && !record_after(all, 3) &&
               offset_after(all, 1) == 80 && offset_after(all, 2) == 104 &&
               offset_after(all, 3) == 112;
    });
}

TEST_CASE("records that cannot be") {
    CHECK_TWICE([](auto value) {
        auto const auxtrace = [](uint64_t size) {
            return perf_record(71, 0, join(u64(size), u64(0), u64(0), u32(0), u32(1), u64(2)));
        };
        auto const first = perf_record(68, 0);
        auto const is = [&](auto const& last, read_error why) {
            auto const all = value(perf_pipe(first, last));
            return fails_after(all, 1, why, 24);
        };
        return is(join(u32(68), test::u16(0), test::u16(0)), read_error::bad_record_size) &&
               is(join(u32(68), test::u16(0), test::u16(7)), read_error::bad_record_size) &&
               is(join(u32(68), test::u16(0), test::u16(9)), read_error::truncated) &&
               is(bytes(1, 2, 3, 4, 5, 6, 7), read_error::truncated) &&
               is(auxtrace(uint64_t{1} << 63), read_error::truncated) &&
               is(auxtrace(~uint64_t{0}), read_error::truncated) &&
               is(auxtrace(1), read_error::truncated) &&
               is(perf_record(71, 0, u64(0)), read_error::record_too_short) &&
               is(perf_record(66, 0), read_error::record_too_short) &&
               is(perf_record(66, 0, u32(1)), read_error::truncated);
    });
}

TEST_CASE("a record that is too short for its end is an error") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(attr(tid | time, 10), perf_record(3, 0, u64(1))));
        auto const sample = value(perf_pipe(attr(tid | time, 10), perf_record(9, 0, u64(1))));
        auto const several = value(
            perf_pipe(attr(identifier, 1), attr(tid | identifier, 2), perf_record(14, 0)));
        return fails_after(all, 1, read_error::record_too_short, 96) &&
               fails_after(sample, 1, read_error::record_too_short, 96) &&
               fails_after(several, 2, read_error::record_too_short, 176);
    });
}

TEST_CASE("records after a damaged one are read, and its bytes are counted") {
    CHECK_TWICE([](auto value) {
        auto const one = perf_record(68, 0);
        auto const other = perf_record(12, 0, join(u64(1), u64(2)));
        auto const with = [&](auto const& damaged, unsigned before, unsigned after, uint64_t bytes,
                              read_error why) {
            auto const all = value(perf_pipe(other, damaged, other, one, other, one));
            auto of = records(open(all));
            unsigned count = 0;
            uint64_t last = 0;
            while (auto const found = of.next()) {
                if (found.offset <= last) { return false; }
                last = found.offset;
                ++count;
            }
            bool const is_whole = why == read_error::none;
            uint64_t const at = is_whole ? 0 : 40;
            return count == before + after && of.result() == read_status{why, at} &&
                   of.skipped().bytes == bytes && of.skipped().offset == at && !of.skipped().to_end;
        };
        auto const header = [](uint32_t type, unsigned size) {
            return join(u32(type), test::u16(0), test::u16(static_cast<uint16_t>(size)));
        };
        using enum read_error;
        return with(other, 2, 4, 0, none) && with(header(68, 0), 1, 4, 8, bad_record_size) &&
               with(header(68, 7), 1, 4, 8, bad_record_size) &&
               with(join(header(68, 0), u64(~uint64_t{0}), u64(0)), 1, 4, 24, bad_record_size) &&
               with(header(68, 0xFFF8), 1, 4, 8, truncated) &&
               // A size that ends in another record.
               with(join(header(12, 40), u64(0), u64(0)), 1, 4, 24, bad_record_size) &&
               // Bytes that look like a record, with none after it.
               with(join(header(68, 0), header(12, 8), u64(0)), 1, 4, 24, bad_record_size) &&
               // A type may be new, if the size is right.
               with(header(0, 8), 2, 4, 0, none) &&
               with(join(header(0x1234'5678, 8), u64(0)), 1, 4, 16, bad_record_type) &&
               with(perf_record(71, 0, u64(0)), 1, 4, 16, record_too_short) &&
               // The trace of an AUXTRACE record is too long, or longer than the file.
               with(join(perf_record(71, 0, join(u64(8), u64(0), u64(0), u64(0), u64(0))), u64(3)),
                    2, 4, 0, none) &&
               with(join(perf_record(71, 0, join(u64(16), u64(0), u64(0), u64(0), u64(0))), u64(3)),
                    1, 4, 56, bad_record_size) &&
               with(join(perf_record(71, 0, join(u64(1ULL << 60), u64(0), u64(0), u64(0), u64(0))),
                         u64(3)),
                    1, 4, 56, truncated);
    });
}

TEST_CASE("records of an odd size, as compressed ones have, move the records after damage") {
    CHECK_TWICE([](auto value) {
        auto const one = perf_record(68, 0);
        auto const all = value(
            perf_pipe(perf_record(81, 0, bytes(1, 2, 3)), one, u64(68), one, one, one));
        auto of = records(open(all));
        unsigned count = 0;
        while (of.next()) { ++count; }
        return count == 5 && of.skipped().bytes == 8 && of.skipped().offset == 16 + 11 + 8;
    });
}

TEST_CASE("a record whose content is damaged is skipped") {
    CHECK_TWICE([](auto value) {
        auto const fork = perf_record(7, 0, join(u64(1), u64(2), u64(3), u64(4), u64(5)));
        auto const all = value(perf_pipe(attr(tid | time, 10), fork, perf_record(3, 0, u64(1)),
                                         fork, perf_record(3, 0), fork));
        auto of = records(open(all));
        unsigned count = 0;
        while (of.next()) { ++count; }
        return count == 4 && of.result() == read_status{read_error::record_too_short, 144} &&
               of.skipped().bytes == 16 + 8 && of.skipped().offset == 144 && !of.skipped().to_end;
    });
}

TEST_CASE("damage without a record after it reaches to the end") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_pipe(perf_record(68, 0), u64(0), u64(~uint64_t{0})));
        auto of = records(open(all));
        return of.next() && !of.next() && of.skipped().bytes == 16 && of.skipped().offset == 24 &&
               of.skipped().to_end && of.result() == read_status{read_error::bad_record_size, 24};
    });
}

TEST_CASE("random damage to one record: all others are read") {
    std::mt19937 numbers{7};
    auto const below = [&](unsigned count) { return static_cast<unsigned>(numbers() % count); };
    uint64_t lost = 0;
    for (unsigned round = 0; round < 20'000; ++round) {
        std::vector<uint8_t> file{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2', 16, 0, 0, 0, 0, 0, 0, 0};
        std::vector<size_t> begins;
        auto const put = [&](uint64_t number, unsigned size) {
            for (unsigned i = 0; i < size; ++i) {
                file.push_back(static_cast<uint8_t>(number >> 8 * i));
            }
        };
        for (unsigned i = 0; i < 12; ++i) {
            begins.push_back(file.size());
            bool const is_trace = below(3) == 0;
            auto const words = is_trace ? 5 : 1 + below(6);
            auto const trace = below(40) * uint64_t{8};
            constexpr uint32_t types[] = {1, 3, 4, 7, 10, 14, 68};
            put(is_trace ? 71 : types[below(7)], 4);
            put(below(0x10000), 2);
            put(8 + words * 8, 2);
            for (unsigned word = 0; word < words; ++word) {
                put(is_trace && word == 0 ? trace : uint64_t{numbers()} << 32 | numbers(), 8);
            }
            for (uint64_t at = 0; is_trace && at < trace; at += 4) { put(numbers(), 4); }
        }
        // The size, the type, or the size of the trace of one record, or all of its header.
        auto const which = below(12);
        auto const at = begins[which];
        bool const is_trace = file[at] == 71;
        constexpr unsigned places[][2] = {{6, 8}, {0, 4}, {8, 16}, {0, 8}};
        auto const& [first, end] = places[is_trace ? below(4) : below(2)];
        for (auto i = first; i < end; ++i) { file[at + i] = static_cast<uint8_t>(numbers()); }
        begins.push_back(file.size());
        // Nothing contradicts a size with which another record follows.
        bool const is_trace_now = load_le(byte_view{file}.from(at).first(4)) == 71;
        auto const next = at + load_le(byte_view{file}.from(at + 6).first(2)) +
                          (is_trace_now ? load_le(byte_view{file}.from(at + 8).first(8)) : 0);
        if (std::find(begins.begin() + which + 2, begins.end(), next) != begins.end()) { continue; }
        begins.pop_back();
        auto of = records(open({file.data(), file.size()}));
        std::vector<size_t> found;
        while (auto const one = of.next()) { found.push_back(static_cast<size_t>(one.offset)); }
        for (size_t i = 0; i < begins.size(); ++i) {
            bool const is_found = std::find(found.begin(), found.end(), begins[i]) != found.end();
            lost += i != which && !is_found ? 1 : 0;
        }
    }
    CHECK(lost == 0);
}

TEST_CASE("a pipe without records") {
    CHECK_TWICE([](auto value) {
        auto const empty = value(perf_pipe());
        auto all = records(open(empty));
        return !all.next() && all.result() && all.offset() == 16;
    });
}

TEST_CASE("an error of open is the error of the records") {
    CHECK_TWICE([](auto value) {
        auto const none = value(letters("PERFILE3"));
        return fails_after(none, 0, read_error::not_perf_data, 0) &&
               records(open(none)).offset() == 0;
    });
}

TEST_CASE("what the writer writes is read back") {
    CHECK_TWICE([](auto value) {
        session of;
        of.ctl = of.ctl.with(reg::ia32_rtit_ctl::TSCEn{true});
        of.clock = time_conversion::of_frequency(2'000'000'000);
        byte_array<1024> memory{};
        byte_buffer file{memory.bytes};
        writer to{of, file};
        constexpr auto trace = bytes(1, 2, 3, 4, 5);
        bool right = to.begin() &&
                     to.write(comm_record{.header = {.misc = misc_comm_exec}, .pid = 1, .tid = 2},
                              "name", value(uint64_t{9})) &&
                     to.write(fork_record{.pid = 1, .ppid = 1, .tid = 3, .ptid = 2, .time = 10}) &&
                     to.write(auxtrace_record{
                         .size = 5, .offset = 3, .reference = 7, .idx = 4, .tid = 2}) &&
                     to.append_trace(trace) &&
                     to.write(exit_record{.pid = 1, .ppid = 1, .tid = 3, .ptid = 2, .time = 11}) &&
                     to.finished_round() && to.finish();
        auto const begin = head(of, to.data_size());
        copy_bytes(memory.bytes, begin.data(), begin.size());

        auto all = records(open(file.written()));
        right = right && read_as<auxtrace_info_record>(all.next())->MTC_BIT == 0x200;
        auto const comm = all.next();
        right = right && read_as<comm_record>(comm).string() == byte_view{letters("name")} &&
                read_as<comm_record>(comm)->is_exec() && comm.id.time == 9 &&
                comm.id.thread == thread_id{1, 2} && comm.id.id == event_id;
        auto const fork = all.next();
        right = right && thread_of(read_as<fork_record>(fork).value) == thread_id{1, 3} &&
                read_as<fork_record>(fork)->parent() == thread_id{1, 2} && fork.id.time == 10;
        auto const piece = all.next();
        right = right && read_as<auxtrace_record>(piece)->offset == 3 &&
                piece.trace == byte_view{bytes(1, 2, 3, 4, 5, 0, 0, 0)};
        right = right && read_as<exit_record>(all.next())->time == 11;
        return right && all.next().type == record_type::finished_round && !all.next() &&
               all.result();
    });
}
