// SPDX-License-Identifier: BSL-1.0

// What did the machine execute before it was reset? A driver traces into a circular ring, in memory
// that keeps its contents over a reset. After a warm reset the MSRs still have the position of the
// trace; after a cold reset only memory has the trace. The trace is read before it is continued.

#include "standard_output.hpp"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/trace/reader.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace ptspec;
namespace action = engine::action;

constexpr auto const& caps = cpu::preset::skylake_x;
constexpr std::uint64_t memory_base = 0x10'0000;
constexpr std::uint64_t region_bytes = 0x1000;
constexpr std::size_t region_count = 4;
constexpr std::uint64_t table = memory_base + region_count * region_bytes;
constexpr std::uint64_t reset_vector = 0xFFFF'FFF0;

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// The target of a jump, by its number.
constexpr auto target_of(std::uint64_t jump) -> std::uint64_t { return 0x40'0000 + 16 * jump; }

/// The jumps that a trace shows.
struct seen_jumps {
    unsigned count = 0;
    std::uint64_t last = 0;  ///< the target of the last one
};

struct machine {
    std::uint8_t ram[(region_count + 1) * region_bytes] = {};
    host_region ranges[1] = {{memory_base, ram, sizeof ram}};
    host_memory memory{ranges};
    simulate::fake_processor<host_memory> cpu{caps, memory, {}, target_of(0)};

    topa::region regions[region_count] = {};
    topa::entry entries[region_count + 1] = {};
    driver::table_page page{table, entries};
    driver::ring ring{};
    access::msr_state msrs{};

    machine() {
        for (std::size_t i = 0; i < region_count; ++i) {
            regions[i] = {memory_base + i * region_bytes, topa::region_size::size_4K};
        }
        auto const built = driver::build_ring(driver::buffer_recipe::circular, regions,
                                              region_count, &page, 1, topa::limits::of(caps));
        expect(static_cast<bool>(built), "a ring");
        ring = built.ring;
        for (std::size_t i = 0; i <= region_count; ++i) {
            store_le64(ram + (table - memory_base) + 8 * i, entries[i].raw);
        }
        auto const planned = driver::plan(
            caps,
            {.config = {.os = true, .user = true, .psb_every = cpu::psb_period::of_bytes(2048)},
             .output = driver::output_at_start(ring)});
        expect(static_cast<bool>(planned), "a configuration");
        msrs = planned.plan;
    }
    machine(machine const&) = delete;
    auto operator=(machine const&) -> machine& = delete;

    /// Traces `count` jumps into a ring of zeros. It writes all MSRs: after a cold reset no value
    /// is what it was, and after a warm reset STATUS may have Error or Stopped.
    void run(std::uint64_t count) {
        for (std::size_t i = 0; i < ring.bytes; ++i) { ram[i] = 0; }
        expect(static_cast<bool>(driver::enable(cpu, msrs)), "tracing");
        for (std::uint64_t i = 1; i <= count; ++i) {
            (void)cpu.on(action::indirect_jump{target_of(i)});
        }
    }

    [[nodiscard]] auto jumps_in(driver::ring_part part) const -> seen_jumps {
        seen_jumps seen;
        trace::reader reader;
        auto const read = [&] {
            auto item = reader.next();
            for (; item; item = reader.next()) {
                if (item.what != trace::item_type::packet || !item.packet.is<packet::tip>()) {
                    continue;
                }
                ++seen.count;
                seen.last = item.ip;
            }
        };
        driver::for_each_span(ring, part, [&](phys_addr base, std::uint64_t bytes) {
            (void)reader.feed({ram + (base - memory_base), static_cast<std::size_t>(bytes)});
            read();
        });
        reader.finish();
        read();
        return seen;
    }
};

void print(char const* when, driver::ring_part part, seen_jumps const& seen) {
    std::printf("%s: %llu bytes of trace, %u jumps, the last to %llx\n", when,
                static_cast<unsigned long long>(part.count), seen.count,
                static_cast<unsigned long long>(seen.last));
}

}  // namespace

auto main() -> int {
    machine now;

    // A watchdog resets the processor. The ring has wrapped: it has the last 16 KB.
    now.run(10'000);
    now.cpu.warm_reset({}, reset_vector);
    auto const warm = driver::after_warm_reset(now.cpu, caps);
    expect(warm && warm.is_preserved, "the MSRs of before the reset");
    bool const wrapped = driver::has_wrapped(now.ring, warm, now.memory);
    auto const kept = driver::snapshot(now.ring, warm, wrapped);
    expect(kept && wrapped, "the position of the trace");
    auto const last = now.jumps_in(kept.part);
    print("warm reset", kept.part, last);
    expect(last.count > 1000 && last.last == target_of(10'000), "the last jump");

    // The next trace ends with a loss of power to the processor, but not to memory. Nothing has the
    // position: the trace ends with the last byte that is not 0.
    now.run(1'000);
    now.cpu.cold_reset({}, reset_vector);
    auto const cold = driver::after_cold_reset(now.cpu, now.ring, now.memory);
    expect(cold && now.cpu.msrs().output.base.raw == 0, "MSRs that are 0");
    auto const all = now.jumps_in(cold.part);
    print("cold reset", cold.part, all);
    expect(all.count == 1'000 && all.last == target_of(1'000), "each jump");
}
