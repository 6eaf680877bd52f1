// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/area_reader.hpp>

#include <support/kernel_areas.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace ptspec;
using namespace ptspec::ports::perf_event;
using file::perf_data::record_type;
using test::kernel_areas;

namespace {

using bytes = std::vector<uint8_t>;

/// The byte of a trace at an offset.
auto byte_at(uint64_t offset) -> uint8_t {
    return static_cast<uint8_t>(offset * 37 + offset / 251);
}
auto trace_at(uint64_t offset, uint64_t count) -> bytes {
    bytes made;
    for (uint64_t i = 0; i < count; ++i) { made.push_back(byte_at(offset + i)); }
    return made;
}

/// What a reader passed on, in a line each; trace that continues is one line.
struct listing {
    std::vector<std::string> lines{};
    std::vector<uint64_t> gaps{};
    uint64_t end = 0;  ///< of the trace
    uint64_t wrong = 0;
    bool is_open = false;

    void trace(aux_bytes const& some) {
        take(some.parts[0], some.offset);
        take(some.parts[1], some.offset + some.parts[0].size());
    }
    void take(byte_view some, uint64_t offset) {
        if (some.empty()) { return; }
        for (size_t i = 0; i < some.size(); ++i) {
            wrong += some[i] != byte_at(offset + i) ? 1 : 0;
        }
        wrong += offset != end ? 1 : 0;
        end = offset + some.size();
        if (is_open) { lines.pop_back(); }
        lines.push_back("trace to " + std::to_string(end));
        is_open = true;
    }
    void record(file::perf_data::record const& one) {
        if (one.type == record_type::aux) { return; }
        lines.push_back("record " + std::to_string(underlying(one.type)));
        is_open = false;
    }
    void gap(uint64_t offset, loss why) {
        gaps.push_back(offset);
        lines.push_back("gap at " + std::to_string(offset) + ": " +
                        std::to_string(underlying(why)));
        is_open = false;
    }
};

using lines = std::vector<std::string>;

/// A gap must be at one of these offsets: up to where the kernel stored the next AUX record.
struct missing {
    uint64_t first;
    uint64_t last;
};

}  // namespace

TEST_CASE("trace and records come in the order of the kernel") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    CHECK(!reader.read(got).has_more);
    kernel.trace(trace_at(0, 100));
    kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}));
    kernel.trace(trace_at(100, 50));
    kernel.store(kernel_areas::record_of(PERF_RECORD_ITRACE_START, {7}));
    auto const found = reader.read(got);
    CHECK(found.has_more);
    CHECK(!found.is_stopped);
    CHECK(got.lines == lines{"trace to 100", "record 14", "trace to 150", "record 12"});
    CHECK(got.wrong == 0);
    CHECK(kernel.page.aux_tail == 150);
    CHECK(kernel.page.data_tail == kernel.page.data_head);
    CHECK(!reader.read(got).has_more);
}

TEST_CASE("a full area, and a collision, are gaps at the end of the bytes before them") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    CHECK(kernel.trace(trace_at(0, 5000)) == 4096);
    CHECK(reader.read(got).is_stopped);
    kernel.trace(trace_at(4096, 10), PERF_AUX_FLAG_COLLISION);
    kernel.trace(trace_at(4106, 10), PERF_AUX_FLAG_PARTIAL);
    kernel.trace({}, PERF_AUX_FLAG_TRUNCATED);
    auto const found = reader.read(got);
    CHECK(found.is_stopped);
    CHECK(got.lines == lines{"trace to 4096", "gap at 4096: 0", "trace to 4106", "gap at 4106: 1",
                             "trace to 4116", "gap at 4116: 0"});
    CHECK(got.wrong == 0);
}

TEST_CASE("an event is stopped until trace comes: the kernel may stop it after it was enabled") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    kernel.trace(trace_at(0, 5000));
    CHECK(reader.read(got).is_stopped);
    CHECK(reader.read(got).is_stopped);
    kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}));
    CHECK(reader.read(got).is_stopped);
    kernel.trace(trace_at(4096, 10));
    CHECK(!reader.read(got).is_stopped);
    kernel.trace({}, PERF_AUX_FLAG_TRUNCATED);
    kernel.trace(trace_at(4106, 10));
    CHECK(!reader.read(got).is_stopped);
}

TEST_CASE("an event may be stopped where records are lost") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    while (kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}))) {}
    kernel.trace(trace_at(0, 5000));
    CHECK(!kernel.has_record);
    CHECK(reader.read(got).is_stopped);
    kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}));  // after a LOST record
    CHECK(reader.read(got).is_stopped);
    kernel.trace(trace_at(4096, 10));
    CHECK(!reader.read(got).is_stopped);
}

TEST_CASE("trace whose AUX record is lost ends with a gap") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    while (kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}))) {}
    kernel.trace(trace_at(0, 30));
    CHECK(!kernel.has_record);
    CHECK(reader.read(got).has_more);
    CHECK(got.lines.back() == "gap at 30: 2");
    CHECK(got.lines[got.lines.size() - 2] == "trace to 30");
    CHECK(kernel.page.aux_tail == 30);
    CHECK(reader.lost_records() == 0);
    kernel.trace(trace_at(30, 10));  // with a LOST record
    (void)reader.read(got);
    CHECK(got.gaps == std::vector<uint64_t>{30});
    CHECK(got.lines.back() == "trace to 40");
    CHECK(reader.lost_records() == kernel.lost_in_all);
    CHECK(got.wrong == 0);
}

TEST_CASE("lost records are a gap, since an AUX record may be among them") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    kernel.trace(trace_at(0, 4096));
    while (kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}))) {}
    kernel.trace(trace_at(4096, 1));  // no room, nor a record about it
    CHECK(!kernel.has_record);
    (void)reader.read(got);
    CHECK(got.gaps.empty());
    kernel.trace(trace_at(4096, 7));
    (void)reader.read(got);
    CHECK(got.lines[got.lines.size() - 3] == "gap at 4096: 2");
    CHECK(got.lines.back() == "trace to 4103");
    while (kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}))) {}
    (void)reader.read(got);
    kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}));
    (void)reader.read(got);
    CHECK(got.gaps == std::vector<uint64_t>{4096, 4103});
}

TEST_CASE("an AUX record waits for its bytes, but not for bytes that cannot come") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    kernel.store(kernel_areas::record_of(PERF_RECORD_AUX, {0, 20, 0}));
    CHECK(!reader.read(got).has_more);
    CHECK(got.lines.empty());
    bytes const trace = trace_at(0, 20);
    std::copy(trace.begin(), trace.end(), kernel.aux());
    kernel.page.aux_head = 20;
    CHECK(reader.read(got).has_more);
    CHECK(got.lines == lines{"trace to 20"});
    kernel.store(kernel_areas::record_of(PERF_RECORD_AUX, {20, uint64_t{1} << 40, 0}));
    CHECK(reader.read(got).has_more);
    CHECK(got.lines == lines{"trace to 20", "gap at 20: 3"});
    CHECK(kernel.page.data_tail == kernel.page.data_head);
}

TEST_CASE("records that cannot be read are counted, and trace goes on") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    kernel.store({70, 0, 0, 0, 0, 0, 8, 0});                           // a type of perf
    kernel.store({14, 0, 0, 0, 0, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8});  // without its id
    kernel.trace(trace_at(0, 5));
    (void)reader.read(got);
    CHECK(reader.bad_records() == 2);
    CHECK(got.lines == lines{"trace to 5"});
    kernel.store({14, 0, 0, 0, 0, 0, 7, 0});  // shorter than its header
    kernel.trace(trace_at(5, 5));
    (void)reader.read(got);
    CHECK(reader.skipped() == 8 + 64);
    CHECK(got.lines == lines{"trace to 10", "gap at 10: 2"});
    CHECK(got.wrong == 0);
}

TEST_CASE("trace without an AUX record, before trace with one, is a gap of its own") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    bytes const trace = trace_at(0, 30);
    std::copy(trace.begin(), trace.end(), kernel.aux());
    kernel.store(kernel_areas::record_of(PERF_RECORD_AUX, {10, 20, 0}));
    kernel.page.aux_head = 30;
    (void)reader.read(got);
    CHECK(got.lines == lines{"trace to 10", "gap at 10: 2", "trace to 30"});
    kernel.store(kernel_areas::record_of(PERF_RECORD_AUX, {0, 30, 0}));  // older: nothing is new
    (void)reader.read(got);
    CHECK(got.lines.size() == 3);
    CHECK(kernel.page.aux_tail == 30);
}

TEST_CASE("heads that are more than an area ahead lead to no byte outside of it") {
    kernel_areas kernel{4096, 4096};
    area_reader reader{kernel.areas()};
    listing got;
    bytes const trace = trace_at(0, 4096);
    std::copy(trace.begin(), trace.end(), kernel.aux());
    kernel.store(kernel_areas::record_of(PERF_RECORD_AUX, {0, 5000, 0}));
    kernel.page.aux_head = 5000;
    (void)reader.read(got);
    CHECK(got.lines == lines{"trace to 4096", "gap at 5000: 3"});
    auto const old = kernel_areas::record_of(PERF_RECORD_SWITCH, {1, 2, 3});  // 64 bytes
    for (unsigned i = 0; i < 200; ++i) {  // all of the area has old records
        REQUIRE(kernel.store(old));
        (void)reader.read(got);
    }
    auto const before = got.lines.size();
    kernel.page.data_head += 4120;
    (void)reader.read(got);
    CHECK(got.lines.size() == before);
    CHECK(reader.skipped() == 4120);
    CHECK(kernel.page.data_tail == kernel.page.data_head);
}

TEST_CASE("any sequence: all stored bytes come once, and each loss is a gap") {
    std::mt19937_64 numbers{20261129};
    for (int turn = 0; turn < 300; ++turn) {
        kernel_areas kernel{size_t{4096} << numbers() % 2, size_t{4096} << numbers() % 3};
        area_reader reader{kernel.areas()};
        listing got;
        uint64_t stored = 0;
        std::vector<missing> all;
        for (int step = 0; step < 200; ++step) {
            switch (numbers() % 4) {
                case 0: (void)reader.read(got); break;
                case 1: kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {})); break;
                default: {
                    uint64_t const count = numbers() % 3000;
                    uint64_t const begin = stored;
                    stored += kernel.trace(trace_at(stored, count));
                    for (auto& one : all) {
                        if (kernel.has_record && one.last == ~uint64_t{0}) { one.last = begin; }
                    }
                    if (stored - begin < count) {
                        all.push_back({stored, kernel.has_record ? stored : ~uint64_t{0}});
                    }
                }
            }
        }
        (void)reader.read(got);
        kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}));  // shows what was lost
        (void)reader.read(got);
        REQUIRE(got.end == stored);
        REQUIRE(got.wrong == 0);
        REQUIRE(reader.lost_records() == kernel.lost_in_all);
        for (auto const& one : all) {
            bool const has_gap = std::any_of(got.gaps.begin(), got.gaps.end(), [&](uint64_t at) {
                return at >= one.first && at <= one.last;
            });
            REQUIRE(has_gap);
        }
        if (kernel.lost_in_all == 0) { REQUIRE(got.gaps.size() == all.size()); }
    }
}

TEST_CASE("a reader beside the kernel gets all bytes, at any speed of both") {
    kernel_areas kernel{8192, 8192};
    constexpr uint64_t all = 3'000'000;
    std::thread writer{[&] {
        std::mt19937_64 numbers{3};
        for (uint64_t at = 0; at < all;) {
            uint64_t const count = std::min({1 + numbers() % 900, all - at, kernel.room()});
            if (count == 0) { std::this_thread::yield(); }
            at += kernel.trace(trace_at(at, count));
            if (numbers() % 8 == 0) {
                kernel.store(kernel_areas::record_of(PERF_RECORD_SWITCH, {}));
            }
        }
    }};
    area_reader reader{kernel.areas()};
    listing got;
    while (got.end != all) {
        if (!reader.read(got).has_more) { std::this_thread::yield(); }
        if (got.lines.size() > 1000) { got.lines.clear(), got.is_open = false; }
    }
    writer.join();
    CHECK(got.wrong == 0);
}
