// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/driver/topa_pmi.hpp>

#include <support/check_twice.hpp>
#include <support/driven_machine.hpp>
#include <support/faulting_port.hpp>

using namespace ptspec;
using driver::pmi_decision;
using driver::pmi_outcome;
using driver::trace_state;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;
using test::topa_plan;
using test::machine;
namespace preset = cpu::preset;
namespace action = engine::action;

namespace {

using lvt = reg::ia32_x2apic_lvt_pmi;

/// With a handler of PMIs.
struct world : test::world {
    constexpr explicit world(topa::entry first, topa::entry second = {},
                             cpu::capabilities const& of = preset::skylake_x)
        : test::world{of, {}, test::machine_memory{first, second}} {
        unmask();
    }
    constexpr void unmask() { (void)cpu.write(lvt::address, lvt{}.with(lvt::Vector{0xFE}).raw); }
    constexpr void run_until_pmi() {
        for (uint64_t i = 0; i < 2048 && !cpu.pmi_is_deliverable(); ++i) {
            (void)cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
        }
    }
    template <class Drain>
    constexpr auto handle(Drain&& drain) {
        return driver::on_topa_pmi(cpu, drain, [this] { unmask(); });
    }
};

constexpr auto resume = [](driver::stopped_trace const&) { return pmi_decision{}; };

constexpr auto has_bit_55(machine& cpu) -> bool { return (cpu.read(0x38E).value >> 55 & 1) != 0; }

}  // namespace

TEST_CASE("a PMI of a full region is handled, acknowledged, and tracing continues (PRG-120..122)") {
    CHECK_TWICE([](auto value) {
        world now{test::INT};
        (void)driver::enable(now.cpu, topa_plan);
        now.run_until_pmi();
        bool const delivered = now.cpu.deliver_pmi() && has_bit_55(now.cpu);
        uint64_t index = 0;
        bool drained_while_off = false;
        auto const result = now.handle([&](driver::stopped_trace const& stopped) {
            drained_while_off = !now.cpu.is_tracing();
            index = stopped.output.mask_ptrs.raw >> 7 & 0x1FF'FFFF;
            return pmi_decision{.resume = value(true)};
        });
        now.run_until_pmi();
        return delivered && drained_while_off && index == 1 && result &&
               result.outcome == pmi_outcome::handled && result.trace == trace_state::enabled &&
               now.cpu.is_tracing() && now.cpu.pmi_is_deliverable();  // unmasked again
    });
}

TEST_CASE("a PMI of another source touches no MSR of Intel PT (PRG-122)") {
    CHECK_TWICE([](auto value) {
        world now{test::INT};
        (void)driver::enable(now.cpu, topa_plan);
        simulate::recording_port log{now.cpu};
        bool unmasked = false;
        auto const result = driver::on_topa_pmi(log, resume, [&] { unmasked = value(true); });
        return result.outcome == pmi_outcome::not_topa && log.count() == 1 && !unmasked &&
               now.cpu.is_tracing();
    });
}

TEST_CASE("a PMI while TraceEn is 0 is deferred: STATUS is left, the LVT unmasked (PRG-115,125)") {
    CHECK_TWICE([](auto value) {
        world now{test::INT, {}, preset::P_FUT};
        auto plan = topa_plan;
        plan.ctl = plan.ctl.with(ia32_rtit_ctl::InjectPsbPmiOnEnable{true});
        (void)driver::enable(now.cpu, plan);
        now.run_until_pmi();
        (void)now.cpu.write(0x570, plan.ctl.with(ia32_rtit_ctl::TraceEn{false}).raw);
        (void)now.cpu.deliver_pmi();
        bool drained = false;
        auto const result = now.handle([&](driver::stopped_trace const&) {
            drained = value(true);
            return pmi_decision{};
        });
        auto const status = now.cpu.msrs().status;
        bool const deferred = result.outcome == pmi_outcome::deferred && !drained &&
                              !result.next.resume && result.trace == trace_state::disabled &&
                              !now.cpu.is_tracing() && !has_bit_55(now.cpu) &&
                              status.get<ia32_rtit_status::PendToPAPMI>();
        // Enabling the context raises the PMI again (OUT-086).
        bool const none = !now.cpu.pmi_is_deliverable();
        (void)now.cpu.write(0x570, plan.ctl.raw);
        return deferred && none && has_bit_55(now.cpu) && now.cpu.pmi_is_deliverable();
    });
}

TEST_CASE("PC-39: a handled PMI clears PendToPAPMI before the LVT is unmasked (PRG-125)") {
    CHECK_TWICE([](auto value) {
        world now{test::INT, {}, preset::P_FUT};
        auto plan = topa_plan;
        plan.ctl = plan.ctl.with(ia32_rtit_ctl::InjectPsbPmiOnEnable{true});
        (void)driver::enable(now.cpu, plan);
        now.run_until_pmi();
        (void)now.cpu.deliver_pmi();
        bool cleared_when_unmasked = false;
        auto const result = driver::on_topa_pmi(now.cpu, resume, [&] {
            cleared_when_unmasked = !now.cpu.msrs().status.get<ia32_rtit_status::PendToPAPMI>();
            now.unmask();
        });
        return result.outcome == pmi_outcome::handled && cleared_when_unmasked == value(true) &&
               result.status.template get<ia32_rtit_status::PendToPAPMI>() && now.cpu.is_tracing();
    });
}

TEST_CASE("a handler that does not resume, and one after an error, leave TraceEn 0 (PRG-088)") {
    CHECK_TWICE([](auto value) {
        world now{test::INT};
        (void)driver::enable(now.cpu, topa_plan);
        now.run_until_pmi();
        (void)now.cpu.deliver_pmi();
        auto const stopped = now.handle(
            [&](driver::stopped_trace const&) { return pmi_decision{.resume = value(false)}; });
        world other{test::INT};
        other.memory.put(1, topa::entry{test::regions | 0x20});  // a reserved bit
        (void)driver::enable(other.cpu, topa_plan);
        other.run_until_pmi();
        (void)other.cpu.deliver_pmi();
        auto const failed = other.handle(resume);
        return stopped.outcome == pmi_outcome::handled && stopped.trace == trace_state::disabled &&
               !now.cpu.is_tracing() && !has_bit_55(now.cpu) &&
               failed.outcome == pmi_outcome::handled && failed.trace == trace_state::disabled &&
               failed.status.template get<ia32_rtit_status::Error>() &&
               other.cpu.msrs().status.get<ia32_rtit_status::Error>();
    });
}

TEST_CASE("the result of the handler names the access that faulted (PRG-122)") {
    CHECK_TWICE([](auto value) {
        world now{test::INT};
        (void)driver::enable(now.cpu, topa_plan);
        now.run_until_pmi();
        (void)now.cpu.deliver_pmi();
        test::faulting_port port{now.cpu, value(4U)};
        auto const result = driver::on_topa_pmi(port, resume, [] {});
        return !result && result.fault.index == 0x560 && result.fault.number == 4 &&
               result.outcome == driver::pmi_outcome::deferred && !now.cpu.is_tracing();
    });
}

TEST_CASE("a trace is read out without a PMI, as by the handler (PRG-041,122,125)") {
    CHECK_TWICE([](auto value) {
        world now{{}, topa::entry{test::INT.raw | test::STOP.raw}, preset::P_FUT};
        auto plan = topa_plan;
        plan.ctl = plan.ctl.with(ia32_rtit_ctl::InjectPsbPmiOnEnable{value(true)});
        (void)driver::enable(now.cpu, plan);
        now.run_until_pmi();
        bool drained_while_off = false;
        simulate::recording_port log{now.cpu};
        auto const result = driver::read_out(log, plan.ctl, [&](driver::stopped_trace const& at) {
            drained_while_off = !now.cpu.is_tracing() &&
                                at.status.get<ia32_rtit_status::Stopped>() &&
                                at.status.get<ia32_rtit_status::PendToPAPMI>();
            return pmi_decision{.has_new_output = true, .output = topa_plan.output};
        });
        // W570 R571 R560 R561, W571 W560 W561 W570.
        uint32_t const expected[] = {0x570, 0x571, 0x560, 0x561, 0x571, 0x560, 0x561, 0x570};
        size_t at = 0;
        for (auto const& one : log) {
            if (at == 8 || one.index != expected[at++]) { return false; }
        }
        auto const status = now.cpu.msrs().status;
        return at == 8 && result && drained_while_off && result.outcome == pmi_outcome::handled &&
               result.trace == trace_state::enabled && result.next.output == topa_plan.output &&
               status.get<ia32_rtit_status::TriggerEn>() &&
               !status.get<ia32_rtit_status::PendToPAPMI>();
    });
}

TEST_CASE("a new position whose writes faulted is in the result (PRG-086,122)") {
    CHECK_TWICE([](auto value) {
        world now{{}, topa::entry{test::INT.raw | test::STOP.raw}};
        (void)driver::enable(now.cpu, topa_plan);
        now.run_until_pmi();
        (void)now.cpu.deliver_pmi();
        test::faulting_port port{now.cpu, value(8U)};  // the write of MASK_PTRS
        auto const result = driver::on_topa_pmi(
            port,
            [](driver::stopped_trace const&) {
                return pmi_decision{.has_new_output = true, .output = topa_plan.output};
            },
            [] {});
        return !result && result.fault.index == 0x561 && result.fault.is_write &&
               result.outcome == pmi_outcome::handled && result.next.has_new_output &&
               result.next.output == topa_plan.output && !now.cpu.is_tracing();
    });
}
