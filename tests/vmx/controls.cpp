// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/controls.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using vmx::controls;
using vmx::step;

namespace {

constexpr uint32_t conceal_nonroot = 1U << 19;
constexpr uint32_t guest_physical = 1U << 24;
constexpr uint32_t conceal_exits = 1U << 24;
constexpr uint32_t clear_ctl = 1U << 25;
constexpr uint32_t conceal_entries = 1U << 17;
constexpr uint32_t load_ctl = 1U << 18;

constexpr reg::ia32_rtit_ctl off{0x2108};
constexpr reg::ia32_rtit_ctl on{0x2109};

constexpr auto count_of(cpu::capabilities const& of, controls const& set, reg::ia32_rtit_ctl host)
    -> unsigned {
    unsigned count = 0;
    vmx::find_broken_rules(of, set, host, [&](rule) { ++count; });
    return count;
}

/// The findings of `vmx::check`, in order.
struct findings {
    vmx::violation all[8] = {};
    unsigned count = 0;

    [[nodiscard]] constexpr auto is(vmx::violation const& only) const -> bool {
        return count == 1 && all[0] == only;
    }
};

constexpr auto found_in(cpu::capabilities const& of, vmx::vmcs_fields const& fields,
                        access::msr_state const& host = {}, access::policy const& how = {})
    -> findings {
    findings found;
    vmx::check(
        of, fields, host,
        [&](vmx::violation const& one) {
            if (found.count < 8) { found.all[found.count] = one; }
            ++found.count;
        },
        how);
    return found;
}

constexpr auto with_ctl(reg::ia32_rtit_ctl ctl) -> access::msr_state {
    access::msr_state now;
    now.ctl = ctl;
    return now;
}

/// The MSRs of a trace into a ToPA table, in the order of PRG-165 for a start.
constexpr vmx::msr_list_entry start[] = {
    {0x571, 0, 0},      {0x560, 0, 0x1000}, {0x561, 0, 0x7F},
    {0x572, 0, 0x5000}, {0x580, 0, 0x2000}, {0x581, 0, 0x2FFF},
    {0x582, 0, 0},      {0x583, 0, 0xFFF},  {0x570, 0, 0x2109},
};
constexpr size_t start_count = 9;

/// One entry of a list at a place, with CTL = 2109 in its field if `load` is 1.
template <size_t Count>
constexpr auto entering(vmx::msr_list_entry const (&list)[Count]) -> vmx::vmcs_fields {
    return {.entry_load = {list, Count}};
}
template <size_t Count>
constexpr auto leaving(vmx::msr_list_entry const (&list)[Count]) -> vmx::vmcs_fields {
    return {.exit_load = {list, Count}};
}
template <size_t Count>
constexpr auto storing(vmx::msr_list_entry const (&list)[Count]) -> vmx::vmcs_fields {
    return {.exit_store = {list, Count}};
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

// ------------------------------------------------------------------------------------ guest CTL

TEST_CASE("VM entry fails on a CTL of the guest that the processor cannot hold "
          "(REG-028, REG-131, PRG-161, PRG-162)") {
    CHECK_TWICE([](auto value) {
        // 14H.0:EBX 0FH, ECX 7, two ranges: no PTW, power events, fabric, Event Trace, DisTNT,
        // PMI preservation, ADDR2 and ADDR3; ADDRn_CFG has two bits. 14H.1 lists MTCFreq 0, 3, 6
        // and 9, PSBFreq 0 to 5, CycThresh 0 to 13: bits 17:14 and 27 alone are other encodings.
        auto skylake = preset::P_SKL;
        skylake.vmx_entry_ctls = {skylake.vmx_entry_ctls.raw | uint64_t{load_ctl} << 32};
        constexpr uint64_t writable = 0x33'0778'2F8F;
        for (unsigned bit = 0; bit < 64; ++bit) {
            uint64_t const one = uint64_t{1} << bit;
            vmx::vmcs_fields const load{.set = {.vm_entry = {load_ctl}}, .guest_ctl = {value(one)}};
            vmx::vmcs_fields const no_load{.guest_ctl = {value(one)}};
            auto const found = found_in(skylake, load);
            bool const right = (writable & one) != 0
                                   ? found.count == 0
                                   : found.is({rule::REG_131, step::guest_state_checks});
            if (!right || found_in(skylake, no_load).count != 0) { return false; }
            auto const entered = vmx::vm_entry(skylake, load, {});
            if (entered.violated != (found.count == 0 ? vmx::violation{} : found.all[0])) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("VM entry loads CTL from the guest's field, VM exit clears it (REG-125, REG-126, "
          "PRG-167)") {
    CHECK_TWICE([](auto value) {
        vmx::vmcs_fields const both{.set = {{0}, {clear_ctl}, {load_ctl}},
                                    .guest_ctl = {value(uint64_t{0x210D})}};
        access::processor_context const user{.cpl = 3, .ip = 0x1000};
        auto const entered = vmx::vm_entry(preset::ice_lake_u, both, with_ctl(off), user);
        auto const left = vmx::vm_exit(preset::ice_lake_u, both, entered.state);
        vmx::vmcs_fields const neither{.guest_ctl = {0x210D}};
        auto const kept = vmx::vm_entry(preset::ice_lake_u, neither, with_ctl(on));
        auto const still = vmx::vm_exit(preset::ice_lake_u, neither, kept.state);
        return entered && entered.state.ctl.raw == 0x210D && entered.state.in_vmx_operation &&
               (entered.state.status.raw & 7) == 7 &&  // User is 1, so ContextEn is 1
               left && left.state.ctl.raw == 0 && (left.state.status.raw & 4) == 0 && kept &&
               kept.state.ctl == on && still && still.state.ctl == on;
    });
    CHECK_TWICE([](auto value) {  // a failure of the control checks changes nothing
        vmx::vmcs_fields const load{.set = {.vm_entry = {load_ctl}}, .guest_ctl = {0x2108}};
        auto const now = with_ctl({value(uint64_t{0x2109})});
        auto const failed = vmx::vm_entry(preset::ice_lake_u, load, now);
        auto const bad = vmx::vm_entry(
            preset::ice_lake_u, {.set = load.set, .guest_ctl = {uint64_t{1} << 63}}, with_ctl(off));
        return !failed && failed.violated == vmx::violation{rule::REG_130, step::control_checks} &&
               failed.state == now && !bad && bad.state == with_ctl(off);
    });
}

// ------------------------------------------------------------------------------------ MSR lists

TEST_CASE("in a list that starts a trace CTL is last: what follows it faults (PRG-165)") {
    CHECK_TWICE([](auto value) {
        for (size_t at = 0; at < start_count; ++at) {  // CTL moves to position `at`
            vmx::msr_list_entry list[start_count] = {};
            for (size_t i = 0; i < start_count; ++i) {
                list[i] = i == at ? start[start_count - 1] : start[i < at ? i : i - 1];
            }
            list[0].index = value(list[0].index);
            auto const entry = found_in(preset::ice_lake_u, entering(list));
            auto const exit = found_in(preset::ice_lake_u, leaving(list));
            if (at == start_count - 1) {
                if (entry.count != 0 || exit.count != 0) { return false; }
                continue;
            }
            msr_index const next = start[at].index;
            if (!entry.is({rule::REG_004, step::entry_load, at + 1, next}) ||
                !exit.is({rule::REG_004, step::exit_load, at + 1, next})) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("in a list that stops a trace CTL is first (PRG-165)") {
    CHECK_TWICE([](auto value) {
        vmx::msr_list_entry const right[] = {{0x570, 0, value(uint64_t{0x2108})}, {0x571, 0, 0}};
        vmx::msr_list_entry const wrong[] = {{0x571, 0, 0}, {0x570, 0, value(uint64_t{0x2108})}};
        vmx::msr_list_entry const changed[] = {{0x570, 0, value(uint64_t{0x2509})}};
        auto const now = with_ctl(on);
        return found_in(preset::ice_lake_u, entering(right), now).count == 0 &&
               found_in(preset::ice_lake_u, leaving(right), now).count == 0 &&
               found_in(preset::ice_lake_u, leaving(wrong), now)
                   .is({rule::REG_004, step::exit_load, 0, 0x571}) &&
               found_in(preset::ice_lake_u, entering(changed), now)
                   .is({rule::REG_021, step::entry_load, 0, 0x570});
    });
    CHECK_TWICE([](auto value) {  // both lists fail: the exit goes on from where the entry failed
        vmx::msr_list_entry const wrong[] = {{0x571, 0, value(uint64_t{0})}};
        auto const found = found_in(
            preset::ice_lake_u, {.entry_load = {wrong, 1}, .exit_load = {wrong, 1}}, with_ctl(on));
        return found.count == 2 && found.all[0].where == step::entry_load &&
               found.all[1].where == step::exit_load;
    });
}

TEST_CASE("the lists start from the CTL that the controls load and clear (REG-125, REG-126)") {
    CHECK_TWICE([](auto value) {
        vmx::msr_list_entry const status[] = {{0x571, 0, value(uint64_t{0})}};
        vmx::vmcs_fields fields{
            .set = {{0}, {clear_ctl}, {load_ctl}}, .guest_ctl = on, .entry_load = {status, 1}};
        bool const live =
            found_in(preset::ice_lake_u, fields).is({rule::REG_004, step::entry_load, 0, 0x571});
        fields.guest_ctl = off;
        bool const idle = found_in(preset::ice_lake_u, fields).count == 0;
        fields.entry_load = {};
        fields.guest_ctl = on;
        fields.exit_load = {status, 1};
        bool const cleared = found_in(preset::ice_lake_u, fields).count == 0;
        fields.set.vm_exit = {0};
        bool const tracing =
            found_in(preset::ice_lake_u, fields).is({rule::REG_004, step::exit_load, 0, 0x571});
        return live && idle && cleared && tracing;
    });
}

TEST_CASE("an entry fails as its WRMSR would, in VMX operation and at CPL 0 (PRG-160, PRG-165)") {
    CHECK_TWICE([](auto value) {
        auto const fails = [&](cpu::capabilities const& of, uint32_t index, uint64_t data,
                               access::policy const& how = {}) {
            vmx::msr_list_entry const list[] = {{0x10, 0, 5}, {value(index), 0, value(data)}};
            auto const found = found_in(of, entering(list), {}, how);
            auto const entered = vmx::vm_entry(of, entering(list), {}, {.cpl = 3}, how);
            auto const left = vmx::vm_exit(of, leaving(list), {}, {.cpl = 3}, how);
            rule const why = found.count == 0 ? rule::none : found.all[0].broken;
            return found.count < 2 && entered.violated.broken == why &&
                           left.violated.broken == why &&
                           (why == rule::none ||
                            (entered.violated == vmx::violation{why, step::entry_load, 1, index} &&
                             left.violated == vmx::violation{why, step::exit_load, 1, index}))
                       ? why
                       : rule::REG_002;
        };
        return fails(preset::ice_lake_u, 0x584, 0) == rule::REG_014 &&
               fails(preset::ice_lake_u, 0x560, 0x1040) == rule::REG_070 &&
               fails(preset::ice_lake_u, 0x570, 1U << 18) == rule::REG_044 &&
               fails(preset::ice_lake_u, 0x38E, 0) == rule::REG_203 &&
               fails(preset::ice_lake_u, 0x1A0, ~uint64_t{0}) == rule::none &&
               fails(preset::P_BDW, 0x570, 0x2108) == rule::REG_121 &&
               fails(preset::P_BDW, 0x570, 0x2108, {.only_enabling_faults_in_vmx = true}) ==
                   rule::none &&
               fails(preset::P_BDW, 0x571, 0) == rule::none;
    });
}

TEST_CASE("bits 63:32 of an entry are 0, and a list has at most 512 * (N + 1) entries (PRG-165)") {
    CHECK_TWICE([](auto value) {
        vmx::msr_list_entry const list[] = {{0x10, 0, 0}, {0x571, value(1U), 0}, {0x588, 1, 0}};
        vmx::violation const expected{rule::PRG_165, step::entry_load, 1, 0x571};
        vmx::violation const stored{rule::PRG_165, step::exit_store, 1, 0x571};
        return found_in(preset::ice_lake_u, entering(list)).is(expected) &&
               found_in(preset::ice_lake_u, storing(list)).is(stored);
    });
    CHECK(vmx::msr_list_entry{} == vmx::msr_list_entry{0, 0, 0});
    CHECK(vmx::violation{} == vmx::violation{rule::none, step::control_checks, 0, 0});
    CHECK_TWICE([](auto value) {
        vmx::msr_list_entry list[1025] = {};
        for (auto& one : list) { one.index = 0x10; }
        auto const found_with = [&](uint64_t encoding, size_t count) {
            auto of = preset::ice_lake_u;
            of.vmx_misc = {(of.vmx_misc.raw & ~uint64_t{7 << 25}) | value(encoding) << 25};
            return found_in(of, {.entry_load = {list, value(count)}});
        };
        return found_with(0, 512).count == 0 &&
               found_with(0, 513).is({rule::PRG_165, step::entry_load, 512}) &&
               found_with(1, 1024).count == 0 &&
               found_with(1, 1025).is({rule::PRG_165, step::entry_load, 1024});
    });
}

TEST_CASE("what the MSR-store list stores of 560H, 561H and 571H while tracing is transient "
          "(PRG-166)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = 0x560; index < 0x584; ++index) {
            bool const absent = index > 0x561 && index < 0x570;
            bool const missing = index > 0x572 && index < 0x580;
            bool const changes = index == 0x560 || index == 0x561 || index == 0x571;
            vmx::msr_list_entry const list[] = {{0x10, 0, 0}, {value(index), 0, 0}};
            auto const while_tracing = found_in(preset::ice_lake_u, storing(list), with_ctl(on));
            auto const stopped = found_in(preset::ice_lake_u, storing(list), with_ctl(off));
            auto const left = vmx::vm_exit(preset::ice_lake_u, storing(list), with_ctl(on));
            vmx::violation const no_msr{rule::REG_017, step::exit_store, 1, index};
            vmx::violation const transient{rule::PRG_166, step::exit_store, 1, index};
            bool const right = absent || missing ? while_tracing.is(no_msr) && stopped.is(no_msr) &&
                                                       left.violated == no_msr
                               : changes ? while_tracing.is(transient) && stopped.count == 0 && left
                                         : while_tracing.count == 0 && stopped.count == 0 && left;
            if (!right) { return false; }
        }
        return true;
    });
    CHECK_TWICE([](auto value) {
        // The state is that of the guest; nothing is stored when VM entry fails.
        vmx::msr_list_entry const status[] = {{value(0x571U), 0, 0}};
        vmx::vmcs_fields fields{
            .set = {{0}, {clear_ctl}, {load_ctl}}, .guest_ctl = on, .exit_store = {status, 1}};
        bool const transient =
            found_in(preset::ice_lake_u, fields).is({rule::PRG_166, step::exit_store, 0, 0x571});
        fields.entry_load = {status, 1};
        bool const not_stored =
            found_in(preset::ice_lake_u, fields).is({rule::REG_004, step::entry_load, 0, 0x571});
        vmx::msr_list_entry const absent[] = {{0x587, 0, 0}};
        auto const aborted = vmx::vm_exit(
            preset::ice_lake_u, {.set = {.vm_exit = {clear_ctl}}, .exit_store = {absent, 1}},
            with_ctl(on));
        return transient && not_stored && !aborted && aborted.state.ctl == on &&
               aborted.violated == vmx::violation{rule::REG_014, step::exit_store, 0, 0x587};
    });
}

// ------------------------------------------------------------------------------------ usage models

namespace {

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

TEST_CASE("EPTP switching exits while a guest with guest-physical output traces (PRG-183)") {
    CHECK_TWICE([](auto value) {
        controls const translated{.secondary = {value(guest_physical)}};
        return vmx::eptp_switching_exits(translated, on) &&
               !vmx::eptp_switching_exits(translated, off) && !vmx::eptp_switching_exits({}, on);
    });
}
