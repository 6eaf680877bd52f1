// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/simulate/recording_port.hpp>

#include <support/check_twice.hpp>
#include <support/driven_machine.hpp>

using namespace ptspec;
using driver::trace_state;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;
using test::topa_plan;
using test::table;
using test::world;
namespace preset = cpu::preset;
namespace action = engine::action;

TEST_CASE("a pause keeps the count and the position (PRG-043,102)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        auto const paused = driver::pause(now.cpu, topa_plan.ctl);
        auto const before = now.cpu.msrs();
        auto const resumed = driver::resume(now.cpu, topa_plan.ctl);
        return paused && paused.trace == trace_state::disabled && before.ctl.raw == 0x250C &&
               before.status.get<ia32_rtit_status::PacketByteCnt>() != 0 && resumed &&
               resumed.trace == trace_state::enabled && resumed.status == before.status &&
               now.cpu.is_tracing() && now.cpu.times_enabled() == 2;
    });
}

TEST_CASE("a running, a stopped and a failed trace are not resumed (PRG-031,041)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        simulate::recording_port log{now.cpu};
        auto const running = driver::resume(log, topa_plan.ctl);
        bool const untouched = log.count() == 1;
        (void)driver::pause(now.cpu, topa_plan.ctl);
        (void)now.cpu.write(0x571, value(uint64_t{0x20}));
        auto const stopped = driver::resume(now.cpu, topa_plan.ctl);
        (void)now.cpu.write(0x571, 0x10);
        auto const failed = driver::resume(now.cpu, topa_plan.ctl);
        return running && running.trace == trace_state::enabled && untouched && stopped &&
               stopped.trace == trace_state::disabled && failed.trace == trace_state::disabled &&
               !now.cpu.is_tracing();
    });
}

TEST_CASE("resuming returns the position at which the trace was paused, and of a fabric none "
          "(PRG-063,080)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        (void)driver::pause(now.cpu, topa_plan.ctl);
        auto const before = now.cpu.msrs();
        auto const resumed = driver::resume(now.cpu, topa_plan.ctl);
        bool const position = resumed && resumed.output.base == before.output.base &&
                              resumed.output.mask_ptrs == before.output.mask_ptrs &&
                              before.output.mask_ptrs.raw >> 32 != 0;
        world other;
        simulate::recording_port log{other.cpu};
        (void)driver::resume(log, topa_plan.ctl.with(ia32_rtit_ctl::FabricEn{true}));
        return position && log.count() == 2 && log.begin()[1].index == 0x570;
    });
}
