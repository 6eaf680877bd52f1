// SPDX-License-Identifier: BSL-1.0
#include <ptspec/simulate/capabilities_cpuid.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

#include <string_view>

using namespace ptspec;
namespace preset = cpu::preset;

static_assert(cpuid_port<simulate::capabilities_cpuid>);

TEST_CASE("CPUID enumerates the given capabilities (PRG-001)") {
    for (auto const& one : preset::all) {
        simulate::capabilities_cpuid cpuid{one.value};
        auto const found = cpu::detect(cpuid);
        INFO(std::string_view{one.name.data(), one.name.size()});
        CHECK(found.leaf_14_0_ebx ==
              (one.value.has_pt() ? one.value.leaf_14_0_ebx : reg::cpuid_14h_0_ebx{}));
        CHECK(found.leaf_01_eax == one.value.leaf_01_eax);
        CHECK(found.leaf_15_ebx == one.value.leaf_15_ebx);
        CHECK(found.leaf_80000008_eax == one.value.leaf_80000008_eax);
    }
    CHECK_TWICE([](auto value) {
        simulate::capabilities_cpuid cpuid{value(preset::P_FUT)};
        return cpu::detect(cpuid).leaf_14_1_eax == preset::P_FUT.leaf_14_1_eax &&
               cpuid.query(0x0A, 0).eax == preset::P_FUT.leaf_0a_eax.raw &&
               cpuid.query(0x14, 2) == cpuid_registers{} &&
               cpuid.query(0x0D, 2) == cpuid_registers{} &&
               cpuid.query(0x0D, 0) == cpuid_registers{} &&
               cpuid.query(0x0D, 1).eax == preset::P_FUT.leaf_0d_1_eax.raw &&
               cpuid.query(0x0D, 1).ecx == preset::P_FUT.leaf_0d_1_ecx.raw &&
               cpuid.query(0x0D, 8).eax == preset::P_FUT.leaf_0d_8_eax.raw &&
               cpuid.query(0x7, 1) == cpuid_registers{} && cpuid.query(0x40, 0).eax == 0;
    });
}
