// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/transition.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/vmcs_checks.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using test::clear_ctl;
using test::found_in;
using test::load_ctl;
using test::with_ctl;
using vmx::controls;
using vmx::step;

namespace {

constexpr reg::ia32_rtit_ctl off{0x2108};
constexpr reg::ia32_rtit_ctl on{0x2109};

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
