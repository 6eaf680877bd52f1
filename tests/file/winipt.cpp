// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/winipt.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

using namespace ptspec;
using namespace ptspec::file::winipt;
using test::bytes;
using test::join;
using test::u16;
using test::u32;
using test::u64;

namespace {

/// A header, with `size` bytes in its ring that begins at `ring`.
constexpr auto header(uint64_t thread, unsigned ring, unsigned size) {
    return join(u64(thread), u32(2), u32(3), u32(84), u32(ring), u32(size));
}
constexpr auto data(unsigned size) { return join(u16(1), u16(1), u32(size)); }

constexpr auto fails_after(byte_view file, unsigned count, error why, uint64_t offset) -> bool {
    auto all = traces(file);
    for (unsigned i = 0; i < count; ++i) {
        if (!all.next()) { return false; }
    }
    return !all.next() && all.result() == read_status{why, offset} && !all.next();
}

}  // namespace

TEST_CASE("each thread has a ring: its oldest byte is at the offset") {
    CHECK_TWICE([](auto value) {
        auto const file = value(join(data(28 + 5 + 28 + 3), header(0x1'0000'0002, 2, 5),
                                     bytes(4, 5, 1, 2, 3), header(7, 3, 3), bytes(6, 7, 8)));
        auto all = traces(file);
        auto const one = all.next();
        auto const two = all.next();
        return one && one.offset == 8 && one.thread_id == 0x1'0000'0002 &&
               one.timing_settings == timing::cyc && one.mtc_frequency == 3 &&
               one.tsc_ratio == 84 && one.older() == byte_view{bytes(1, 2, 3)} &&
               one.newer() == byte_view{bytes(4, 5)} && one.ring.size() == 5 && two &&
               two.offset == 41 && two.thread_id == 7 && two.older().empty() &&
               two.newer() == byte_view{bytes(6, 7, 8)} && !all.next() && all.result();
    });
}

TEST_CASE("offset() is after the trace, and stays at an error") {
    CHECK_TWICE([](auto value) {
        auto const file = value(join(data(28 + 5 + 28 + 3), header(0x1'0000'0002, 2, 5),
                                     bytes(4, 5, 1, 2, 3), header(7, 4, 3), bytes(6, 7, 8)));
        auto all = traces(file);
        bool const begins = all.offset() == 8;
        bool const has_one = bool{all.next()};
        return begins && has_one && all.offset() == 41 && !all.next() && !all.result() &&
               all.offset() == 41;
    });
}

TEST_CASE("no thread, and an empty ring") {
    CHECK_TWICE([](auto value) {
        auto const nothing = value(data(0));
        auto none = traces(nothing);
        auto const file = value(join(data(28), header(7, 0, 0)));
        auto empty = traces(file);
        auto const one = empty.next();
        return !none.next() && none.result() && one && one.older().empty() && one.newer().empty() &&
               !empty.next() && empty.result();
    });
}

TEST_CASE("bytes after the size are not read; zeros before it are no trace") {
    CHECK_TWICE([](auto value) {
        auto const longer = value(join(data(29), header(7, 0, 1), bytes(9, 1, 2, 3)));
        auto const zeros = value(join(data(31), header(7, 0, 1), bytes(9, 0, 0)));
        auto const others = value(join(data(31), header(7, 0, 1), bytes(9, 0, 1)));
        return fails_after(longer, 1, error::none, 0) && fails_after(zeros, 1, error::none, 0) &&
               fails_after(others, 1, error::trailing_bytes, 37);
    });
}

TEST_CASE("broken files") {
    CHECK_TWICE([](auto value) {
        auto const file = value(join(data(30), header(7, 1, 2), bytes(1, 2)));
        bool right = true;
        for (size_t size = 0; size < 38; ++size) {
            right = right &&
                    fails_after(byte_view{file}.first(size), 0, error::truncated, size < 8 ? 0 : 8);
        }
        auto const newer = value(join(u16(2), u16(1), u32(0)));
        auto const valid = value(join(u16(1), u16(0), u32(0)));
        auto const ring = value(join(data(30), header(7, 3, 2), bytes(1, 2)));
        auto const large = value(join(data(30), header(7, 0, 3), bytes(1, 2)));
        auto const huge = value(join(data(0xFFFF'FFFF), header(7, 0, 0xFFFF'FFFF), bytes(1, 2)));
        auto const cut = value(join(data(31), header(7, 1, 2), bytes(1, 2)));
        return right && fails_after(newer, 0, error::unknown_version, 0) &&
               fails_after(valid, 0, error::not_valid, 2) &&
               fails_after(ring, 0, error::bad_ring_offset, 8) &&
               fails_after(large, 0, error::truncated, 8) &&
               fails_after(huge, 0, error::truncated, 8) &&
               fails_after(cut, 1, error::truncated, 38);
    });
}

TEST_CASE("each error has a sentence of its own") {
    CHECK_TWICE([](auto value) {
        constexpr unsigned count = underlying(error::trailing_bytes) + 1;
        bool right = true;
        for (unsigned one = 0; one < count; ++one) {
            auto const text = describe(static_cast<error>(value(one)));
            right = right && text.size() != 0 && !(text == "unknown error");
            for (unsigned other = 0; other < one; ++other) {
                right = right && !(text == describe(static_cast<error>(other)));
            }
        }
        return right && describe(static_cast<error>(value(count))) == "unknown error";
    });
}

TEST_CASE("the structures have the sizes of those in C") {
    static_assert(sizeof(layout::trace_data) == 8 && sizeof(layout::trace_header) == 28);
    static_assert(underlying(timing::none) == 0 && underlying(timing::mtc) == 1);
}
