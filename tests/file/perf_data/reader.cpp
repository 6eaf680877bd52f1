// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/file/perf_data/writer.hpp>

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
