// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/trigger.hpp>

#include <ptspec/access/check.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;

namespace {

/// P-FUT with another CPUID.14H.1:ECX.
constexpr auto with_ecx(uint32_t ecx) -> cpu::capabilities {
    cpu::capabilities of = preset::P_FUT;
    of.leaf_14_1_ecx = {ecx};
    return of;
}

/// The rule that a slot breaks. It must be the same in each of the four slots.
constexpr auto rule_of_slot(cpu::capabilities const& of, uint64_t slot) -> rule {
    rule const first = access::broken_rule(of, reg::ia32_rtit_triggerx_cfg{slot});
    for (unsigned n = 1; n < 4; ++n) {
        if (access::broken_rule(of, reg::ia32_rtit_triggerx_cfg{slot << 16 * n}) != first) {
            return rule::none;
        }
    }
    return first;
}

}  // namespace

TEST_CASE("there are four triggers for each configuration MSR (REG-215)") {
    CHECK_TWICE([](auto value) {
        auto const count = [&](uint32_t ebx, uint32_t eax_0, uint32_t eax_1) {
            cpu::capabilities of;
            of.leaf_14_0_eax = {value(eax_0)};
            of.leaf_14_0_ebx = {ebx};
            of.leaf_14_1_eax = {eax_1};
            return access::triggers(of);
        };
        return count(0x200, 1, 0x200) == 8 && count(0x200, 1, 0x700) == 28 &&
               count(0x200, 1, 0xFFFF'F8FF) == 0 && count(0x100, 1, 0x200) == 0 &&
               count(0x200, 0, 0x200) == 0 && access::triggers(preset::P_SKL) == 0;
    });
}

TEST_CASE("a trigger's input is a counter or, where enumerated, a debug register (REG-217)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t input = 0; input < 0x80; ++input) {
            bool const counter = input <= 7 || (input >= 0x20 && input <= 0x27);
            bool const debug_register = input >= 0x40 && input <= 0x43;
            bool const with = access::is_trigger_input(with_ecx(0x8000), value(input));
            bool const without = access::is_trigger_input(with_ecx(0x7FFF), value(input));
            if (with != (counter || debug_register) || without != counter) { return false; }
        }
        return rule_of_slot(preset::P_FUT, value(uint64_t{0x43})) == rule::none &&
               rule_of_slot(preset::P_FUT, value(uint64_t{0x44})) == rule::REG_217 &&
               rule_of_slot(with_ecx(3), value(uint64_t{0x43})) == rule::REG_217;
    });
}

TEST_CASE("a trigger's actions have to be enumerated, and bits 11:7 are reserved (REG-216)") {
    CHECK_TWICE([](auto value) {
        auto const slot = [&](uint32_t ecx, uint64_t bits) {
            return rule_of_slot(with_ecx(value(ecx)), bits);
        };
        return slot(0, 0x8000) == rule::none && slot(1, 0x4000) == rule::none &&
               slot(2, 0x3000) == rule::none && slot(2, 0x4000) == rule::REG_216 &&
               slot(1, 0x1000) == rule::REG_216 && slot(1, 0x2000) == rule::REG_216 &&
               slot(0xFFFF, 0x80) == rule::REG_216 && slot(0xFFFF, 0x800) == rule::REG_216 &&
               slot(0xFFFF, 0xF000) == rule::none;
    });
}

TEST_CASE("an enabled slot on a debug register needs that register's bit of DR7 (REG-219)") {
    CHECK_TWICE([](auto value) {
        auto const needed = [&](uint64_t slots) { return access::needed_dr7({value(slots)}).raw; };
        return needed(0x8040) == 0x1'0000'0000 && needed(0x8041) == 0x2'0000'0000 &&
               needed(0x8042'0000) == 0x4'0000'0000 &&
               needed(0x8043'0000'0000'0000) == 0x8'0000'0000 &&
               needed(0x8043'8040'8043'8041) == 0xB'0000'0000 && needed(0x0040'7043) == 0 &&
               needed(0x8044'803F'8000'8023) == 0 && needed(0x80C0'8080) == 0x1'0000'0000;
    });
}

TEST_CASE("no WRMSR check uses the trigger rules: 588H and up are not covered (REG-218)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = 0x588; index < 0x600; ++index) {
            if (access::check_write(preset::P_FUT, {}, value(index), 0x7F).what !=
                access::outcome::not_covered) {
                return false;
            }
        }
        return true;
    });
}
