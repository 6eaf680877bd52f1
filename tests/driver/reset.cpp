// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/driver/reset.hpp>

#include <support/check_twice.hpp>
#include <support/driven_machine.hpp>
#include <support/faulting_port.hpp>

using namespace ptspec;
using driver::trace_state;
using test::topa_plan;
using test::table;
using test::world;
namespace preset = cpu::preset;
namespace action = engine::action;

namespace {

/// The ring of the two regions that `machine_memory` has.
struct two_regions {
    topa::region regions[2] = {{test::regions}, {test::regions + 0x1000}};
    topa::entry entries[3] = {};
    driver::table_page page{table, entries};
    driver::ring ring = driver::build_ring(driver::buffer_recipe::circular, regions, 2, &page, 1,
                                           {{39}, true})
                            .ring;
};

}  // namespace

TEST_CASE("PC-22: what a warm reset preserves is read, and nothing is written (PRG-070,071)") {
    CHECK_TWICE([](auto value) {
        world now{value(preset::skylake_x)};
        (void)driver::enable(now.cpu, topa_plan);
        (void)driver::flush(now.cpu, topa_plan.ctl);
        now.cpu.warm_reset({}, 0xFFFF'FFF0);
        auto const before = now.cpu.msrs();
        auto const found = driver::after_warm_reset(now.cpu, preset::skylake_x);
        world old{preset::broadwell};
        (void)driver::enable(old.cpu, topa_plan);
        old.cpu.warm_reset({}, 0xFFFF'FFF0);
        auto const cleared = driver::after_warm_reset(old.cpu, preset::broadwell);
        return found && found.is_preserved && found.ctl.raw == 0x250C &&
               found.output.base.raw == table && found.output.mask_ptrs.raw >> 32 != 0 &&
               now.cpu.msrs() == before && cleared && !cleared.is_preserved &&
               cleared.ctl.raw == 0 && cleared.output.base.raw == 0 &&
               cleared.output.mask_ptrs.raw == 0x7F;
    });
}

TEST_CASE("a trace that was enabled after the reset is not touched (PRG-260)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        simulate::recording_port log{now.cpu};
        auto const found = driver::after_warm_reset(log, value(preset::skylake_x));
        return found.trace == trace_state::enabled && !found.is_preserved && log.count() == 1;
    });
}

TEST_CASE("after a cold reset memory alone tells where the trace ended (PRG-030,070,140)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{0x1234'5678'9ABC});
        auto const end = driver::disable(now.cpu);
        two_regions const buffer;
        auto const where = driver::offset_of(buffer.ring, end.output);
        now.cpu.cold_reset({}, value(uint64_t{0xFFF0}));
        auto const found = driver::after_cold_reset(now.cpu, buffer.ring, now.memory.trace);
        return found && found.trace == trace_state::disabled && found.part.from == 0 &&
               where.offset > 20 && where.offset % 16 == 0 &&
               where.offset - found.part.count < 16 &&  // PADs end the trace
               now.cpu.msrs().output.base.raw == 0;
    });
}

TEST_CASE("after a cold reset another agent's trace is left alone, and a fault is reported "
          "(PRG-260)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        two_regions const buffer;
        auto const in_use = driver::after_cold_reset(now.cpu, buffer.ring, now.memory.trace);
        test::faulting_port port{now.cpu, value(0U)};
        auto const faulted = driver::after_cold_reset(port, buffer.ring, now.memory.trace);
        return in_use.trace == trace_state::enabled && in_use.part.count == 0 &&
               faulted.fault.index == 0x570 && faulted.trace == trace_state::unknown;
    });
}
