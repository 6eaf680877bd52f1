// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/resets.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::access;
namespace preset = ptspec::cpu::preset;

// The accesses that software in SMM has to make, in order.

namespace {

constexpr msr_state tracing{.ctl = {0x210D}, .status = {0x0000'0040'0000'0007}};

/// Executes WRMSRs in order; false when one faults.
constexpr auto write_all(msr_state& state, auto... writes) -> bool {
    auto const one = [&](uint32_t index, uint64_t value) {
        auto const done = effect_of_write(preset::P_ATM, state, index, value);
        state = done.state;
        return static_cast<bool>(done);
    };
    return (one(writes.index, writes.value) && ...);
}

struct wrmsr {
    uint32_t index;
    uint64_t value;
};

}  // namespace

TEST_CASE("SMM may trace itself, and has to restore the MSRs before RSM "
          "(REG-104, PRG-200)") {
    CHECK_TWICE([](auto value) {
        auto state = smi(tracing);
        bool const traced = write_all(state, wrmsr{0x571, 0}, wrmsr{0x560, value(0x9000U)},
                                      wrmsr{0x570, 0x2105}) &&
                            state.status.raw == 7;
        bool const too_early = rsm(preset::P_ATM, state).outcome == rsm_outcome::shutdown;
        bool const restored = write_all(state, wrmsr{0x570, 0}, wrmsr{0x571, 0x0000'0040'0000'0000},
                                        wrmsr{0x560, 0}, wrmsr{0x570, 0x210C});
        auto const back = rsm(preset::P_ATM, state, {.cpl = 0});
        return traced && too_early && restored && back && back.effect.state == tracing;
    });
}

TEST_CASE("tracing is off when SMI and RSM change CR3, so no packet reports it (REG-105)") {
    CHECK_TWICE([](auto value) {
        auto const in_smm = smi(value(tracing));
        return !trigger_en(in_smm.ctl, in_smm.status) &&
               !in_smm.status.template get<ia32_rtit_status::TriggerEn>() &&
               after_branch(preset::P_SKL, in_smm, {.cr3 = 0x5000}) == in_smm;
    });
}

TEST_CASE("an SMI under dual-monitor treatment neither saves nor clears TraceEn "
          "(REG-106, PRG-202)") {
    CHECK_TWICE([](auto value) {
        return smi(value(tracing), smm_treatment::dual_monitor) == tracing &&
               smi(value(tracing), smm_treatment::by_default) != tracing;
    });
}
