// SPDX-License-Identifier: BSL-1.0
// Also tests/vmx/control_matrix.cpp.
#include <ptspec/vmx/controls.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/vmcs_checks.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using test::clear_ctl;
using test::conceal_entries;
using test::conceal_exits;
using test::conceal_nonroot;
using test::guest_physical;
using test::load_ctl;
using vmx::controls;

namespace {

constexpr reg::ia32_rtit_ctl off{0x2108};
constexpr reg::ia32_rtit_ctl on{0x2109};

}  // namespace

TEST_CASE(
    "VM entry judges only the controls of Intel PT, and first whether VMX operation allows them "
    "(REG-132, REG-135)") {
    // The other rules of VM entry, for all combinations of these controls: control_matrix.cpp.
    CHECK_TWICE([](auto value) {
        controls const others{.secondary = {value(~(conceal_nonroot | guest_physical))},
                              .vm_exit = {~(conceal_exits | clear_ctl)},
                              .vm_entry = {~(conceal_entries | load_ctl)},
                              .enable_ept = true};
        return vmx::broken_rule(preset::P_BDW, others, on) == rule::none &&
               vmx::broken_rule(preset::P_BDW, {}, off) == rule::none &&
               vmx::broken_rule(preset::P_BDW, {.vm_exit = {value(conceal_exits)}}, off) ==
                   rule::REG_132;
    });
    CHECK_TWICE([](auto value) {  // also those that a capability MSR requires
        auto const secondary = ~(conceal_nonroot | guest_physical);
        auto of = preset::P_FUT;
        of.vmx_procbased_ctls2 = {of.vmx_procbased_ctls2.raw | value(secondary)};
        return vmx::broken_rule(of, {}, off) == rule::none &&
               vmx::broken_rule(of, {.secondary = {secondary}}, off) == rule::none;
    });
}

TEST_CASE("a guest with guest-physical output gets all three controls of Intel PT, or none "
          "(REG-125..128)") {
    constexpr auto ept = vmx::guest_output::guest_physical;
    CHECK_TWICE([](auto value) {
        controls const before{{value(uint32_t{4})}, {1}, {2}, true};
        controls const given = vmx::with_guest_pt(preset::ice_lake_u, before, ept);
        // VMX is concealed: else PSB+ has the address of the VMCS.
        controls const concealed{
            {4 | conceal_nonroot}, {1 | conceal_exits}, {2 | conceal_entries}, true};
        return given == controls{{4 | conceal_nonroot | guest_physical},
                                 {1 | conceal_exits | clear_ctl},
                                 {2 | conceal_entries | load_ctl},
                                 true} &&
               vmx::broken_rule(preset::ice_lake_u, given, off) == rule::none &&
               vmx::with_guest_pt(preset::skylake_x, given, ept) == concealed &&
               vmx::with_guest_pt(preset::P_BDW, given, ept) == concealed &&
               vmx::with_guest_pt(preset::skylake_x, before, ept) == before;
    });
    CHECK_TWICE([=](auto value) {
        return vmx::with_guest_pt(preset::ice_lake_u, {.enable_ept = value(false)}, ept) ==
               controls{};
    });
}

TEST_CASE("with shadow tables output is never guest-physical, and CTL is loaded by the controls "
          "that exist (REG-125..128, PRG-180, PRG-184)") {
    constexpr auto shadow = vmx::guest_output::shadow;
    CHECK_TWICE([](auto value) {
        controls const before{{value(uint32_t{4})}, {1}, {2}, true};
        controls const without_ept{{4}, {1}, {2}, false};
        auto const with = [&](cpu::capabilities const& caps, controls const& from) {
            auto const set = vmx::with_guest_pt(caps, from, shadow);
            return vmx::broken_rule(caps, set, off) == rule::none &&
                           guest_output_of(set) == shadow &&
                           set.secondary.raw == (4 | conceal_nonroot)
                       ? set.vm_exit.raw
                       : 0;
        };
        return with(preset::ice_lake_u, before) == (1 | conceal_exits | clear_ctl) &&
               with(preset::ice_lake_u, without_ept) == (1 | conceal_exits | clear_ctl) &&
               with(preset::skylake_x, before) == (1 | conceal_exits) &&
               vmx::with_guest_pt(preset::P_BDW, before, shadow) == before;
    });
}

TEST_CASE("hiding Intel PT clears CPUID.07H.0:EBX[25], not bit 26 (REG-134, REG-234)") {
    CHECK_TWICE([](auto value) {
        return vmx::without_pt({value(0xFFFF'FFFFU)}).raw == 0xFDFF'FFFF &&
               vmx::without_pt({value(0U)}).raw == 0;
    });
}

TEST_CASE("the guest-state field for CTL exists with the load or the clear control (REG-127)") {
    CHECK_TWICE([](auto value) {
        auto only_load = preset::skylake_x;
        only_load.vmx_entry_ctls = {only_load.vmx_entry_ctls.raw | value(uint64_t{1} << 50)};
        auto only_clear = preset::skylake_x;
        only_clear.vmx_exit_ctls = {only_clear.vmx_exit_ctls.raw | value(uint64_t{1} << 57)};
        return vmx::has_guest_ctl_field(preset::ice_lake_u) &&
               !vmx::has_guest_ctl_field(preset::skylake_x) &&
               !vmx::has_guest_ctl_field(preset::P_BDW) && vmx::has_guest_ctl_field(only_load) &&
               vmx::has_guest_ctl_field(only_clear);
    });
}

TEST_CASE("EPTP switching exits while a guest with guest-physical output traces (PRG-183)") {
    CHECK_TWICE([](auto value) {
        controls const translated{.secondary = {value(guest_physical)}};
        return vmx::eptp_switching_exits(translated, on) &&
               !vmx::eptp_switching_exits(translated, off) && !vmx::eptp_switching_exits({}, on);
    });
}
