// SPDX-License-Identifier: BSL-1.0
#include <ptspec/driver/drain.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using driver::buffer_recipe;
using reg::ia32_rtit_status;
using topa::entry;

namespace {

constexpr uint64_t table = 0x1000'0000;
constexpr uint64_t stopped = 0x20;

/// A ring of four regions of 4 KB in one table, or one table a region.
struct four {
    topa::region regions[4] = {{0x2000'0000}, {0x2000'1000}, {0x2000'4000}, {0x2000'5000}};
    entry entries[4][5] = {};
    driver::table_page pages[4] = {{table, entries[0]},
                                   {table + 0x1000, entries[1]},
                                   {table + 0x2000, entries[2]},
                                   {table + 0x3000, entries[3]}};
    driver::ring ring;
    driver::ring_reader reader{};
    uint64_t visited = 0;
    uint64_t first_base = 0;

    constexpr explicit four(buffer_recipe how, bool many_entries = true)
        : ring{driver::build_ring(how, regions, 4, pages, 4, {{39}, many_entries}).ring} {}

    constexpr auto drain(uint64_t offset, uint64_t status = 0, uint64_t wake_up = 0)
        -> driver::drained {
        driver::stopped_trace now;
        now.status = {status};
        // An offset at the end of a region is that of a full region with STOP.
        auto const place = status == stopped ? driver::region_at(ring, offset - 1)
                                             : driver::region_at(ring, offset);
        uint64_t const in_region = place.offset + (status == stopped ? 1 : 0);
        auto const at = driver::buffer_at(ring,
                                          driver::detail::start_of_region(ring, place.region));
        now.output = {at.base, {at.mask_ptrs.raw | in_region << 32}};
        visited = 0;
        first_base = 0;
        return driver::drain(
            ring, reader, now,
            [&](uint64_t base, uint64_t bytes) {
                first_base = visited == 0 ? base : first_base;
                visited += bytes;
            },
            wake_up);
    }
    constexpr auto marks() const -> uint64_t {
        uint64_t all = 0;
        for (size_t i = 0; i < 4; ++i) { all |= (driver::entry_of(ring, i).raw & 0x14) << 8 * i; }
        return all;
    }
};

}  // namespace

TEST_CASE("new bytes are read once, and the marks move with the position (PRG-121..123,129)") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming};
        auto const first = now.drain(value(uint64_t{0x800}));
        // Half of the ring: up to 2800H. STOP before the region that is current.
        bool const early = first && first.new_bytes == 0x800 && now.visited == 0x800 &&
                           now.first_base == 0x2000'0000 && !first.was_stopped &&
                           first.next.resume && !first.next.has_new_output &&
                           now.marks() == 0x1404'0000;
        auto const second = now.drain(0x1800);
        bool const later = second.new_bytes == 0x1000 && now.visited == 0x1000 &&
                           now.first_base == 0x2000'0800 && now.marks() == 0x0400'0014;
        auto const none = now.drain(0x1800, 0, 1);
        return early && later && none.new_bytes == 0 && now.visited == 0 &&
               now.marks() == 0x0000'0414;
    });
}

TEST_CASE("after STOP the trace continues in the next region, and the gap is reported "
          "(PRG-041,086)") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming};
        auto const full = now.drain(value(uint64_t{0x4000}), stopped);
        bool const at_start = full.was_stopped && full.new_bytes == 0x4000 &&
                              now.visited == 0x4000 && full.next.has_new_output &&
                              full.next.output == driver::in_topa({.table = table});
        driver::msr_plan saved{.status = {stopped | uint64_t{7} << 32}};
        driver::continue_after(full, saved);
        bool const clean = saved.status.raw == uint64_t{7} << 32 &&
                           saved.output == driver::in_topa({.table = table});
        auto const again = now.drain(0x2000, stopped);
        return at_start && clean &&
               again.next.output == driver::in_topa({.table = table, .index = 2});
    });
}

TEST_CASE("a TraceStop does not move the position, and an error stays in STATUS (PRG-041)") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::circular};
        driver::stopped_trace at;
        at.status = {value(stopped)};
        at.output = driver::in_topa({.table = table, .index = 1, .offset = 0x10});
        auto const result = driver::drain(now.ring, now.reader, at, [](uint64_t, uint64_t) {});
        driver::msr_plan saved{.status = {stopped | 0x10}, .output = at.output};
        driver::continue_after(result, saved);
        return result.was_stopped && !result.next.has_new_output && saved.status.raw == 0x10 &&
               saved.output == at.output && now.marks() == 0;
    });
}

TEST_CASE("a position outside the ring is not read, and tracing does not continue") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming};
        driver::stopped_trace at;
        at.output = driver::in_topa({.table = value(uint64_t{0x5000})});
        bool visited = false;
        auto const result = driver::drain(now.ring, now.reader, at,
                                          [&](uint64_t, uint64_t) { visited = true; });
        return !result && !result.next.resume && !visited && now.marks() == 0;
    });
}

TEST_CASE("on single-entry parts the last bytes of a region are left out, and the next table "
          "follows (PRG-126, OUT-101)") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming, value(false)};
        auto const before = now.drain(0xDFF);
        bool const stays = now.ring.is_stepped && before.new_bytes == 0xDFF &&
                           !before.next.has_new_output;
        auto const early = now.drain(0xE00);
        bool const moves = early.new_bytes == 1 && early.next.has_new_output &&
                           early.next.output == driver::in_topa({.table = table + 0x1000}) &&
                           now.reader.read_at == 0x1000 && now.reader.total == 0xE00;
        auto const full = now.drain(0x2000, stopped);
        return stays && moves && full.was_stopped && full.new_bytes == 0x1000 &&
               full.next.output == driver::in_topa({.table = table + 0x2000});
    });
}
