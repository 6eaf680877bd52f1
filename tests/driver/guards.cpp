// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/guards.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>

using namespace ptspec;
namespace preset = cpu::preset;

namespace {

/// A processor of a model with the features of Skylake-X.
constexpr auto of_model(uint32_t signature) -> cpu::capabilities {
    auto caps = preset::skylake_x;
    caps.leaf_01_eax = {signature};
    return caps;
}

}  // namespace

TEST_CASE("branch records conflict with a trace on six models only (PRG-150..152)") {
    CHECK_TWICE([](auto value) {
        // 06_3D, 06_47, 06_4E, 06_4F, 06_56, 06_5E.
        for (uint32_t const signature :
             {0x306D4U, 0x40671U, 0x406E3U, 0x406F1U, 0x50662U, 0x506E3U}) {
            simulate::msr_model<1> lbr{{{0x1D9, value(uint64_t{1})}}};
            simulate::msr_model<1> bts{{{0x1D9, 0x80}}};
            simulate::msr_model<1> none{{{0x1D9, 0x1800}}};
            if (!driver::check_lbr(lbr, of_model(signature)).conflicts() ||
                driver::check_lbr(lbr, of_model(signature)) ||
                driver::check_lbr(bts, of_model(signature)) ||
                !driver::check_lbr(none, of_model(signature)) ||
                !driver::check_lbr(none, of_model(signature)).excludes) {
                return false;
            }
        }
        simulate::msr_model<1> lbr{{{0x1D9, 1}}};
        simulate::recording_port log{lbr};
        return driver::check_lbr(log, of_model(0x50654)) && log.count() == 0;
    });
    CHECK_TWICE([](auto value) {
        simulate::msr_model<1> other{{{value(0x570U), 0}}};
        auto const result = driver::check_lbr(other, of_model(0x506E3));
        return result.fault.index == 0x1D9 && !result;
    });
}

TEST_CASE("PC-40: trace in the page of the APIC, and in SMRR memory, is refused (PRG-095,096)") {
    CHECK_TWICE([](auto value) {
        topa::output_hazards hazards;
        hazards.apic = {value(uint64_t{0xFEE0'0900})};
        hazards.restricted.smrr_physbase = {0x8000'0006};
        hazards.restricted.smrr_physmask = {0xFF80'0800};
        using driver::restricted_check;
        return restricted_check(hazards, 0xFEE0'0000, 4096) == rule::OUT_113 &&
               restricted_check(hazards, 0xFEDF'F000, 0x2000) == rule::OUT_113 &&
               restricted_check(hazards, 0xFEE0'1000, 4096) == rule::none &&
               restricted_check(hazards, 0x8000'0000, 4096) == rule::OUT_111 &&
               restricted_check(hazards, 0x7FFF'F000, 0x1001) == rule::OUT_111 &&
               restricted_check(hazards, 0x7FFF'F000, 0x1000) == rule::none &&
               restricted_check(hazards, 0x8080'0000, 1) == rule::none &&
               restricted_check(hazards, 0x8000'0000, 0) == rule::none;
    });
}
