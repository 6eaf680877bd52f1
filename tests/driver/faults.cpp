// SPDX-License-Identifier: BSL-1.0
// A fault at each access of each procedure, one by one: the result names the access and the state
// in which the trace unit is left, and no saved state is lost.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/driver/guards.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/driver/reset.hpp>
#include <ptspec/driver/topa_pmi.hpp>
#include <ptspec/driver/triage.hpp>

#include <support/check_twice.hpp>
#include <support/driven_machine.hpp>
#include <support/faulting_port.hpp>

using namespace ptspec;
using driver::trace_state;
using reg::ia32_rtit_ctl;
using test::machine;
using test::table;
namespace preset = cpu::preset;

namespace {

constexpr access::msr_state plan{
    .ctl = ia32_rtit_ctl{0x250D}.with(ia32_rtit_ctl::CR3Filter{true},
                                      ia32_rtit_ctl::ADDR0_CFG{reg::addr_cfg::filter},
                                      ia32_rtit_ctl::ADDR1_CFG{reg::addr_cfg::trace_stop}),
    .output = driver::in_topa({.table = table}),
    .cr3_match = {0x1000},
    .addr = {{{0x1000}, {0x1FFF}}, {{0x5000}, {0x5FFF}}}};

/// Its CR3 is that of `plan`.
struct world : test::world {
    constexpr world() : test::world{preset::skylake_x, {.cr3 = 0x1000}} {}
};

/// Runs a procedure with a fault at each of its accesses. `prepare` brings the processor into the
/// state before it. `procedure(port)` returns the result. Returns false if a result is wrong.
template <class Prepare, class Procedure>
constexpr auto survives_faults(Prepare&& prepare, Procedure&& procedure) -> bool {
    for (unsigned number = 0;; ++number) {
        if (number == 64) { return false; }  // an access after a fault: a loop
        world now;
        prepare(now.cpu);
        test::faulting_port port{now.cpu, number};
        auto const result = procedure(port);
        bool const is_tracing = now.cpu.is_tracing();
        if (!port.fault().happened) {
            return number != 0 && !result.fault.happened && result.trace != trace_state::unknown &&
                   is_tracing == (result.trace == trace_state::enabled);
        }
        auto const fault = port.fault();
        if (!result.fault.happened || result.fault.index != fault.index ||
            result.fault.is_write != fault.is_write || result.fault.number != number) {
            return false;
        }
        if (result.trace == trace_state::enabled && !is_tracing) { return false; }
        if (result.trace == trace_state::disabled && is_tracing) { return false; }
        if (result.trace == trace_state::still_tracing) {
            bool const clears = fault.is_write && fault.index == ia32_rtit_ctl::address;
            if (!clears || !is_tracing) { return false; }
        }
    }
}

/// The same for a procedure of a processor with four ranges that does not read or write CTL.
template <class Procedure>
constexpr auto survives_uncovered(Procedure&& procedure) -> bool {
    for (unsigned number = 0; number < 16; ++number) {
        test::world now{preset::P_FUT};
        test::faulting_port port{now.cpu, number};
        auto const result = procedure(port);
        if (!port.fault().happened) { return number == 4 && !result.fault.happened; }
        if (!result.fault.happened || result.fault.index != port.fault().index ||
            result.fault.number != number || port.count() != number + 1) {
            return false;
        }
    }
    return false;
}

constexpr auto off = [](machine&) {};
constexpr auto on = [](machine& cpu) { (void)driver::enable(cpu, plan); };

}  // namespace

TEST_CASE("a fault while enabling leaves TraceEn 0 (PRG-030)") {
    CHECK_TWICE([](auto) {
        return survives_faults(off, [](auto& port) {
            auto const result = driver::enable(port, plan);
            return result;
        });
    });
}

TEST_CASE("a fault while disabling is reported with the state of TraceEn (PRG-040)") {
    CHECK_TWICE([](auto) {
        return survives_faults(on, [](auto& port) { return driver::disable(port); }) &&
               survives_faults(on, [](auto& port) { return driver::disable(port, plan.ctl); });
    });
}

TEST_CASE("a fault while flushing, pausing or resuming is reported (PRG-060)") {
    CHECK_TWICE([](auto) {
        auto const paused = [](machine& cpu) {
            on(cpu);
            (void)driver::pause(cpu, plan.ctl);
        };
        return survives_faults(on, [](auto& port) { return driver::flush(port, plan.ctl); }) &&
               survives_faults(on, [](auto& port) { return driver::pause(port, plan.ctl); }) &&
               survives_faults(paused, [](auto& port) { return driver::resume(port, plan.ctl); });
    });
}

TEST_CASE("a fault while a trace is changed is reported, and tables are edited only while TraceEn "
          "is 0 (PRG-086,091)") {
    CHECK_TWICE([](auto) {
        bool edited_while_tracing = false;
        auto const edit = [&](auto& port) {
            bool edited = false;
            auto const result = driver::while_disabled(port, plan.ctl, [&] { edited = true; });
            edited_while_tracing |= edited && result.trace == trace_state::still_tracing;
            return result;
        };
        return survives_faults(on, edit) && !edited_while_tracing &&
               survives_faults(on, [](auto& port) { return driver::restart(port, plan); }) &&
               survives_faults(on, [](auto& port) { return driver::recover(port, plan.ctl); });
    });
}

TEST_CASE("a fault while a context is saved or restored loses no saved state (PRG-100,101)") {
    CHECK_TWICE([](auto) {
        auto const saved = [](machine& cpu) {
            on(cpu);
            (void)driver::save(cpu);
        };
        auto const restore = [](auto& port) { return driver::restore(port, plan); };
        return survives_faults(on, [](auto& port) { return driver::save(port); }) &&
               survives_faults(saved, restore);
    });
    // After a fault the same state can be restored.
    CHECK_TWICE([](auto) {
        for (unsigned number = 0; number < 10; ++number) {
            world now;
            on(now.cpu);
            auto const saved = driver::save(now.cpu);
            test::faulting_port port{now.cpu, number};
            auto const first = driver::restore(port, saved.state);
            if (first.fault.happened && now.cpu.is_tracing()) { return false; }
            if (first.fault.happened && !driver::restore(now.cpu, saved.state)) { return false; }
            auto const msrs = now.cpu.msrs();
            if (msrs.ctl != plan.ctl || msrs.cr3_match != plan.cr3_match ||
                msrs.addr[0] != plan.addr[0] || msrs.addr[1] != plan.addr[1]) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("a fault in the handler of a PMI is reported, and the LVT is unmasked (PRG-122)") {
    CHECK_TWICE([](auto) {
        auto const pending = [](machine& cpu) {
            on(cpu);
            (void)cpu.write(reg::ia32_perf_global_status_set::address, uint64_t{1} << 55);
        };
        unsigned unmasked = 0;
        unsigned runs = 0;
        auto const handle = [&](auto& port) {
            ++runs;
            return driver::on_topa_pmi(
                port, [](driver::stopped_trace const&) { return driver::pmi_decision{}; },
                [&] { ++unmasked; });
        };
        world other;  // the first access, of another MSR, is the one that decides
        (void)other;
        test::faulting_port never{other.cpu, 1000};
        if (driver::on_topa_pmi(
                never, [](driver::stopped_trace const&) { return driver::pmi_decision{}; }, [] {})
                .outcome != driver::pmi_outcome::not_topa) {
            return false;
        }
        return survives_faults(pending, handle) && unmasked == runs;
    });
}

TEST_CASE("after a fault in the handler of a PMI, its recovery traces again, and reads once") {
    // PRG-122..125: at each access. If TraceEn was 0, nothing sets it.
    CHECK_TWICE([](auto value) {
        for (bool const was_tracing : {value(true), false}) {
            for (unsigned number = 0; number < 32; ++number) {
                world now;
                if (was_tracing) { on(now.cpu); }
                (void)now.cpu.write(reg::ia32_perf_global_status_set::address, uint64_t{1} << 55);
                test::faulting_port port{now.cpu, number};
                unsigned reads = 0;
                auto const drain = [&](driver::stopped_trace const&) {
                    ++reads;
                    return driver::pmi_decision{.has_new_output = true, .output = plan.output};
                };
                auto result = driver::on_topa_pmi(port, drain, [] {});
                auto what = driver::recovery_of(result);
                bool const is_at_end = !port.fault().happened;
                if (is_at_end != !result.fault.happened) { return false; }
                if (what == driver::pmi_recovery::retry) {
                    if (reads != 0) { return false; }
                    result = driver::on_topa_pmi(now.cpu, drain, [] {});
                    what = driver::recovery_of(result);
                } else if (what == driver::pmi_recovery::read_out) {
                    auto const stopped = driver::disable(now.cpu);
                    result.next = drain(stopped);
                    what = driver::pmi_recovery::restore;
                }
                if (what == driver::pmi_recovery::restore) {
                    auto again = plan;
                    driver::continue_after(result.next, again);
                    if (!driver::restore(now.cpu, again)) { return false; }
                }
                if (now.cpu.is_tracing() != was_tracing || reads != (was_tracing ? 1U : 0U)) {
                    return false;
                }
                if (is_at_end) { break; }
            }
        }
        return true;
    });
}

TEST_CASE("a recovery does not trace again what drain or Error has ended (PRG-041,122)") {
    CHECK_TWICE([](auto value) {
        driver::pmi_result faulted;
        faulted.fault.happened = value(true);
        faulted.trace = trace_state::disabled;
        faulted.ctl = plan.ctl;
        faulted.outcome = driver::pmi_outcome::handled;
        faulted.next.resume = true;
        bool const resumes = driver::recovery_of(faulted) == driver::pmi_recovery::restore;
        auto ended = faulted;
        ended.next.resume = false;
        auto broken = faulted;
        broken.status = reg::ia32_rtit_status{}.with(reg::ia32_rtit_status::Error{true});
        return resumes && driver::recovery_of(ended) == driver::pmi_recovery::none &&
               driver::recovery_of(broken) == driver::pmi_recovery::none;
    });
}

TEST_CASE("a fault while the MSRs are only read is reported, and nothing is written") {
    CHECK_TWICE([](auto) {
        auto const all = [] {
            auto with = plan;
            with.ctl = with.ctl.with(ia32_rtit_ctl::ADDR2_CFG{reg::addr_cfg::filter},
                                     ia32_rtit_ctl::ADDR3_CFG{reg::addr_cfg::filter});
            return with;
        }();
        auto const reset = [](machine& cpu) {
            on(cpu);
            cpu.warm_reset({}, 0xFFF0);
        };
        driver::ring const no_ring{};
        test::machine_memory memory;
        bool wrote = false;
        auto const reads = [&](auto&& prepare, auto&& procedure) {
            return survives_faults(prepare, [&](auto& port) {
                simulate::recording_port log{port};
                auto const result = procedure(log);
                for (auto const& one : log) {
                    wrote = wrote || one.what == simulate::logged_access::kind::write;
                }
                return result;
            });
        };
        auto const check = [](auto& port) { return driver::check_enabled(port, plan); };
        auto const warm = [](auto& port) {
            return driver::after_warm_reset(port, preset::skylake_x);
        };
        auto const cold = [&](auto& port) {
            return driver::after_cold_reset(port, no_ring, memory);
        };
        auto const uncovered = [&](auto& port) {
            auto to = all;
            return driver::read_uncovered(port, to);
        };
        return reads(on, check) && reads(reset, warm) && reads(off, cold) &&
               survives_uncovered(uncovered) && !wrote;
    });
}

TEST_CASE("a fault while ranges 2 and 3 are written names the access (PRG-110)") {
    CHECK_TWICE([](auto) {
        auto const write = [](auto& port) {
            auto with = plan;
            with.ctl = with.ctl.with(ia32_rtit_ctl::ADDR2_CFG{reg::addr_cfg::filter},
                                     ia32_rtit_ctl::ADDR3_CFG{reg::addr_cfg::filter});
            return driver::write_uncovered(port, with);
        };
        return survives_uncovered(write);
    });
}

TEST_CASE("a fault while detecting ends with an answer, and writes nothing (PRG-001)") {
    CHECK_TWICE([](auto) {
        for (unsigned number = 0; number < 16; ++number) {
            world now;
            simulate::recording_port log{now.cpu};
            test::faulting_port port{log, number};
            auto const found = driver::detect(now.cpu, port);
            for (auto const& one : log) {
                if (one.what == simulate::logged_access::kind::write) { return false; }
            }
            bool const of_ctl = port.fault().happened &&
                                port.fault().index == ia32_rtit_ctl::address;
            if (of_ctl != found.fault.happened || of_ctl == static_cast<bool>(found) ||
                !found.caps.has_pt()) {
                return false;
            }
            if (!port.fault().happened) { return number > 1; }
        }
        return false;
    });
}

TEST_CASE("after a fault of IA32_DEBUGCTL the trace may not be enabled (PRG-150)") {
    CHECK_TWICE([](auto value) {
        world now;
        test::faulting_port port{now.cpu, value(0U)};
        auto const excludes = driver::check_lbr(port, preset::broadwell);
        return excludes.fault.index == reg::ia32_debugctl::address && excludes.excludes &&
               !excludes.records && !excludes && port.count() == 1;
    });
}

TEST_CASE("an MSR that faults from some access on stops each procedure at once") {
    auto const all_stop = [] {
        auto const stops = [](auto&& prepare, auto&& procedure) {
            for (unsigned number = 0; number < 32; ++number) {
                world now;
                prepare(now.cpu);
                test::faulting_port port{now.cpu, number, true};
                auto const result = procedure(port);
                if (!port.fault().happened) { return number != 0; }
                if (!result.fault.happened || port.count() > number + 3) { return false; }
            }
            return false;
        };
        auto const handle = [](auto& port) {
            return driver::on_topa_pmi(
                port, [](driver::stopped_trace const&) { return driver::pmi_decision{}; }, [] {});
        };
        auto const pending = [](machine& cpu) {
            on(cpu);
            (void)cpu.write(reg::ia32_perf_global_status_set::address, uint64_t{1} << 55);
        };
        return stops(off, [](auto& port) { return driver::enable(port, plan); }) &&
               stops(on, [](auto& port) { return driver::disable(port); }) &&
               stops(on, [](auto& port) { return driver::flush(port, plan.ctl); }) &&
               stops(on, [](auto& port) { return driver::restart(port, plan); }) &&
               stops(on, [](auto& port) { return driver::save(port); }) &&
               stops(off, [](auto& port) { return driver::restore(port, plan); }) &&
               stops(pending, handle);
    };
    CHECK(all_stop());  // too many steps for a constant expression of clang
}
