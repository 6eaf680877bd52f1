// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/usage.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/vmcs_checks.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using test::clear_ctl;
using test::conceal_entries;
using test::conceal_exits;
using test::conceal_nonroot;
using test::found_in;
using test::guest_physical;
using test::load_ctl;
using test::with_ctl;
using vmx::controls;
using vmx::step;

namespace {

constexpr reg::ia32_rtit_ctl off{0x2108};
constexpr reg::ia32_rtit_ctl on{0x2109};

constexpr controls ept_and_others{{2}, {4}, {8}, true};

constexpr auto has_lists(vmx::usage const& made, size_t entry, size_t store, size_t exit) -> bool {
    return made.entry_load.count == entry && made.exit_store.count == store &&
           made.exit_load.count == exit;
}

/// True when `made` is for this processor and passes every check from a state of the host.
constexpr auto works(cpu::capabilities const& of, vmx::usage const& made,
                     access::msr_state const& host) -> bool {
    return made && found_in(of, made.fields(), host).count == 0;
}

}  // namespace

TEST_CASE("usage models: system wide conceals nothing and changes no TraceEn (PRG-163, PRG-164)") {
    CHECK_TWICE([](auto value) {
        controls const before{{value(conceal_nonroot | guest_physical)},
                              {conceal_exits | clear_ctl},
                              {conceal_entries | load_ctl},
                              true};
        auto const made = vmx::system_wide(preset::ice_lake_u, before);
        return made.set == controls{.enable_ept = true} && has_lists(made, 0, 0, 0) &&
               works(preset::ice_lake_u, made, with_ctl(on)) &&
               works(preset::skylake_x, vmx::system_wide(preset::skylake_x, before),
                     with_ctl(on)) &&
               vmx::system_wide(preset::P_BDW, before).broken == rule::REG_121;
    });
}

TEST_CASE("usage models: VMM only and VM only conceal all, and their lists change TraceEn "
          "(PRG-163, PRG-165)") {
    CHECK_TWICE([](auto value) {
        controls const concealed{
            {2 | conceal_nonroot}, {4 | conceal_exits}, {8 | conceal_entries}, true};
        reg::ia32_rtit_ctl const ctl{value(uint64_t{0x2109})};
        cpu::capabilities const* const parts[] = {&preset::ice_lake_u, &preset::skylake_x};
        for (auto const* of : parts) {
            auto const vmm = vmx::vmm_only(*of, ept_and_others, ctl);
            auto const vm = vmx::vm_only(*of, ept_and_others, ctl);
            vmx::msr_list_entry const stop{0x570, 0, 0x2108};
            vmx::msr_list_entry const go{0x570, 0, 0x2109};
            if (vmm.set != concealed || vm.set != concealed || !has_lists(vmm, 1, 0, 1) ||
                !has_lists(vm, 1, 0, 1) || vmm.entry_load.entries[0] != stop ||
                vmm.exit_load.entries[0] != go || vm.entry_load.entries[0] != go ||
                vm.exit_load.entries[0] != stop || !works(*of, vmm, with_ctl(on)) ||
                !works(*of, vm, with_ctl(off))) {
                return false;
            }
            auto const in_guest = vmx::vm_entry(*of, vmm.fields(), with_ctl(on));
            auto const in_host = vmx::vm_exit(*of, vmm.fields(), in_guest.state);
            auto const traced = vmx::vm_entry(*of, vm.fields(), with_ctl(off));
            auto const untraced = vmx::vm_exit(*of, vm.fields(), traced.state);
            if (in_guest.state.ctl != off || in_host.state.ctl != on || traced.state.ctl != on ||
                untraced.state.ctl != off) {
                return false;
            }
        }
        return vmx::vmm_only(preset::P_BDW, {}, ctl).broken == rule::REG_121 &&
               vmx::vm_only(preset::P_BDW, {}, ctl).broken == rule::REG_121;
    });
    CHECK_TWICE([](auto value) {  // a virtual processor without the controls that conceal
        auto virtual_one = preset::skylake_x;
        virtual_one.vmx_exit_ctls = {value(uint64_t{0x0003'6DFF})};
        return vmx::vmm_only(virtual_one, {}, on).broken == rule::REG_135 &&
               vmx::system_wide(virtual_one, {}).broken == rule::none;
    });
}

TEST_CASE("usage models: a PT-aware guest gets the three controls, or lists with its CTL "
          "(PRG-163, PRG-165, PRG-166, PRG-170)") {
    CHECK_TWICE([](auto value) {
        auto const made = vmx::pt_aware_guest(preset::ice_lake_u, ept_and_others,
                                              vmx::guest_output::guest_physical, {value(on.raw)});
        auto const entered = vmx::vm_entry(preset::ice_lake_u, made.fields(), with_ctl(off));
        return made.set == controls{{2 | conceal_nonroot | guest_physical},
                                    {4 | conceal_exits | clear_ctl},
                                    {8 | conceal_entries | load_ctl},
                                    true} &&
               made.guest_ctl == on && has_lists(made, 0, 0, 0) &&
               works(preset::ice_lake_u, made, with_ctl(off)) && entered.state.ctl == on &&
               found_in(preset::ice_lake_u, made.fields(), with_ctl(on))
                   .is({rule::REG_130, step::control_checks});
    });
    CHECK_TWICE([](auto value) {
        auto const& of = preset::skylake_x;
        auto const made = vmx::pt_aware_guest(of, ept_and_others, vmx::guest_output::shadow,
                                              {value(on.raw)});
        auto const entered = vmx::vm_entry(of, made.fields(), with_ctl(off));
        auto const left = vmx::vm_exit(of, made.fields(), entered.state);
        return made.set.secondary.raw == (2 | conceal_nonroot) &&
               made.set.vm_exit.raw == (4 | conceal_exits) &&
               made.set.vm_entry.raw == (8 | conceal_entries) && has_lists(made, 1, 1, 1) &&
               made.guest_ctl.raw == 0 &&
               made.entry_load.entries[0] == vmx::msr_list_entry{0x570, 0, on.raw} &&
               made.exit_store.entries[0] == vmx::msr_list_entry{0x570, 0, 0} &&
               made.exit_load.entries[0] == vmx::msr_list_entry{0x570, 0, 0} &&
               works(of, made, with_ctl(off)) && entered.state.ctl == on && left.state.ctl.raw == 0;
    });
    CHECK_TWICE([](auto value) {  // shadow tables on a processor with all controls
        controls const no_ept{{2}, {4}, {8}, value(false)};
        controls const sets[] = {ept_and_others, no_ept};
        for (auto const& set : sets) {
            auto const made = vmx::pt_aware_guest(preset::ice_lake_u, set,
                                                  vmx::guest_output::shadow, on);
            if (!made || made.set.secondary.raw != (2 | conceal_nonroot) ||
                made.set.vm_exit.raw != (4 | conceal_exits | clear_ctl) || made.guest_ctl != on ||
                !has_lists(made, 0, 0, 0) || !works(preset::ice_lake_u, made, with_ctl(off))) {
                return false;
            }
        }
        // Guest-physical output is not replaced by another.
        constexpr auto ept = vmx::guest_output::guest_physical;
        return vmx::pt_aware_guest(preset::ice_lake_u, no_ept, ept, on).broken == rule::PRG_170 &&
               vmx::pt_aware_guest(preset::skylake_x, ept_and_others, ept, on).broken ==
                   rule::PRG_170;
    });
    CHECK_TWICE([](auto value) {  // a guest that does not trace
        reg::ia32_rtit_ctl const idle{value(uint64_t{0x2108})};
        auto const made = vmx::pt_aware_guest(preset::skylake_x, {}, vmx::guest_output::shadow,
                                              idle);
        return made.entry_load.entries[0] == vmx::msr_list_entry{0x570, 0, 0x2108} &&
               works(preset::skylake_x, made, {}) &&
               vmx::pt_aware_guest(preset::P_BDW, {}, vmx::guest_output::shadow, idle).broken ==
                   rule::REG_121;
    });
}
