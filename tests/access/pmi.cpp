// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/pmi.hpp>

#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::access;

namespace {

constexpr auto perfmon(uint32_t version) -> cpu::capabilities {
    cpu::capabilities of;
    of.leaf_0a_eax = {0x0730'0800 | version};
    return of;
}

/// A state with TraceEn and LBR on, and with the freeze bits `freeze` in DEBUGCTL.
constexpr auto tracing(uint64_t freeze) -> msr_state {
    return {.ctl = {0x2109}, .status = {5}, .debugctl = {0x0001 | freeze}};
}

}  // namespace

TEST_CASE("from version 4 on a PMI freezes by setting bits of GLOBAL_STATUS (REG-205)") {
    CHECK_TWICE([](auto value) {
        auto const status = [&](uint32_t perfmon_version, uint64_t freeze) {
            auto const after = deliver_pmi(perfmon(value(perfmon_version)), tracing(freeze));
            return after.clears_global_ctrl || after.state.debugctl != tracing(freeze).debugctl
                       ? ~uint64_t{0}
                       : after.state.perf_global_status.raw;
        };
        return status(4, 0) == 0 && status(4, 1U << 11) == 0x0400'0000'0000'0000 &&
               status(4, 1U << 12) == 0x0800'0000'0000'0000 &&
               status(5, 3U << 11) == 0x0C00'0000'0000'0000;
    });
}

TEST_CASE("before version 4 a PMI clears the enables (REG-205)") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](uint32_t perfmon_version, uint64_t freeze, bool clears,
                            uint64_t debugctl) {
            auto const after = deliver_pmi(perfmon(value(perfmon_version)), tracing(freeze));
            return after.clears_global_ctrl == clears && after.state.debugctl.raw == debugctl &&
                   after.state.perf_global_status.raw == 0;
        };
        return is(3, 0, false, 1) && is(2, 1U << 11, false, 0x800) &&
               is(3, 1U << 11, false, 0x800) && is(2, 1U << 12, true, 0x1001) &&
               is(3, 3U << 11, true, 0x1800) && is(1, 3U << 11, false, 0x1801) &&
               is(0, 3U << 11, false, 0x1801);
    });
}

TEST_CASE("a default delivered_pmi clears nothing") { CHECK(!delivered_pmi{}.clears_global_ctrl); }

TEST_CASE("Intel PT itself is never frozen (REG-205, OUT-092)") {
    CHECK_TWICE([](auto value) {
        auto const after = deliver_pmi(perfmon(value(4U)), tracing(3U << 11)).state;
        return after.ctl.raw == 0x2109 && after.status.raw == 5;
    });
}

TEST_CASE("a handler disables tracing, clears bit 55 and PendToPAPMI, and resumes (REG-195)") {
    CHECK_TWICE([](auto value) {
        msr_state state{.ctl = {0x0100'0000'0000'2109},
                        .status = {value(uint64_t{0x85})},
                        .perf_global_status = {0x0080'0000'0000'0000}};
        uint64_t const ctl = state.ctl.raw;
        auto const write = [&](uint32_t index, uint64_t number) {
            auto const done = effect_of_write(cpu::preset::P_ATM, state, index, number);
            state = done.state;
            return done && !done.pmi;
        };
        bool const pmi_pending =
            state.perf_global_status.get<reg::ia32_perf_global_status::Trace_ToPA_PMI>();
        return pmi_pending && write(0x570, ctl & ~uint64_t{1}) &&
               write(0x390, 0x0080'0000'0000'0000) && write(0x571, 0) && write(0x570, ctl) &&
               state.perf_global_status.raw == 0 && state.status.raw == 5 && state.ctl.raw == ctl;
    });
    CHECK_TWICE([](auto value) {  // if PendToPAPMI stays set, the PMI is raised again
        msr_state const state{.ctl = {0x0100'0000'0000'2108}, .status = {value(uint64_t{0x80})}};
        auto const again = effect_of_write(cpu::preset::P_ATM, state, 0x570, 0x0100'0000'0000'2109);
        return again.pmi && again.state.perf_global_status.raw == 0x0080'0000'0000'0000;
    });
}

TEST_CASE("an LVT entry is masked by a delivery until software clears Mask "
          "(OUT-084)") {
    CHECK_TWICE([](auto value) {
        return after_delivery(reg::ia32_x2apic_lvt_pmi{value(uint64_t{0xFE})}).raw == 0x1'00FE &&
               after_delivery(reg::apic_mmio_lvt_pmi{value(uint32_t{0x1'00FE})}).raw == 0x1'00FE;
    });
}

TEST_CASE("a PMI that arrives while TraceEn is 0 is left for its own context (OUT-087)") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](uint64_t ctl, uint64_t global_status) {
            return is_topa_pmi_for_now(
                {.ctl = {value(ctl)}, .status = {0x80}, .perf_global_status = {global_status}});
        };
        return is(0x2109, uint64_t{1} << 55) && !is(0x2108, uint64_t{1} << 55) && !is(0x2109, 0) &&
               !is(0x2109, ~(uint64_t{1} << 55));
    });
}
