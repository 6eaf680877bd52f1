// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/build_ids.hpp>

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

constexpr auto id = letters("0123456789abcdefghij");
/// An entry of 20 bytes, and one of 4 that says so.
constexpr auto whole_entry(unsigned type) {
    return perf_record(type, 2, join(u32(7), id, u32(0), letters("/bin/a"), bytes(0, 0)));
}
constexpr auto short_entry(unsigned type) {
    return perf_record(type, 1U << 15, join(u32(~0U), id, u32(4), letters("[vdso]"), bytes(0, 0)));
}
constexpr auto unnamed_entry(unsigned type) {
    return perf_record(type, 0, join(u32(7), id, u32(0)));
}

/// The header, and at 104 the table of the section of the feature with this data.
template <class Data>
constexpr auto file_of(Data const& data, uint64_t size = sizeof(Data)) {
    return join(letters("PERFILE2"), u64(104), u64(80), u64(104), u64(0), u64(104), u64(0), u64(0),
                u64(0), u64(1U << 2), u64(0), u64(0), u64(0), u64(120), u64(size), data);
}
constexpr auto small_pipe() {
    return test::perf_pipe(perf_record(68, 0), whole_entry(67), unnamed_entry(67),
                           perf_record(68, 0), short_entry(67));
}
constexpr auto is_text(byte_view one, char const* what) -> bool {
    size_t i = 0;
    for (; what[i] != 0; ++i) {
        if (i == one.size() || one[i] != static_cast<uint8_t>(what[i])) { return false; }
    }
    return i == one.size();
}
constexpr auto has_both(byte_view file) -> bool {
    auto all = build_ids(open(file));
    auto const one = all.next();
    auto const two = all.next();
    return one && one.pid == 7 && is_text(one.id(), "0123456789abcdefghij") &&
           is_text(one.filename, "/bin/a") && two && two.pid == ~0U && is_text(two.id(), "0123") &&
           is_text(two.filename, "[vdso]") && !all.next() && all.result();
}

}  // namespace

TEST_CASE("The build ids of a feature and of records") {
    CHECK_TWICE([](auto known) {
        return has_both(file_of(join(whole_entry(known(0U)), unnamed_entry(0), short_entry(0))));
    });
    CHECK_TWICE([](auto) { return has_both(small_pipe()); });
}

TEST_CASE("A file without build ids has none, and no error") {
    CHECK_TWICE([](auto) {
        auto const file = join(letters("PERFILE2"), u64(104), u64(80), u64(104), u64(0), u64(104),
                               u64(0), u64(0), u64(0), u64(0), u64(0), u64(0), u64(0));
        auto all = build_ids(open(file));
        return !all.next() && all.result();
    });
}

TEST_CASE("A damaged feature ends with an error, after the entries before it") {
    CHECK_TWICE([](auto) {
        auto const cut = file_of(join(whole_entry(0), u32(0), u32(60U << 16)));
        auto all = build_ids(open(cut));
        bool const has_first = bool{all.next()};
        bool const is_after = all.offset() == 120 + sizeof whole_entry(0).bytes;
        return has_first && is_after && !all.next() &&
               all.result().error == read_error::truncated &&
               all.result().offset == 120 + sizeof whole_entry(0).bytes;
    });
    CHECK_TWICE([](auto) {
        auto const small = file_of(perf_record(0, 0, u32(7)));
        auto all = build_ids(open(small));
        return !all.next() && all.result().error == read_error::record_too_short;
    });
    CHECK_TWICE([](auto) {
        auto const cut = file_of(whole_entry(0), 10'000);
        auto all = build_ids(open(cut));
        return !all.next() && all.result().error == read_error::truncated;
    });
}
