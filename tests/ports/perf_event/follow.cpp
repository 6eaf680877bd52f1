// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/follow.hpp>
#include <ptspec/ports/perf_event/program.hpp>

#include <support/dummy_event.hpp>
#include <support/skip.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace ptspec;
using namespace ptspec::ports::perf_event;
using file::perf_data::record_type;
using test::dummy;
using test::may_open;
using test::resources;

namespace {

struct listing {
    std::vector<record_type> types{};
    std::set<std::string> mapped{};
    std::set<uint32_t> threads{};
    bool in_order = true;
    uint64_t last = 0;

    void trace(aux_bytes const&) { in_order = false; }
    void gap(uint64_t, loss) { in_order = false; }
    void record(file::perf_data::record const& one) {
        types.push_back(one.type);
        threads.insert(one.id.thread.tid);
        in_order = in_order && one.id.time >= last;
        last = one.id.time;
        if (auto const file = read_as<file::perf_data::mmap2_record>(one)) {
            mapped.emplace(reinterpret_cast<char const*>(file.string().data()),
                           file.string().size());
        }
    }
    [[nodiscard]] auto has(record_type one) const -> bool {
        return std::find(types.begin(), types.end(), one) != types.end();
    }
};

}  // namespace

TEST_CASE("records of a program come while it runs, and nothing stays open") {
    if (!may_open("records of a program")) { return; }
    auto const before = resources();
    {
        char name[] = "true";
        char* const arguments[] = {name, nullptr};
        program child;
        perf_trace one;
        REQUIRE(child.start(arguments));
        REQUIRE(one.open(dummy(), {.thread = child.thread()}));
        REQUIRE(one.map({.aux = 0}));
        // A second process has its own areas.
        CHECK(one.areas().aux == nullptr);
        REQUIRE(child.run());
        area_reader reader{one.areas()};
        listing got;
        REQUIRE(follow(one, reader, got));
        CHECK(child.wait() == 0);
        CHECK(got.types.front() == record_type::comm);
        CHECK(got.has(record_type::mmap2));
        CHECK(got.has(record_type::exit));
        CHECK(got.threads == std::set<uint32_t>{static_cast<uint32_t>(child.thread())});
        CHECK(std::any_of(got.mapped.begin(), got.mapped.end(), [](std::string const& file) {
            return file.find("/true") != std::string::npos ||
                   file.find("/busybox") != std::string::npos ||
                   file.find("/coreutils") != std::string::npos;
        }));
        CHECK(got.in_order);
        CHECK(reader.bad_records() == 0);
        CHECK(reader.lost_records() == 0);
        perf_trace moved{static_cast<perf_trace&&>(one)};
        CHECK(!one.is_open());
        CHECK(moved.is_open());
    }
    CHECK(resources() == before);
}

TEST_CASE("an enable that came too early is repeated soon, and less often while nothing comes") {
    auto const times = [](int longest) {
        std::vector<int> made;
        poll_time time;
        made.push_back(time.next(false, longest));
        for (int i = 0; i < 12; ++i) { made.push_back(time.next(true, longest)); }
        made.push_back(time.next(false, longest));
        made.push_back(time.next(true, longest));
        return made;
    };
    CHECK(times(-1) == std::vector{-1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000, -1, 1});
    CHECK(times(100) == std::vector{100, 1, 2, 4, 8, 16, 32, 64, 100, 100, 100, 100, 100, 100, 1});
    CHECK(times(0) == std::vector<int>(15, 0));
}
