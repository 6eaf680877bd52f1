// SPDX-License-Identifier: BSL-1.0
#include <ptspec/driver/ring_reader.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>

#include <vector>

using namespace ptspec;
using driver::buffer_recipe;
using driver::ring_part;
using topa::entry;
using topa::region_size;

namespace {

constexpr uint64_t table = 0x1000'0000;

/// A ring of three regions of 4, 8 and 4 KB; the last two are adjacent in memory.
struct three {
    topa::region regions[3] = {{0x2000'8000, region_size::size_4K},
                               {0x2000'2000, region_size::size_8K},
                               {0x2000'4000, region_size::size_4K}};
    entry entries[4] = {};
    driver::table_page page{table, entries};
    driver::ring ring =
        driver::build_ring(buffer_recipe::streaming, regions, 3, &page, 1, {{39}, true}).ring;
};

constexpr auto at(uint64_t index, uint64_t offset, uint64_t status = 0) -> driver::stopped_trace {
    driver::stopped_trace now;
    now.status = {status};
    now.output = driver::in_topa({.table = table,
                                  .index = static_cast<uint32_t>(index),
                                  .offset = static_cast<uint32_t>(offset)});
    return now;
}

/// The position that OUTPUT_MASK_PTRS gives in the table.
constexpr auto with_pointers(uint64_t mask_ptrs, uint64_t status = 0) -> driver::stopped_trace {
    driver::stopped_trace now;
    now.status = {status};
    now.output = {{table}, {mask_ptrs}};
    return now;
}

struct span_list {
    phys_addr base[8] = {};
    uint64_t bytes[8] = {};
    size_t count = 0;
};
constexpr auto spans_of(driver::ring const& in, ring_part part) -> span_list {
    span_list all;
    driver::for_each_span(in, part, [&](phys_addr base, uint64_t bytes) {
        all.base[all.count] = base;
        all.bytes[all.count++] = bytes;
    });
    return all;
}

}  // namespace

TEST_CASE("a part is read as contiguous memory, and adjacent regions are merged (PRG-129)") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const inside = spans_of(now.ring, {value(uint64_t{0x10}), 0x20});
        auto const across = spans_of(now.ring, {0xF00, 0x3000});
        auto const wrapped = spans_of(now.ring, {0x3800, 0x1000});
        return inside.count == 1 && inside.base[0] == 0x2000'8010 && inside.bytes[0] == 0x20 &&
               across.count == 2 && across.base[0] == 0x2000'8F00 && across.bytes[0] == 0x100 &&
               across.base[1] == 0x2000'2000 && across.bytes[1] == 0x2F00 && wrapped.count == 2 &&
               wrapped.base[0] == 0x2000'4800 && wrapped.bytes[0] == 0x800 &&
               wrapped.base[1] == 0x2000'8000 && wrapped.bytes[1] == 0x800 &&
               spans_of(now.ring, {5, 0}).count == 0;
    });
    CHECK_TWICE([](auto value) {
        three now;
        size_t visited = 0;
        driver::for_each_span(now.ring, {value(uint64_t{0}), 0x4000}, [&](phys_addr, uint64_t) {
            ++visited;
            return false;
        });
        return visited == 1;
    });
}

TEST_CASE("a reader counts the bytes since the last position, also across the end (PRG-129)") {
    CHECK_TWICE([](auto value) {
        three now;
        driver::ring_reader reader;
        auto const first = driver::update(now.ring, reader, at(1, value(uint64_t{0x800})));
        bool const one = first && first.new_bytes == 0x1800 &&
                         reader.part() == ring_part{0, 0x1800};
        reader.consume(now.ring, 0x1000);
        auto const second = driver::update(now.ring, reader, at(0, 0x100));
        bool const two = second.new_bytes == 0x4000 - 0x1800 + 0x100 &&
                         reader.part() == ring_part{0x1000, 0x3100} &&
                         reader.head(now.ring) == 0x100 && second.overwritten == 0;
        auto const none = driver::update(now.ring, reader, at(0, 0x100));
        reader.consume(now.ring, ~uint64_t{0});
        return one && two && none.new_bytes == 0 && reader.unread == 0 && reader.read_at == 0x100 &&
               reader.total == 0x4100;
    });
}

TEST_CASE("a full lap that STOP ended differs from no byte (PRG-086)") {
    CHECK_TWICE([](auto value) {
        three now;
        (void)driver::set_marks(now.ring, {.wake_up_bytes = 1});
        driver::ring_reader reader;
        auto const nothing = driver::update(now.ring, reader, at(0, 0));
        auto const lap = driver::update(now.ring, reader, at(2, value(uint64_t{0x1000}), 0x20));
        return nothing.new_bytes == 0 && lap.new_bytes == 0x4000 && reader.unread == 0x4000 &&
               lap.overwritten == 0;
    });
}

TEST_CASE("both editions of the offset after STOP are accepted (PRG-086)") {
    CHECK_TWICE([](auto value) {
        three now;
        (void)driver::set_marks(now.ring, {.wake_up_bytes = 1});
        driver::ring_reader older;
        driver::ring_reader newer;
        driver::ring_reader running;
        auto const size = driver::update(now.ring, older, at(2, value(uint64_t{0x1000}), 0x20));
        auto const last = driver::update(now.ring, newer, at(2, 0xFFF, 0x20));
        auto const not_stopped = driver::update(now.ring, running, at(2, 0xFFF));
        return size.new_bytes == 0x4000 && last.new_bytes == 0x4000 &&
               not_stopped.new_bytes == 0x3FFF && older.unread == newer.unread;
    });
}

TEST_CASE("unread bytes that new ones replaced are reported, and skipped") {
    CHECK_TWICE([](auto value) {
        three now;
        driver::ring_reader reader;
        (void)driver::update(now.ring, reader, at(2, 0));
        auto const result = driver::update(now.ring, reader, at(1, value(uint64_t{0x800})));
        return result.new_bytes == 0x2800 && result.overwritten == 0x1800 &&
               reader.unread == 0x4000 && reader.read_at == 0x1800 &&
               reader.head(now.ring) == 0x1800;
    });
}

TEST_CASE("a position outside the ring changes nothing") {
    CHECK_TWICE([](auto value) {
        three now;
        driver::ring_reader reader{.read_at = 5, .unread = 7, .total = 12};
        auto wrong = at(0, 0);
        wrong.output.base.raw = value(uint64_t{0x5000});
        return !driver::update(now.ring, reader, wrong) &&
               !driver::update(now.ring, reader, at(0, 0x1001)) && reader.read_at == 5 &&
               reader.unread == 7 && reader.total == 12 &&
               !driver::snapshot(now.ring, wrong, false);
    });
}

TEST_CASE(
    "a snapshot of a ring with STOP takes the offset of the last byte as the end of the region "
    "if Stopped is 1 (PRG-086,129)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {{0x2000'0000, region_size::size_16K},
                                        {0x2000'4000, region_size::size_16K},
                                        {0x2000'8000, region_size::size_16K}};
        entry entries[4] = {};
        driver::table_page const page{table, entries};
        auto const ring = driver::build_ring(buffer_recipe::stop_on_full, regions, 3, &page, 1,
                                             {{39}, true})
                              .ring;
        simulate::memory_model<0xC000> memory{.base = 0x2000'0000};
        memory.bytes.bytes[0xBFFF] = 0x19;  // the last byte of the trace
        uint64_t const last = value(uint64_t{0x0000'3FFF'0000'017F});
        auto const part = [&](uint64_t status) {
            return driver::snapshot(ring, with_pointers(last, status), false).part;
        };
        return part(0x20) == ring_part{0, 0xC000} && part(0) == ring_part{0, 0xBFFF} &&
               !driver::has_wrapped(ring, with_pointers(last, 0x20), memory) &&
               driver::has_wrapped(ring, with_pointers(last), memory);
    });
    // STOP inside a ring: the older bytes follow the region.
    CHECK_TWICE([](auto value) {
        three now;
        (void)driver::set_marks(now.ring,
                                {.unread = 0x1000, .wake_up_bytes = 1});  // STOP on region 1
        auto const got = driver::snapshot(now.ring, at(1, value(uint64_t{0x1FFF}), 0x20), true);
        return driver::entry_of(now.ring, 1).get<entry::STOP>() &&
               got.part == ring_part{0x3000, 0x4000};
    });
}

TEST_CASE("the position of a full region has no new bytes again, until the reader is told of a "
          "restart (PRG-086)") {
    CHECK_TWICE([](auto value) {
        three now;
        (void)driver::set_marks(now.ring, {.wake_up_bytes = 1});
        auto const full = at(2, value(uint64_t{0x1000}), 0x20);
        driver::ring_reader reader;
        auto const first = driver::update(now.ring, reader, full);
        reader.consume(now.ring, ~uint64_t{0});
        auto const again = driver::update(now.ring, reader, full);
        // Software may clear Stopped in the saved state before.
        auto const cleared = driver::update(now.ring, reader, at(2, 0x1000));
        reader.restarted();
        auto const lap = driver::update(now.ring, reader, full);
        reader.consume(now.ring, ~uint64_t{0});
        auto const elsewhere = driver::update(now.ring, reader, at(1, 0x10));
        return first.new_bytes == 0x4000 && again && again.new_bytes == 0 && again.at_region_end &&
               cleared && cleared.new_bytes == 0 && lap.new_bytes == 0x4000 &&
               elsewhere.new_bytes == 0x1010 && reader.total == 0x9010;
    });
}

TEST_CASE("a ring that was zero has wrapped if bytes after the position are not (PRG-140)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {{0x2000'0000}, {0x2000'1000}};
        entry entries[3] = {};
        driver::table_page const page{table, entries};
        auto const ring =
            driver::build_ring(buffer_recipe::circular, regions, 2, &page, 1, {{39}, true}).ring;
        simulate::memory_model<0x2000> memory{.base = 0x2000'0000};
        auto const position = at(0, 0x105);
        for (size_t i = 0; i < 0x105; ++i) { memory.bytes.bytes[i] = 0x47; }
        bool const empty = !driver::has_wrapped(ring, position, memory, 64);
        memory.bytes.bytes[0x105] = value(uint8_t{0x19});
        bool const right_after = driver::has_wrapped(ring, position, memory, 64);
        memory.bytes.bytes[0x105] = 0;
        memory.bytes.bytes[0x1FFF] = 0x19;
        bool const at_end = driver::has_wrapped(ring, position, memory, 64);
        memory.bytes.bytes[0x1FFF] = 0;
        memory.bytes.bytes[0x800] = 0x19;
        bool const between = driver::has_wrapped(ring, position, memory, 64);
        bool const wide = driver::has_wrapped(ring, position, memory, 4096);
        return empty && right_after && at_end && !between && wide;
    });
}

TEST_CASE("bytes after the end of the looked-at part, and after the ring, are not looked at "
          "(PRG-140)") {
    CHECK_TWICE([](auto value) {
        topa::region const regions[] = {{0x2000'0000}};
        entry entries[2] = {};
        driver::table_page const page{table, entries};
        auto const ring =
            driver::build_ring(buffer_recipe::circular, regions, 1, &page, 1, {{39}, true}).ring;
        simulate::memory_model<0x1010> memory{.base = 0x2000'0000};
        memory.bytes.bytes[0x1000] = value(uint8_t{1});  // after the ring
        memory.bytes.bytes[0x10B] = 1;                   // after the 6 bytes from 105H on
        memory.bytes.bytes[0x104] = 1;                   // before the position
        auto const position = at(0, 0x105);
        bool const none = !driver::has_wrapped(ring, position, memory, 6);
        bool const seven = driver::has_wrapped(ring, position, memory, 7);
        return none && seven && !driver::has_wrapped(ring, at(0, 0x1000), memory, 6) &&
               !driver::has_wrapped(ring, at(2, 0), memory, 6);
    });
}

TEST_CASE("an offset outside a single range counts as its start") {
    CHECK_TWICE([](auto value) {
        driver::output_registers const now{{0x2000'0000}, {value(uint64_t{0x1'0000'0000'FFFF})}};
        driver::single_range_part const none{};
        return driver::snapshot_of_single_range(now, true) ==
                   driver::single_range_part{0x2000'0000, 0x1'0000, 0x2000'0000, 0} &&
               none.first_base == 0 && none.second_base == 0 && none.second_bytes == 0;
    });
}

namespace {

/// Memory with one byte that is not zero.
struct one_byte {
    uint64_t address = 0;
    uint8_t byte = 0;

    constexpr auto load(uint64_t from) const noexcept -> port_value {
        return {true, address - from < 8 ? uint64_t{byte} << 8 * (address - from) : 0};
    }
    constexpr auto store(uint64_t, byte_view) const noexcept -> size_t { return 0; }
};

}  // namespace

TEST_CASE("without a position the trace ends after the last byte that is not zero (PRG-140)") {
    CHECK_TWICE([](auto value) {
        three now;
        auto const count = [&](uint64_t address) {
            one_byte memory{address, value(uint8_t{1})};
            auto const part = driver::part_in_memory(now.ring, memory);
            return part.from == 0 ? part.count : ~uint64_t{0};
        };
        return count(0x2000'8000) == 1 && count(0x2000'8007) == 8 && count(0x2000'8008) == 9 &&
               count(0x2000'8FFF) == 0x1000 && count(0x2000'2000) == 0x1001 &&
               count(0x2000'4FFF) == 0x4000 && count(0x2000'9000) == 0;
    });
}

TEST_CASE("an update and a part are empty until they are set") {
    CHECK_TWICE([](auto value) {
        driver::ring_update const none{};
        driver::snapshot_part const part{};
        return value(true) && !none && none.new_bytes == 0 && none.overwritten == 0 &&
               !none.at_region_end && !part && part.part == driver::ring_part{};
    });
}
