// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/aux_ring.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace ptspec;
using namespace ptspec::ports::perf_event;

namespace {

/// An AUX area that the kernel overwrites: it stores `count` bytes 1, 2, 3, .. 255, 1, ..
auto snapshot_after(size_t count) -> std::vector<uint8_t> {
    static std::vector<uint8_t> area;
    static perf_event_mmap_page page;
    area.assign(4096, 0);
    page = {};
    for (size_t i = 0; i < count; ++i) { area[i % 4096] = static_cast<uint8_t>(1 + i % 255); }
    page.aux_head = count % 4096;  // the driver of Intel PT counts within the area
    auto const got = snapshot_of(
        {.page = &page, .aux = area.data(), .aux_size = 4096, .is_snapshot = true});
    CHECK(got.offset == 0);
    std::vector<uint8_t> all(got.parts[0].begin(), got.parts[0].end());
    all.insert(all.end(), got.parts[1].begin(), got.parts[1].end());
    CHECK(got.size() == all.size());
    return all;
}

}  // namespace

TEST_CASE("a snapshot has the last bytes of the trace, the oldest first") {
    for (size_t const count : {0UL, 1UL, 17UL, 4095UL, 4096UL, 4097UL, 5000UL, 8192UL, 12'345UL}) {
        CAPTURE(count);
        auto const got = snapshot_after(count);
        size_t const kept = count < 4096 ? count : 4096;
        REQUIRE(got.size() == kept);
        for (size_t i = 0; i < kept; ++i) {
            REQUIRE(got[i] == static_cast<uint8_t>(1 + (count - kept + i) % 255));
        }
    }
}

TEST_CASE("the bytes of a ring are two parts where its end cuts them") {
    std::vector<uint8_t> area(4096, 9);
    perf_event_mmap_page page{};
    page.aux_tail = 4000;
    page.aux_head = 4200;
    aux_ring ring{{.page = &page, .aux = area.data(), .aux_size = 4096}};
    CHECK(ring.head() == 4200);
    CHECK(ring.tail() == 4000);
    auto const whole = ring.up_to(4200);
    CHECK(whole.offset == 4000);
    CHECK(whole.parts[0].data() == area.data() + 4000);
    CHECK(whole.parts[0].size() == 96);
    CHECK(whole.parts[1].data() == area.data());
    CHECK(whole.parts[1].size() == 104);
    CHECK(whole.end() == 4200);
    auto const part = ring.up_to(4096);
    CHECK(part.parts[0].size() == 96);
    CHECK(part.parts[1].empty());
    ring.release(4150);
    CHECK(page.aux_tail == 4150);
    CHECK(ring.up_to(4200).parts[0].data() == area.data() + 54);
}
