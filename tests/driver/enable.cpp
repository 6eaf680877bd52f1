// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/enable.hpp>
#include <ptspec/simulate/recording_port.hpp>

#include <support/check_twice.hpp>
#include <support/driven_machine.hpp>
#include <support/faulting_port.hpp>

using namespace ptspec;
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

/// The written MSRs of a log, as indices in order.
template <size_t Count>
constexpr auto writes_are(auto const& log, uint32_t const (&indices)[Count]) -> bool {
    size_t at = 0;
    for (auto const& one : log) {
        if (one.what != simulate::logged_access::kind::write) { continue; }
        if (at == Count || one.index != indices[at]) { return false; }
        ++at;
    }
    return at == Count;
}

}  // namespace

TEST_CASE("enabling writes STATUS, filters, output and CTL, and only what CTL uses (PRG-030,032)") {
    CHECK_TWICE([](auto value) {
        world now;
        simulate::recording_port log{now.cpu};
        auto plan = topa_plan;
        plan.ctl = {value(uint64_t{0x250D})};
        bool const plain = driver::enable(log, plan) &&
                           writes_are(log, {0x571, 0x560, 0x561, 0x570});
        (void)driver::disable(now.cpu);
        plan.ctl = plan.ctl.with(ia32_rtit_ctl::CR3Filter{true},
                                 ia32_rtit_ctl::ADDR1_CFG{reg::addr_cfg::trace_stop});
        plan.cr3_match = {0x5000};
        plan.addr[0].a = {0x77};  // not used
        plan.addr[1] = {{0x1000}, {0x2000}};
        log.clear();
        bool const filtered = driver::enable(log, plan) &&
                              writes_are(log, {0x571, 0x560, 0x561, 0x572, 0x582, 0x583, 0x570});
        return plain && filtered && now.cpu.msrs().addr[1] == plan.addr[1] &&
               now.cpu.msrs().addr[0].a.raw == 0;
    });
}

TEST_CASE("enabling sets TraceEn in a plan without it (PRG-030)") {
    CHECK_TWICE([](auto value) {
        world now;
        auto plan = topa_plan;
        plan.ctl = {value(uint64_t{0x250C})};
        auto const result = driver::enable(now.cpu, plan);
        return result && result.trace == trace_state::enabled && now.cpu.msrs().ctl.raw == 0x250D;
    });
}

TEST_CASE("a fabric is enabled without the output MSRs, which may not exist (PRG-080)") {
    CHECK_TWICE([](auto value) {
        world now{value(preset::P_FAB)};
        simulate::recording_port log{now.cpu};
        auto const plan = ia32_rtit_ctl{0x204D};
        return driver::enable(log, {.ctl = plan}) && writes_are(log, {0x571, 0x570}) &&
               driver::disable(log) && writes_are(log, {0x571, 0x570, 0x570});
    });
}

TEST_CASE("reading back shows another agent and an operational error (PRG-033,261)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        auto const good = driver::check_enabled(now.cpu, topa_plan);
        (void)now.cpu.write(0x570, value(uint64_t{0x250C}));
        auto const taken = driver::check_enabled(now.cpu, topa_plan);
        world other;
        other.memory.put(0, topa::link_to(table));  // END in entry 0
        (void)driver::enable(other.cpu, topa_plan);
        auto const wrong = driver::check_enabled(other.cpu, topa_plan);
        return good && good.trace == trace_state::enabled && !taken && !taken.is_ours &&
               taken.trace == trace_state::disabled && !wrong && wrong.is_ours &&
               wrong.status.template get<ia32_rtit_status::Error>();
    });
}

TEST_CASE("disabling fences between the write of CTL and the read of the position (PRG-040,103)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        simulate::recording_port log{now.cpu};
        auto const stopped = driver::disable(log);
        using kind = simulate::logged_access::kind;
        struct {
            kind what;
            uint32_t index;
        } const expected[] = {{kind::read, 0x570}, {kind::write, value(0x570U)},
                              {kind::fence, 0},    {kind::read, 0x571},
                              {kind::read, 0x560}, {kind::read, 0x561}};
        size_t at = 0;
        for (auto const& one : log) {
            if (one.what != expected[at].what || one.index != expected[at].index) { return false; }
            ++at;
        }
        // A PSB+, TIP.PGE, FUP and TIP.PGD are in memory.
        return at == 6 && stopped && stopped.trace == trace_state::disabled &&
               stopped.ctl.raw == 0x250D && stopped.output.base.raw == table &&
               stopped.output.mask_ptrs.raw >> 32 > 16 && now.cpu.fences() == 1;
    });
}

TEST_CASE("disabling a trace that is off changes nothing (PRG-043)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)now.cpu.write(0x570, value(uint64_t{0x2508}));
        auto const before = now.cpu.msrs();
        auto const stopped = driver::disable(now.cpu);
        return stopped && stopped.trace == trace_state::disabled && now.cpu.msrs() == before;
    });
}

TEST_CASE("flushing continues with the same configuration and without a PSB (PRG-042,060)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        auto const first = driver::flush(now.cpu, topa_plan.ctl);
        auto const second = driver::flush(now.cpu, topa_plan.ctl);
        uint64_t const bytes = (second.output.mask_ptrs.raw >> 32) -
                               (first.output.mask_ptrs.raw >> 32);
        return first && first.trace == trace_state::enabled && second && bytes != 0 &&
               bytes <= 64 && now.cpu.is_tracing() && now.cpu.msrs().ctl == topa_plan.ctl &&
               first.status.template get<ia32_rtit_status::PacketByteCnt>() != 0;
    });
}

TEST_CASE("flushing does not continue a trace that Stopped or Error ended (PRG-061,086)") {
    CHECK_TWICE([](auto value) {
        world now;
        now.memory.put(0, topa::entry{test::STOP.raw | test::regions});
        (void)driver::enable(now.cpu, topa_plan);
        for (uint64_t i = 0; i < 4096 && !now.cpu.msrs().status.get<ia32_rtit_status::Stopped>();
             ++i) {
            (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000}) + i * 0x1'0000'0000});
        }
        auto const ended = driver::flush(now.cpu, topa_plan.ctl);
        return ended && ended.trace == trace_state::disabled && !now.cpu.is_tracing() &&
               ended.status.template get<ia32_rtit_status::Stopped>() &&
               ended.output.mask_ptrs.raw == 0x1000'0000'007F;
    });
}

TEST_CASE("restarting programs everything again (PRG-041,086)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        auto const result = driver::restart(now.cpu, topa_plan);
        auto const again = driver::disable(now.cpu);
        return result && result.trace == trace_state::enabled && now.cpu.times_enabled() == 2 &&
               again.output.mask_ptrs.raw >> 32 < 128;
    });
}

TEST_CASE("tables are edited while TraceEn is 0, and only then (PRG-091,124)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        bool was_tracing = true;
        auto const result = driver::while_disabled(now.cpu, topa_plan.ctl,
                                                   [&] { was_tracing = now.cpu.is_tracing(); });
        world off;
        (void)off.cpu.write(0x570, value(uint64_t{0x250C}));
        auto const stays_off = driver::while_disabled(off.cpu, {0x250C}, [] {});
        return result && !was_tracing && now.cpu.is_tracing() && stays_off &&
               stays_off.trace == trace_state::disabled && !off.cpu.is_tracing();
    });
}

TEST_CASE("an edit does not continue a trace that Stopped or Error ended, and says so "
          "(PRG-041,086)") {
    CHECK_TWICE([](auto value) {
        world full;
        full.memory.put(0, topa::entry{test::regions | value(uint64_t{0x10})});  // STOP
        (void)driver::enable(full.cpu, topa_plan);
        for (uint64_t i = 0; i < 800; ++i) {
            (void)full.cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
        }
        bool edited = false;
        auto const stopped = driver::while_disabled(full.cpu, topa_plan.ctl,
                                                    [&] { edited = true; });
        bool const stays_off = stopped && edited && stopped.trace == trace_state::disabled &&
                               stopped.status.template get<ia32_rtit_status::Stopped>() &&
                               stopped.output.mask_ptrs.raw == 0x1000'0000'007F &&
                               !full.cpu.is_tracing() && full.cpu.times_enabled() == 1;
        world wrong;
        wrong.memory.put(0, topa::link_to(table));  // END in the first entry
        (void)driver::enable(wrong.cpu, topa_plan);
        auto const failed = driver::while_disabled(wrong.cpu, topa_plan.ctl, [] {});
        return stays_off && failed && failed.trace == trace_state::disabled &&
               failed.status.template get<ia32_rtit_status::Error>() && !wrong.cpu.is_tracing();
    });
}

TEST_CASE("an edit returns where the trace ended before it, and does not write it (PRG-063,123)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        simulate::recording_port log{now.cpu};
        auto const result = driver::while_disabled(log, topa_plan.ctl, [] {});
        return result && result.trace == trace_state::enabled && result.ctl == topa_plan.ctl &&
               result.output.base.raw == table && result.output.mask_ptrs.raw >> 32 != 0 &&
               result.output.mask_ptrs.raw >> 32 < now.cpu.msrs().output.mask_ptrs.raw >> 32 &&
               writes_are(log, {0x570, 0x570});
    });
}

TEST_CASE("the owner of a trace does not read CTL; the result has what it wrote (PRG-040)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        simulate::recording_port log{now.cpu};
        auto const flushed = driver::flush(log, {value(uint64_t{0x250D})});
        auto const stopped = driver::disable(log, {0x250D});
        for (auto const& one : log) {
            bool const is_read = one.what == simulate::logged_access::kind::read;
            if (is_read && one.index == 0x570) { return false; }
        }
        return flushed.ctl.raw == 0x250D && stopped.ctl.raw == 0x250D &&
               stopped.trace == trace_state::disabled && now.cpu.fences() == 2;
    });
}

TEST_CASE("a restart that cannot clear TraceEn reports it, and programs nothing") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        test::faulting_port port{now.cpu, value(0U)};
        auto const result = driver::restart(port, topa_plan);
        return result.fault.index == 0x570 && result.trace == trace_state::still_tracing &&
               port.count() == 1;
    });
}

TEST_CASE("enabling writes range 0, too, and a restart every MSR (PRG-030,041)") {
    CHECK_TWICE([](auto value) {
        world now;
        auto plan = topa_plan;
        plan.ctl = plan.ctl.with(ia32_rtit_ctl::ADDR0_CFG{reg::addr_cfg::filter});
        plan.addr[0] = {{0x1000}, {value(uint64_t{0x1FFF})}};
        simulate::recording_port log{now.cpu};
        bool const enabled = driver::enable(log, plan) &&
                             writes_are(log, {0x571, 0x560, 0x561, 0x580, 0x581, 0x570});
        log.clear();
        bool const again = driver::restart(log, plan) &&
                           writes_are(log, {0x570, 0x571, 0x560, 0x561, 0x580, 0x581, 0x570});
        return enabled && again && now.cpu.msrs().addr[0] == plan.addr[0];
    });
}

TEST_CASE("MSRs that cannot be read back are reported, with the access (PRG-033)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        test::faulting_port port{now.cpu, value(1U)};
        auto const result = driver::check_enabled(port, topa_plan);
        return !result && result.fault.index == 0x571 && !result.fault.is_write &&
               result.fault.number == 1 && !result.is_ours;
    });
}
