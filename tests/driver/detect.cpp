// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>
#include <support/world.hpp>

#include <string>

using namespace ptspec;
using driver::trace_state;
namespace preset = cpu::preset;

namespace {

constexpr cpu::capabilities without_pt(cpu::capabilities of) {
    of.leaf_07_0_ebx = {};
    return of;
}

using world = test::world_of<simulate::memory_model<64>>;

}  // namespace

TEST_CASE("PC-01: without Intel PT no MSR is accessed, and RDMSR of 570 faults (PRG-001)") {
    CHECK_TWICE([](auto value) {
        world now{value(without_pt(preset::skylake_x))};
        simulate::recording_port log{now.cpu};
        auto const found = driver::detect(now.cpu, log);
        bool const silent = log.count() == 0;
        return !found && !found.is_in_use() && found.trace == trace_state::disabled && silent &&
               !now.cpu.read(0x570) && now.cpu.fault().broken == rule::REG_001;
    });
}

TEST_CASE("the capabilities of every preset are detected, and TraceEn is read (PRG-001,030)") {
    for (auto const& one : preset::all) {
        world now{one.value};
        auto const found = driver::detect(now.cpu, now.cpu);
        INFO(std::string{one.name.data(), one.name.size()});
        if (!one.value.has_pt()) {
            CHECK(!found);
            continue;
        }
        auto expected = one.value;
        if (!expected.leaf_01_ecx.get<reg::cpuid_01h_ecx::PDCM>()) {
            expected.perf_capabilities = {};
        }
        if (!expected.leaf_01_ecx.get<reg::cpuid_01h_ecx::VMX>()) {
            expected.vmx_misc = {};
            expected.vmx_procbased_ctls2 = {};
            expected.vmx_exit_ctls = {};
            expected.vmx_entry_ctls = {};
        }
        CHECK((found && found.trace == trace_state::disabled && found.ctl.raw == 0));
        CHECK(found.caps.leaf_14_0_ebx == expected.leaf_14_0_ebx);
        CHECK(found.caps.leaf_14_1_ebx == expected.leaf_14_1_ebx);
        CHECK(found.caps.platform_info == expected.platform_info);
        CHECK(found.caps.vmx_misc == expected.vmx_misc);
    }
}

TEST_CASE("PC-38: a trace of another agent is reported, and no MSR is written (PRG-260)") {
    CHECK_TWICE([](auto value) {
        world now{preset::skylake_x};
        (void)now.cpu.write(0x560, 0x1000);
        (void)now.cpu.write(0x570, value(uint64_t{0x2501}));
        simulate::recording_port log{now.cpu};
        auto const found = driver::detect(now.cpu, log);
        for (auto const& one : log) {
            if (one.what == simulate::logged_access::kind::write) { return false; }
        }
        return !found && found.is_in_use() && found.ctl.raw == 0x2501 && found.caps.has_pt();
    });
}

TEST_CASE("a CTL that cannot be read is reported (PRG-001)") {
    CHECK_TWICE([](auto value) {
        world now{preset::skylake_x};
        simulate::msr_model<1> msrs{{{value(0xCEU), 0}}};
        auto const found = driver::detect(now.cpu, msrs);
        return !found && found.fault == driver::msr_fault{true, false, 0x570, 0, 0} &&
               found.ctl.raw == 0 && found.trace == trace_state::unknown && !found.is_in_use() &&
               found.caps.has_pt();
    });
}

TEST_CASE("the common capabilities of hybrid cores, and what differs (REG-164..166, PRG-005)") {
    CHECK_TWICE([](auto value) {
        cpu::capabilities const cores[] = {value(preset::alder_lake_p), preset::alder_lake_e};
        auto const both = driver::common(cores, 2);
        auto const one = driver::common(cores, 1);
        cpu::capabilities const twins[] = {preset::skylake_x, preset::skylake_x};
        auto const same = driver::common(twins, 2);
        cpu::capabilities const models[] = {preset::skylake_x, preset::broadwell};
        auto const mixed = driver::common(models, 2);
        cpu::capabilities const* const no_cores = nullptr;
        return !both.all_same && !both.same_ip_payload && both.differing.empty() &&
               cpu::is_superset(cores[0], both.value) && cpu::is_superset(cores[1], both.value) &&
               !mixed.all_same && mixed.same_ip_payload &&
               mixed.differing.has(cpu::aspect::features) &&
               mixed.differing.has(cpu::aspect::address_ranges) &&
               mixed.value.leaf_14_0_ebx == preset::broadwell.leaf_14_0_ebx && one.all_same &&
               one.differing.empty() && same.all_same && same.differing.empty() &&
               same.value == preset::skylake_x &&
               driver::common(no_cores, 0).value.has_pt() == false;
    });
}

TEST_CASE("only what differs is reported as differing (REG-164)") {
    CHECK_TWICE([](auto value) {
        auto small = preset::skylake_x;
        small.leaf_80000008_eax = {value(uint32_t{39 | 48 << 8})};
        cpu::capabilities const cores[] = {preset::skylake_x, small};
        auto const both = driver::common(cores, 2);
        return both.differing.has(cpu::aspect::max_phys_addr) &&
               !both.differing.has(cpu::aspect::features) &&
               !both.differing.has(cpu::aspect::outputs) && !both.all_same && both.same_ip_payload;
    });
}
