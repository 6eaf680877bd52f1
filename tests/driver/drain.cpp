// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/driver/pause.hpp>

#include <support/check_twice.hpp>
#include <support/faulting_port.hpp>
#include <support/world.hpp>

#include <doctest/doctest.h>

#include <vector>

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
    phys_addr first_base{};

    constexpr explicit four(buffer_recipe how, bool many_entries = true)
        : ring{driver::build_ring(how, regions, 4, pages, 4, {{39}, many_entries}).ring} {}

    constexpr auto stopped_at(uint64_t offset, uint64_t status = 0) const -> driver::stopped_trace {
        driver::stopped_trace now;
        now.status = {status};
        // An offset at the end of a region is that of a full region with STOP.
        auto const place = status == stopped ? driver::region_at(ring, offset - 1)
                                             : driver::region_at(ring, offset);
        uint64_t const in_region = place.offset + (status == stopped ? 1 : 0);
        auto const at = driver::output_at(ring,
                                          driver::detail::start_of_region(ring, place.region));
        now.output = {at.base, {at.mask_ptrs.raw | in_region << 32}};
        return now;
    }
    constexpr auto drain(uint64_t offset, uint64_t status = 0, uint64_t wake_up = 0)
        -> driver::drained {
        visited = 0;
        first_base = 0;
        return driver::drain(
            ring, reader, stopped_at(offset, status),
            [&](phys_addr base, uint64_t bytes) {
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
        access::msr_state saved{.status = {stopped | uint64_t{7} << 32}};
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
        auto const result = driver::drain(now.ring, now.reader, at, [](phys_addr, uint64_t) {});
        access::msr_state saved{.status = {stopped | 0x10}, .output = at.output};
        driver::continue_after(result, saved);
        return result.was_stopped && !result.next.has_new_output && saved.status.raw == 0x10 &&
               saved.output == at.output && now.marks() == 0;
    });
}

TEST_CASE("a position outside the ring is not read, and tracing does not continue") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming};
        auto const marks = now.marks();
        driver::stopped_trace at;
        at.output = driver::in_topa({.table = value(uint64_t{0x5000})});
        bool visited = false;
        auto const result = driver::drain(now.ring, now.reader, at,
                                          [&](phys_addr, uint64_t) { visited = true; });
        return !result && !result.next.resume && !visited && now.marks() == marks;
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

TEST_CASE("a stepped ring that was not restarted has no new bytes, and still has to move on "
          "(PRG-126)") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming, value(false)};
        (void)now.drain(0xE10);  // the rest of the region is left out
        auto const again = now.drain(0xE10);
        bool const none = again && again.new_bytes == 0 && now.visited == 0 &&
                          again.next.has_new_output &&
                          again.next.output == driver::in_topa({.table = table + 0x1000});
        access::msr_state saved{};
        driver::continue_after(again, saved);
        auto const later = now.drain(0x1234);
        return none && saved.output == again.next.output && later.new_bytes == 0x234 &&
               now.first_base == 0x2000'1000 && now.reader.total == 0xE10 + 0x234;
    });
}

TEST_CASE("a wake-up is due once a region with INT is full (PRG-085,121,123)") {
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming};
        (void)now.drain(0x10, 0, value(uint64_t{0x1000}));  // INT on region 1, STOP on region 3
        bool const marks = now.marks() == 0x1400'0400;
        auto const due = [&](uint64_t offset, uint64_t status = 0) {
            return driver::wake_up_is_due(now.ring, now.reader, now.stopped_at(offset, status));
        };
        bool const early = !due(0x10) && !due(0x800) && !due(0x1000) && !due(0x1FFF);
        bool const late = due(0x2000) && due(0x2800) && due(0x3FFF) && due(0x4000, stopped) &&
                          due(0x8);  // a lap later, which cannot be
        (void)now.drain(0x2000);
        driver::stopped_trace elsewhere;
        elsewhere.output = driver::in_topa({.table = 0x5000});
        return marks && early && late && !due(0x2000) && !due(0x2FFF) &&
               !driver::wake_up_is_due(now.ring, now.reader, elsewhere);
    });
    // Where a table has one region, the PMI comes early.
    CHECK_TWICE([](auto value) {
        four now{buffer_recipe::streaming, value(false)};
        auto const due = [&](uint64_t offset, uint64_t status = 0) {
            return driver::wake_up_is_due(now.ring, now.reader, now.stopped_at(offset, status));
        };
        bool const first = !due(0xDFF) && due(0xE00) && due(0x1000, stopped);
        (void)now.drain(0xE00);
        return first && !due(0xE00) && !due(0x1000);
    });
}

// ------------------------------------------------------------------------------ on a processor

namespace {

/// Memory with a table at 1000H, and two regions of 4 KB at 100000H. Each byte that is stored there
/// is kept.
struct two_regions {
    using ignores_pmis = two_regions;

    entry entries[8]{};
    std::vector<uint8_t> bytes = std::vector<uint8_t>(0x2000);
    std::vector<uint8_t> stored{};

    auto load(uint64_t address) noexcept -> port_value {
        return {true, entries[(address - 0x1000) / 8].raw};
    }
    auto store(uint64_t address, byte_view from) noexcept -> size_t {
        for (size_t i = 0; i < from.size(); ++i) {
            bytes.at(address - 0x10'0000 + i) = from[i];
            stored.push_back(from[i]);
        }
        return from.size();
    }
};

/// A processor that traces into a ring of two regions which stops when it is full.
struct traced_ring : test::world_of<two_regions> {
    topa::region regions[2] = {{.base = 0x10'0000}, {.base = 0x10'1000}};
    driver::table_page page{0x1000, memory.entries};
    driver::ring ring;
    access::msr_state plan;
    driver::ring_reader reader{};
    std::vector<uint8_t> read;

    explicit traced_ring(buffer_recipe how = buffer_recipe::stop_on_full)
        : ring{driver::build_ring(how, regions, 2, &page, 1,
                                  topa::limits::of(cpu::preset::skylake_x))
                   .ring},
          plan{driver::plan(cpu::preset::skylake_x,
                            {.config = {.os = true}, .output = driver::output_at_start(ring)})
                   .plan} {
        REQUIRE(driver::enable(cpu, plan));
    }
    void run(uint64_t branches = 5000) {
        for (uint64_t i = 0; i < branches; ++i) {
            (void)cpu.on(engine::action::indirect_jump{0x10000 * (1 + i * 7919 % 100)});
        }
    }
    auto drain(driver::stopped_trace const& now) -> driver::drained {
        return driver::drain(ring, reader, now, [&](phys_addr base, uint64_t count) {
            auto const* const from = memory.bytes.data() + (base - 0x10'0000);
            read.insert(read.end(), from, from + count);
        });
    }
};

}  // namespace

TEST_CASE("a full ring that is drained again has no new bytes (PRG-041,086)") {
    traced_ring now;
    now.run();
    CHECK(now.drain(driver::disable(now.cpu)).new_bytes == 8192);
    CHECK(now.drain(driver::disable(now.cpu)).new_bytes == 0);
    auto const third = now.drain(driver::disable(now.cpu));
    CHECK(third.new_bytes == 0);
    CHECK(third.next.has_new_output);
    CHECK(third.next.output == driver::output_at_start(now.ring));
    CHECK(now.read == now.memory.stored);
}

TEST_CASE("a full ring that was restarted has a lap of new bytes (PRG-041,086)") {
    using restarted = void (*)(traced_ring&);
    constexpr restarted ways[] = {
        [](traced_ring& now) {  // restart
            auto next = now.plan;
            driver::continue_after(now.drain(driver::disable(now.cpu)), next);
            CHECK(driver::restart(now.cpu, next).trace == driver::trace_state::enabled);
        },
        [](traced_ring& now) {  // restore
            auto saved = driver::save(now.cpu);
            driver::continue_after(now.drain(driver::stopped_at(saved.state)), saved.state);
            // The state that was drained is drained again, before it is restored.
            CHECK(now.drain(driver::stopped_at(saved.state)).new_bytes == 0);
            CHECK(driver::restore(now.cpu, saved.state).trace == driver::trace_state::enabled);
        },
        [](traced_ring& now) {  // on_topa_pmi
            (void)now.cpu.write(reg::ia32_perf_global_status_set::address, uint64_t{1} << 55);
            auto const result = driver::on_topa_pmi(
                now.cpu, [&](auto const& at) { return now.drain(at).next; }, [] {});
            CHECK(result.outcome == driver::pmi_outcome::handled);
            CHECK(result.trace == driver::trace_state::enabled);
        },
        [](traced_ring& now) {  // read_out
            CHECK(driver::read_out(now.cpu, now.plan.ctl, [&](auto const& at) {
                      return now.drain(at).next;
                  }).trace == driver::trace_state::enabled);
        }};
    for (auto const& way : ways) {
        traced_ring now;
        for (int lap = 1; lap <= 3; ++lap) {
            now.run();
            way(now);
            CHECK(now.reader.total == 8192U * static_cast<unsigned>(lap));
        }
        (void)now.drain(driver::disable(now.cpu));
        CHECK(now.read == now.memory.stored);
    }
}

TEST_CASE("after a fault in the handler tracing continues, and no byte is read twice "
          "(PRG-086,122)") {
    for (auto const how : {buffer_recipe::stop_on_full, buffer_recipe::circular}) {
        for (uint64_t const branches : {uint64_t{50}, uint64_t{5000}}) {
            if (how == buffer_recipe::circular && branches > 1000) { continue; }
            bool faulted = true;
            for (unsigned number = 0; faulted; ++number) {
                INFO(number, " of ", branches);
                traced_ring now{how};
                now.run(branches);
                (void)now.cpu.write(reg::ia32_perf_global_status_set::address, uint64_t{1} << 55);
                test::faulting_port port{now.cpu, number};
                auto const result = driver::on_topa_pmi(
                    port, [&](auto const& at) { return now.drain(at).next; }, [] {});
                faulted = static_cast<bool>(result.fault.happened);
                if (faulted) {
                    auto next = now.plan;
                    if (result.outcome == driver::pmi_outcome::handled) {
                        next.status = result.status;
                        next.output = result.output;
                        driver::continue_after(result.next, next);
                    } else {
                        auto const last = driver::disable(now.cpu, now.plan.ctl);
                        next.status = last.status;
                        next.output = last.output;
                        driver::continue_after(now.drain(last), next);
                    }
                    CHECK(driver::restore(now.cpu, next).trace == driver::trace_state::enabled);
                }
                now.run(50);
                (void)now.drain(driver::disable(now.cpu));
                CHECK((now.cpu.msrs().status.raw & 0x30) == 0);  // neither Error nor Stopped
                CHECK(now.memory.stored.size() > (branches > 1000 ? 8192U : 100U));
                CHECK(now.read == now.memory.stored);
            }
        }
    }
}
