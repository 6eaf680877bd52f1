// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/made_stream.hpp>

#include <ptspec/base/readers.hpp>
#include <ptspec/file/perf_data/build_ids.hpp>
#include <ptspec/file/perf_data/event_reader.hpp>
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/file/winipt.hpp>
#include <ptspec/flow/block_cache.hpp>
#include <ptspec/flow/walker.hpp>
#include <ptspec/trace/events.hpp>

using namespace ptspec;
using test::made_stream;

namespace {

struct no_code {
    constexpr auto code(uint32_t, uint64_t) noexcept -> byte_view { return {}; }
};

static_assert(chunk_reader<trace::reader<>> && next_reader<trace::reader<>>);
static_assert(chunk_reader<trace::event_reader<>> && next_reader<trace::event_reader<>>);
static_assert(chunk_reader<flow::walker<no_code>>);
static_assert(next_reader<file::perf_data::event_reader>);
static_assert(file_reader<file::perf_data::record_reader>);
static_assert(file_reader<file::perf_data::attr_reader>);
static_assert(file_reader<file::perf_data::build_id_reader>);
static_assert(file_reader<file::winipt::reader>);

/// Feeds one byte at a time. Returns whether `offset()` never exceeds the bytes that were given,
/// and is the size in the end.
template <class Reader, class Next>
constexpr auto has_offsets_of(made_stream const& whole, Reader from, Next next) -> bool {
    for (size_t given = 0; given <= whole.size; ++given) {
        auto const chunk = whole.view().from(given).first(1);
        if (!chunk.empty() && !from.feed(chunk)) { return false; }
        if (chunk.empty()) { from.finish(); }
        while (next(from)) {}
        size_t const sofar = given + chunk.size();
        if (from.offset() > sofar) { return false; }
    }
    return from.offset() == whole.size && !from.feed(whole.view());
}

}  // namespace

TEST_CASE("offset() is the position in a trace, in chunks, too (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const whole = value(made_stream{"ON 06 3d1010 2d0020 9902 2d0030 021201000000 5901 04",
                                             engine::model_kind::manual});
        auto const by_next = [](auto& from) { return bool{from.next()}; };
        return has_offsets_of(whole, trace::reader<>{}, by_next) &&
               has_offsets_of(whole, trace::event_reader<>{trace::no_clock{}}, by_next);
    });
}

TEST_CASE("after an event, offset() is after its packet, and no item is lost") {
    CHECK_TWICE([](auto value) {
        auto const whole = value(made_stream{"ON 06 3d1010 2d0020", engine::model_kind::manual});
        trace::event_reader<> from{byte_view{whole.view()}};
        uint64_t last = 0;
        while (auto const& one = from.next()) {
            if (from.offset() <= one.offset || from.offset() < last) { return false; }
            last = from.offset();
        }
        return last == whole.size;
    });
}

TEST_CASE("a file reader is at the error that ended reading") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(byte_array<4>{{1, 2, 3, 4}});
        file::winipt::reader from{byte_view{bytes}};
        auto const none = from.next();
        return !none && !from.result() && from.offset() == 0;
    });
}
