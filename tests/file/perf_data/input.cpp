// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/input.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::bytes;
using test::join;
using test::letters;
using test::perf_record;
using test::u32;
using test::u64;

namespace {

constexpr auto finished_round = perf_record(68, 0);

/// A perf_event_attr of 64 bytes.
constexpr auto attr_of(unsigned type, uint64_t sample_type, uint64_t flags) {
    return test::perf_attr{type, 0x2401, sample_type, 4, flags}.bytes();
}

/// Ids at 104, two attributes at 128, a record at 288, the table of sections of two features at
/// 296, their data at 328.
constexpr auto small_file() {
    auto const ids = join(u64(11), u64(12), u64(21));
    auto const attrs = join(attr_of(8, 0x1'0087, 0x4'0000), u64(104), u64(16),
                            attr_of(1, 0x1'0107, 0x4'0000), u64(120), u64(8));
    auto const header = join(letters("PERFILE2"), u64(104), u64(80), u64(128), u64(160), u64(288),
                             u64(8), u64(0), u64(0), u64(1U << 9), u64(1), u64(0), u64(0));
    auto const features = join(u64(328), u64(24), u64(352), u64(4), u32(20),
                               letters("GenuineIntel,6,78,3"), bytes(0), letters("next"));
    return join(header, ids, attrs, finished_round, features);
}

constexpr auto small_pipe() {
    return join(letters("PERFILE2"), u64(16), finished_round,
                perf_record(80, 0, join(u64(9), u32(20), letters("GenuineIntel,6,78,3"), bytes(0))),
                perf_record(64, 0, join(attr_of(8, 0x1'0087, 0), u64(11), u64(12))), finished_round,
                perf_record(64, 0, join(attr_of(1, 0x1'0107, 0), u64(21))), finished_round);
}

/// The file with a quadword changed.
template <class File>
constexpr auto changed(File file, size_t at, uint64_t word) -> File {
    store_le64(file.bytes + at, word);
    return file;
}

constexpr auto is_two_events(input const& of) -> bool {
    auto events = attrs_of(of);
    auto const one = events.next();
    auto const two = events.next();
    return one && one.type == 8 && one.config == 0x2401 &&
           one.sample_type.value().raw == 0x1'0087 && one.id_count() == 2 && one.id(0) == 11 &&
           one.id(1) == 12 && two && two.type == 1 && two.id_count() == 1 && two.id(0) == 21 &&
           !events.next() && events.result();
}

constexpr auto fails(byte_view bytes, read_error why, uint64_t offset) -> bool {
    auto const of = open(bytes);
    return !of && of.result == read_status{why, offset};
}

}  // namespace

TEST_CASE("a file in file layout") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(small_file());
        auto const of = open(bytes);
        return of && of.layout == file_layout::file && of.data_begin == 288 && of.data_end == 296 &&
               !of.is_cut && is_two_events(of) && of.first_type.raw == 0x1'0087 &&
               of.has_sample_ids && of.id_types_differ && of.sample_types_differ &&
               of.all_have_identifier;
    });
}

TEST_CASE("offset() is after the event, in a file and in a pipe") {
    CHECK_TWICE([](auto value) {
        auto const is_at = [](byte_view bytes, size_t begin, size_t after_one, size_t after_two) {
            auto const of = open(bytes);
            auto events = attrs_of(of);
            bool right = events.offset() == begin;
            right = right && events.next() && events.offset() == after_one;
            return right && events.next() && events.offset() == after_two;
        };
        return is_at(value(small_file()), 128, 208, 288) &&
               is_at(value(small_pipe()), 64, 152, 240);
    });
}

TEST_CASE("a file in pipe layout") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(small_pipe());
        auto const of = open(bytes);
        return of && of.layout == file_layout::pipe && of.data_begin == 16 &&
               of.data_end == bytes.size() && is_two_events(of) && !of.has_sample_ids;
    });
}

TEST_CASE("features, in a section and in records") {
    CHECK_TWICE([](auto value) {
        auto const file = value(small_file());
        auto const pipe = value(small_pipe());
        bool right = true;
        for (byte_view const bytes : {byte_view{file}, byte_view{pipe}}) {
            auto const of = open(bytes);
            auto const cpuid = text_feature_of(of, feature_id::cpuid);
            auto const model = model_of(of);
            right = right && cpuid && cpuid.bytes == byte_view{letters("GenuineIntel,6,78,3")} &&
                    bytes.from(static_cast<size_t>(cpuid.offset)).first(12) ==
                        byte_view{letters("GenuineIntel")} &&
                    model && model.model == cpu::cpu_model{6, 78, 3} &&
                    feature_of(of, feature_id::auxtrace).result.error == read_error::no_feature;
        }
        // The index of a section counts the bits below, also those of other words.
        auto const next = feature_of(open(file), static_cast<feature_id>(64));
        return right && next && next.offset == 352 && next.bytes == byte_view{letters("next")};
    });
}

TEST_CASE("features that end after the file") {
    CHECK_TWICE([](auto value) {
        auto const why = [&](size_t at, uint64_t word) {
            auto const bytes = value(changed(small_file(), at, word));
            return feature_of(open(bytes), feature_id::cpuid).result;
        };
        constexpr uint64_t huge = ~uint64_t{0};
        read_status const wanted{read_error::truncated, 296};
        bool const right = why(296, huge) == wanted && why(296, 357) == wanted &&
                           why(304, huge) == wanted && why(304, 29) == wanted && why(304, 28);
        // The table is after the end, or ends there.
        auto const whole = value(small_file());
        auto const cut = open(byte_view{whole}.first(311));
        // A string is longer than its feature.
        auto const longer = value(changed(small_file(), 304, 23));
        // A feature without data may be anywhere in the file.
        auto const empty = value(changed(changed(small_file(), 304, 0), 296, 356));
        return right && feature_of(open(empty), feature_id::cpuid) &&
               feature_of(cut, feature_id::cpuid).result ==
                   read_status{read_error::truncated, 311} &&
               text_feature_of(open(longer), feature_id::cpuid).result ==
                   read_status{read_error::truncated, 328};
    });
}

TEST_CASE("bytes that are no perf.data file") {
    CHECK_TWICE([](auto value) {
        auto const file = value(small_file());
        uint64_t const sizes[] = {0, 15, 17, 64, 71, 73, 103, 105};
        for (uint64_t const size : sizes) {
            if (!fails(value(changed(file, 8, size)), read_error::bad_header, 8)) { return false; }
        }
        return fails({}, read_error::not_perf_data, 0) &&
               fails(byte_view{file}.first(7), read_error::not_perf_data, 0) &&
               fails(byte_view{file}.first(15), read_error::truncated, 0) &&
               fails(byte_view{file}.first(103), read_error::truncated, 0) &&
               fails(value(join(letters("2ELIFREP"), u64(104))), read_error::big_endian, 0) &&
               fails(value(join(letters("PERFFILE"), u64(104))), read_error::old_format, 0) &&
               fails(value(changed(file, 8, uint64_t{1} << 63)), read_error::bad_header, 8);
    });
}

TEST_CASE("sections that cannot be") {
    CHECK_TWICE([](auto value) {
        constexpr uint64_t huge = ~uint64_t{0};
        auto const is = [&](size_t at, uint64_t word, read_error why, uint64_t offset) {
            return fails(value(changed(small_file(), at, word)), why, offset);
        };
        auto const last = value(changed(small_file(), 192, 340));
        // Sections that contain each other are read as they are.
        auto const inside = value(changed(changed(small_file(), 192, 0), 200, 352));
        return is(16, 79, read_error::bad_header, 16) && is(32, 161, read_error::bad_header, 32) &&
               is(24, huge, read_error::truncated, 24) && is(32, huge, read_error::truncated, 24) &&
               is(24, 197, read_error::truncated, 24) && is(48, 0, read_error::unfinished, 48) &&
               is(40, huge, read_error::truncated, 40) && is(40, 357, read_error::truncated, 40) &&
               is(48, huge, read_error::truncated, 40) &&
               // the size of an attribute, and its ids
               is(128, 8 | uint64_t{65} << 32, read_error::bad_header, 128) &&
               is(128, 8 | uint64_t{63} << 32, read_error::bad_header, 128) &&
               is(192, huge, read_error::truncated, 192) &&
               is(200, huge, read_error::truncated, 192) &&
               is(192, 341, read_error::truncated, 192) && open(last) && open(inside);
    });
}

TEST_CASE("an event without ids has no section of them") {
    CHECK_TWICE([](auto value) {
        auto const file = value(changed(changed(small_file(), 192, ~uint64_t{0}), 200, 0));
        auto const of = open(file);
        auto events = attrs_of(of);
        return of && events.next().id_count() == 0 && events.next().id_count() == 1;
    });
}

TEST_CASE("a header without features, and a file without events") {
    CHECK_TWICE([](auto value) {
        auto const old = value(join(letters("PERFILE2"), u64(72), u64(0), u64(0), u64(0), u64(72),
                                    u64(8), u64(0), u64(0), finished_round));
        auto const of = open(old);
        auto events = attrs_of(of);
        return of && of.data_begin == 72 && !events.next() && events.result() &&
               !of.has_sample_ids && !feature_of(of, feature_id::cpuid) && !model_of(of);
    });
}

TEST_CASE("a file of a directory") {
    CHECK_TWICE([](auto value) {
        auto const made = [&](uint64_t directory) {
            return value(join(letters("PERFILE2"), u64(104), u64(0), u64(0), u64(0), u64(104),
                              u64(8), u64(0), u64(0), u64(1U << 24), u64(0), u64(0), u64(0),
                              finished_round, u64(128), u64(8), u64(directory)));
        };
        auto const alone = made(0);
        return open(alone) && fails(made(1), read_error::directory, 72) &&
               fails(byte_view{alone}.first(127), read_error::truncated, 127) &&
               fails(byte_view{alone}.first(135), read_error::truncated, 112);
    });
}

TEST_CASE("a file that is cut is opened") {
    CHECK_TWICE([](auto value) {
        auto const file = value(small_file());
        auto const of = open(byte_view{file}.first(292));
        return of && of.is_cut && of.data_end == 292 && is_two_events(of);
    });
}

TEST_CASE("the model in a string of CPUID") {
    CHECK_TWICE([](auto value) {
        auto const model = [](auto const& text) { return model_in(text); };
        auto const known = model(value(letters("GenuineIntel,19,1,0")));
        return known && known.model == cpu::cpu_model{19, 1, 0} &&
               !model(value(letters("AuthenticAMD,25,97,2"))) &&
               !model(value(letters("GenuineIntel"))) && !model(value(letters("GenuineIntel,6"))) &&
               !model(value(letters("GenuineIntel,6,78,"))) &&
               !model(value(letters("GenuineIntel,6,,3"))) &&
               !model(value(letters("GenuineIntel,6,78,3 "))) &&
               !model(value(letters("GenuineIntel,6,78,3,1"))) &&
               !model(value(letters("GenuineIntel;6,78,3"))) &&
               model(value(letters("GenuineIntel,6,9999,3"))) &&
               !model(value(letters("GenuineIntel,6,10000,3"))) && !model(byte_view{});
    });
}
