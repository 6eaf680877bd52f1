// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/record.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::join;
using test::perf_record;
using test::u32;
using test::u64;

TEST_CASE("the record at an offset, and the bytes after it") {
    CHECK_TWICE([](auto value) {
        auto const all = value(
            join(u64(0), perf_record(7, 0, join(u64(1), u64(2))), perf_record(3, 0, u64(3))));
        auto const first = file::perf_data::detail::frame_at(byte_view{all}, 8);
        auto const cut = file::perf_data::detail::frame_at(byte_view{all}.first(8 + 23), 8);
        return first.found && first.next == 32 && first.found.bytes.size() == 24 &&
               first.found.body() == byte_view{all}.from(16).first(16) && !record{} &&
               cut.result == read_status{read_error::truncated, 8};
    });
}

TEST_CASE("the end of a record of the kernel is what sample_type names") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_record(2, 0, join(u64(9), u32(5), u32(6), u64(7))));
        record made;
        made.bytes = made.content = all;
        made.event = sample_type{}.with(sample_type::TID{true}, sample_type::TIME{true});
        bool const right = file::perf_data::detail::split_id(made) == read_error::none &&
                           made.id.thread.pid == 5 && made.id.thread.tid == 6 &&
                           made.id.time == 7 && made.body() == byte_view{all}.from(8).first(8);
        made.bytes = byte_view{all}.first(16);
        return right && file::perf_data::detail::split_id(made) == read_error::record_too_short;
    });
}

TEST_CASE("the bytes of one record of the kernel, as the data area of an event has them") {
    CHECK_TWICE([](auto value) {
        constexpr auto members = sample_type{}.with(sample_type::TID{true},
                                                    sample_type::TIME{true});
        auto const one = value(perf_record(2, 0, join(u64(9), u32(5), u32(6), u64(7))));
        auto const got = kernel_record(one, members);
        bool const right = got && got.type == record_type::lost && got.id.thread.tid == 6 &&
                           got.id.time == 7 && got.body() == byte_view{one}.from(8).first(8);
        // A SAMPLE has its members where others have a trailer.
        auto const sample = kernel_record(value(perf_record(9, 0, u64(1))), members);
        return right && sample && sample.id.has.raw == 0 &&
               !kernel_record(value(perf_record(2, 0, u64(9))), members) &&   // no room for an id
               !kernel_record(value(perf_record(70, 0, u64(9))), members) &&  // of perf
               !kernel_record(byte_view{one}.first(31), members) && !kernel_record({}, members);
    });
}

TEST_CASE("two types of records are compressed") {
    CHECK(is_compressed(record_type::compressed));
    CHECK(is_compressed(record_type::compressed2));
    CHECK(!is_compressed(record_type::aux));
}
