// SPDX-License-Identifier: BSL-1.0
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

constexpr auto count_of(cpu::capabilities const& of, controls const& set, reg::ia32_rtit_ctl host)
    -> unsigned {
    unsigned count = 0;
    vmx::find_broken_rules(of, set, host, [&](rule) { ++count; });
    return count;
}

}  // namespace

TEST_CASE("VM entry fails on each control where VMX operation does not allow Intel PT (REG-132)") {
    CHECK_TWICE([](auto value) {
        auto const fails = [&](controls const& set) {
            return vmx::broken_rule(preset::P_BDW, set, off) == rule::REG_132 &&
                   vmx::broken_rule(preset::ice_lake_u, set, off) == rule::none;
        };
        return fails({.secondary = {value(conceal_nonroot)}}) &&
               fails({.vm_exit = {value(conceal_exits)}}) &&
               fails({.vm_exit = {value(clear_ctl)}}) &&
               fails({.vm_entry = {value(conceal_entries)}}) &&
               fails({.vm_entry = {value(load_ctl)}});
    });
    CHECK_TWICE([](auto value) {  // controls of other features are ignored
        controls const others{.secondary = {value(~(conceal_nonroot | guest_physical))},
                              .vm_exit = {~(conceal_exits | clear_ctl)},
                              .vm_entry = {~(conceal_entries | load_ctl)},
                              .enable_ept = true};
        return vmx::broken_rule(preset::P_BDW, others, on) == rule::none &&
               vmx::broken_rule(preset::P_BDW, {}, off) == rule::none;
    });
}

TEST_CASE("guest-physical output needs EPT, and the controls that load and clear CTL (REG-129)") {
    CHECK_TWICE([](auto value) {
        auto const rule_for = [&](uint32_t exit, uint32_t entry, bool ept) {
            return vmx::broken_rule(preset::ice_lake_u,
                                    {{value(guest_physical)}, {exit}, {entry}, ept}, off);
        };
        return rule_for(clear_ctl, load_ctl, true) == rule::none &&
               rule_for(0, load_ctl, true) == rule::REG_129 &&
               rule_for(clear_ctl, 0, true) == rule::REG_129 &&
               rule_for(clear_ctl, load_ctl, false) == rule::REG_129;
    });
}

TEST_CASE("VM entry cannot load CTL while the host's TraceEn is 1 (REG-130)") {
    CHECK_TWICE([](auto value) {
        controls const load{.vm_entry = {value(load_ctl)}};
        controls const other{.vm_entry = {value(conceal_entries)}};
        return vmx::broken_rule(preset::ice_lake_u, load, on) == rule::REG_130 &&
               vmx::broken_rule(preset::ice_lake_u, load, off) == rule::none &&
               vmx::broken_rule(preset::ice_lake_u, other, on) == rule::none;
    });
    CHECK_TWICE([](auto value) {
        return count_of(preset::P_BDW, {{value(guest_physical)}, {0}, {load_ctl}, false}, on) == 4;
    });
}

TEST_CASE("VM entry fails on a control that its capability MSR does not allow to be 1 (REG-135)") {
    CHECK_TWICE([](auto value) {
        auto const rule_for = [&](controls const& set) {
            return vmx::broken_rule(preset::skylake_x, set, off);
        };
        return rule_for({.secondary = {value(conceal_nonroot)}}) == rule::none &&
               rule_for({.vm_exit = {value(conceal_exits)}}) == rule::none &&
               rule_for({.vm_entry = {value(conceal_entries)}}) == rule::none &&
               rule_for({.vm_exit = {value(clear_ctl)}}) == rule::REG_135 &&
               rule_for({.vm_entry = {value(load_ctl)}}) == rule::REG_135 &&
               rule_for({{value(guest_physical)}, {clear_ctl}, {load_ctl}, true}) == rule::REG_135;
    });
    CHECK_TWICE([](auto value) {
        // Of the capability MSRs only 485H was read.
        auto unread = preset::P_SKL;
        unread.vmx_procbased_ctls2 = {};
        return vmx::broken_rule(preset::P_SKL, {.secondary = {value(conceal_nonroot)}}, off) ==
                   rule::none &&
               vmx::broken_rule(unread, {.secondary = {value(conceal_nonroot)}}, off) ==
                   rule::REG_135;
    });
}

TEST_CASE("VM entry fails on a 0 control that its capability MSR requires (REG-135)") {
    CHECK_TWICE([](auto value) {
        auto of = preset::ice_lake_u;
        of.vmx_exit_ctls = {of.vmx_exit_ctls.raw | value(clear_ctl)};
        auto const with = [&](uint32_t exit) {
            return vmx::broken_rule(of, {.vm_exit = {exit}}, off);
        };
        return with(0) == rule::REG_135 && with(conceal_exits) == rule::REG_135 &&
               with(clear_ctl) == rule::none;
    });
    CHECK_TWICE([](auto value) {  // controls of other features are ignored
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
