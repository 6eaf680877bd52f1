// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/driver/triage.hpp>

#include <support/check_twice.hpp>
#include <support/driven_machine.hpp>
#include <support/faulting_port.hpp>

using namespace ptspec;
using driver::end_reason;
using driver::trace_state;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;
using test::topa_plan;
using test::machine;
using test::table;
using test::world;
namespace preset = cpu::preset;
namespace action = engine::action;

namespace {

/// Indirect branches until tracing ends.
constexpr void run_until_the_end(machine& cpu) {
    for (uint64_t i = 0; i < 2048; ++i) {
        if (!cpu.msrs().status.get<ia32_rtit_status::TriggerEn>()) { return; }
        (void)cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
    }
}

}  // namespace

TEST_CASE("a trace that has not ended needs nothing (PRG-041)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        auto const stopped = driver::disable(now.cpu);
        auto const end = driver::triage(stopped, preset::skylake_x, now.memory);
        return end.reason == end_reason::none && !end.needs_new_position && !end.needs_repair &&
               end.status.get<ia32_rtit_status::PacketByteCnt>() ==
                   stopped.status.template get<ia32_rtit_status::PacketByteCnt>();
    });
}

TEST_CASE("the tables distinguish ToPA STOP from TraceStop (PRG-041,086)") {
    CHECK_TWICE([](auto value) {
        world now;
        now.memory.put(0, topa::entry{test::STOP.raw | value(test::regions)});
        auto plan = topa_plan;
        plan.ctl = plan.ctl.with(ia32_rtit_ctl::ADDR0_CFG{reg::addr_cfg::trace_stop});
        plan.addr[0] = {{0x9000}, {0x9FFF}};
        (void)driver::enable(now.cpu, plan);
        run_until_the_end(now.cpu);
        auto const stopped = driver::disable(now.cpu);
        auto const alone = driver::triage(stopped);
        auto const end = driver::triage(stopped, preset::skylake_x, now.memory);

        world other;
        (void)driver::enable(other.cpu, plan);
        (void)other.cpu.on(action::indirect_jump{0x9000});
        auto const in_range = driver::disable(other.cpu);
        auto const stop = driver::triage(in_range, preset::skylake_x, other.memory);
        return alone.reason == end_reason::trace_stop_or_topa && alone.needs_new_position &&
               end.reason == end_reason::topa_stop && end.explanation.ended_by == rule::OUT_080 &&
               end.needs_new_position && !end.needs_repair &&
               !end.status.get<ia32_rtit_status::Stopped>() &&
               stop.reason == end_reason::trace_stop &&
               stop.explanation.ended_by == rule::REG_068 && !stop.needs_new_position &&
               !stop.needs_repair;
    });
}

TEST_CASE("without tables the reason follows from CTL alone (PRG-041)") {
    CHECK_TWICE([](auto value) {
        driver::stopped_trace now;
        now.status = {value(uint64_t{0x20})};
        now.ctl = {0x250D};
        bool const topa = driver::triage(now).reason == end_reason::topa_stop;
        now.ctl = ia32_rtit_ctl{0x240D}.with(ia32_rtit_ctl::ADDR0_CFG{reg::addr_cfg::trace_stop});
        bool const single = driver::triage(now).reason == end_reason::trace_stop;
        now.ctl = {0x240D};
        bool const neither = driver::triage(now).reason == end_reason::set_by_software;
        return topa && single && neither;
    });
}

TEST_CASE("an operational error names its rule, and what to repair (PRG-041,088)") {
    CHECK_TWICE([](auto value) {
        world now;
        now.memory.put(0, topa::link_to(value(table)));  // END in entry 0
        (void)driver::enable(now.cpu, topa_plan);
        auto const stopped = driver::disable(now.cpu);
        auto const alone = driver::triage(stopped);
        auto const end = driver::triage(stopped, preset::skylake_x, now.memory);
        return alone.reason == end_reason::operational_error && alone.needs_repair &&
               end.reason == end_reason::operational_error &&
               end.explanation.ended_by == rule::OUT_066 && end.needs_repair &&
               !end.needs_new_position && !end.status.get<ia32_rtit_status::Error>();
    });
    CHECK_TWICE([](auto value) {
        world now;
        auto plan = topa_plan;
        plan.output.mask_ptrs = {value(uint64_t{0x1000'0000'007F})};  // an offset of 4 KB
        (void)driver::enable(now.cpu, plan);
        auto const end = driver::triage(driver::disable(now.cpu), preset::skylake_x, now.memory);
        return end.reason == end_reason::operational_error &&
               end.explanation.ended_by == rule::OUT_064 && end.needs_new_position &&
               !end.needs_repair;
    });
}

TEST_CASE("a bit that software set, and tables that cannot be read (PRG-041)") {
    CHECK_TWICE([](auto value) {
        world now;
        driver::stopped_trace set;
        set.ctl = {0x250C};
        set.status = {value(uint64_t{0x10})};
        set.output = topa_plan.output;
        auto const end = driver::triage(set, preset::skylake_x, now.memory);
        set.output = driver::in_topa({.table = 0x7000'0000});
        auto const unread = driver::triage(set, preset::skylake_x, now.memory);
        return end.reason == end_reason::set_by_software && !end.needs_repair &&
               unread.reason == end_reason::operational_error &&
               unread.explanation.fault.happened && unread.needs_repair;
    });
}

TEST_CASE("recovering continues after a TraceStop at the same position (PRG-041,042,061)") {
    CHECK_TWICE([](auto value) {
        world now;
        auto plan = topa_plan;
        plan.ctl = plan.ctl.with(ia32_rtit_ctl::ADDR0_CFG{reg::addr_cfg::trace_stop});
        plan.addr[0] = {{0x9000}, {0x9FFF}};
        (void)driver::enable(now.cpu, plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x9000})});
        bool const ended = now.cpu.msrs().status.get<ia32_rtit_status::Stopped>();
        (void)now.cpu.on(action::indirect_jump{0x2000});
        auto const result = driver::recover(now.cpu, plan.ctl);
        auto const after = now.cpu.msrs().status;
        return ended && result && result.trace == trace_state::enabled &&
               result.status.template get<ia32_rtit_status::Stopped>() &&
               !after.get<ia32_rtit_status::Stopped>() &&
               after.get<ia32_rtit_status::TriggerEn>() &&
               after.get<ia32_rtit_status::PacketByteCnt>() >=
                   result.status.template get<ia32_rtit_status::PacketByteCnt>();
    });
}

TEST_CASE("recovering does not continue after an operational error (PRG-041)") {
    CHECK_TWICE([](auto value) {
        world now;
        now.memory.put(0, topa::link_to(value(table)));
        (void)driver::enable(now.cpu, topa_plan);
        auto const result = driver::recover(now.cpu, topa_plan.ctl);
        return result && result.trace == trace_state::disabled && !now.cpu.is_tracing() &&
               now.cpu.msrs().status.get<ia32_rtit_status::Error>();
    });
}

TEST_CASE("recovering writes CTL again only if STATUS was written and TraceEn was asked for "
          "(PRG-041)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        test::faulting_port port{now.cpu, value(4U)};  // the write of STATUS
        auto const faulted = driver::recover(port, topa_plan.ctl);
        bool const stays_off = !faulted && faulted.fault.index == 0x571 && port.count() == 5 &&
                               !now.cpu.is_tracing();
        world off;
        simulate::recording_port log{off.cpu};
        auto const quiet = driver::recover(log, topa_plan.ctl.with(ia32_rtit_ctl::TraceEn{false}));
        return stays_off && quiet && log.count() == 5 && !off.cpu.is_tracing();
    });
}

TEST_CASE("a TraceStop needs no new position, and STOP does (PRG-041,086)") {
    CHECK_TWICE([](auto value) {
        world stop;
        stop.memory.put(0, topa::entry{test::regions | value(uint64_t{0x10})});
        (void)driver::enable(stop.cpu, topa_plan);
        run_until_the_end(stop.cpu);
        auto const full = driver::triage(driver::disable(stop.cpu), preset::skylake_x, stop.memory);
        return full.reason == end_reason::topa_stop && full.needs_new_position &&
               !full.needs_repair;
    });
}
