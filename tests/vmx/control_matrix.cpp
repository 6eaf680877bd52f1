// SPDX-License-Identifier: BSL-1.0
// Every combination of the Intel PT controls of VMX, on every set of capability MSRs that real
// processors have and on made ones, against a second formulation of the rules.
#include <ptspec/vmx/controls.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/transition.hpp>

#include <support/facts.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

using namespace ptspec;
namespace test = ptspec::test;

namespace {

// ------------------------------------------------------------------------------------ the text

/// 485H, 48BH, 483H, 484H.
struct capability_msrs {
    std::uint64_t misc = 0;
    std::uint64_t secondary = 0;
    std::uint64_t vm_exit = 0;
    std::uint64_t vm_entry = 0;

    friend auto operator<=>(capability_msrs const&, capability_msrs const&) = default;
};

/// The six controls: in which word (0 secondary, 1 VM exit, 2 VM entry), and at which bit. Their
/// order is that of the bits of `combination::controls`.
constexpr unsigned words[] = {0, 0, 1, 1, 2, 2};
constexpr unsigned bits[] = {19, 24, 24, 25, 17, 18};
constexpr unsigned guest_physical = 1U << 1;
constexpr unsigned clear_ctl = 1U << 3;
constexpr unsigned load_ctl = 1U << 5;

struct combination {
    unsigned controls = 0;
    bool ept = false;
    bool host_traces = false;
    bool guest_ctl_is_reserved = false;
};

// The rules as bits, in the order of the catalogue.
constexpr unsigned rule_129 = 1;
constexpr unsigned rule_130 = 2;
constexpr unsigned rule_131 = 4;
constexpr unsigned rule_132 = 8;
constexpr unsigned rule_135 = 16;

/// The rules by which the catalogue lets VM entry fail.
auto by_the_text(capability_msrs const& of, combination const& it) -> unsigned {
    unsigned broken = 0;
    bool const loads = (it.controls & load_ctl) != 0;
    bool const clears = (it.controls & clear_ctl) != 0;
    if ((it.controls & guest_physical) != 0 && (!it.ept || !loads || !clears)) {
        broken |= rule_129;
    }
    if (it.host_traces && loads) { broken |= rule_130; }
    if (loads && it.guest_ctl_is_reserved) { broken |= rule_131; }
    if ((of.misc & 0x4000) == 0 && it.controls != 0) { broken |= rule_132; }
    std::uint64_t const msrs[] = {of.secondary, of.vm_exit, of.vm_entry};
    for (unsigned i = 0; i < 6; ++i) {
        bool const is_1 = (it.controls >> i & 1) != 0;
        bool const may_be_1 = (msrs[words[i]] >> (bits[i] + 32) & 1) != 0;
        bool const may_be_0 = (msrs[words[i]] >> bits[i] & 1) == 0;
        if (is_1 ? !may_be_1 : !may_be_0) { broken |= rule_135; }
    }
    return broken;
}

// ------------------------------------------------------------------------------------ the library

auto bit_of(rule broken) -> unsigned {
    switch (broken) {
        case rule::REG_129: return rule_129;
        case rule::REG_130: return rule_130;
        case rule::REG_131: return rule_131;
        case rule::REG_132: return rule_132;
        case rule::REG_135: return rule_135;
        default: return 1U << 31;
    }
}

auto fields_of(combination const& it, std::uint64_t guest_ctl) -> vmx::vmcs_fields {
    std::uint32_t raw[3] = {};
    for (unsigned i = 0; i < 6; ++i) {
        if ((it.controls >> i & 1) != 0) { raw[words[i]] |= 1U << bits[i]; }
    }
    return {.set = {{raw[0]}, {raw[1]}, {raw[2]}, it.ept}, .guest_ctl = {guest_ctl}};
}

// ------------------------------------------------------------------------------------ the sets

/// Those of the dumps, or of the three generations where the facts are missing.
auto real_sets() -> std::set<capability_msrs> {
    std::set<capability_msrs> all{
        {0x3004'81E5, 0x0005'7CFF'0000'0000, 0x007F'FFFF'0003'6DFF, 0x0000'FFFF'0000'11FF},
        {0x7004'C1E7, 0x025D'3FFF'0000'0000, 0x01FF'FFFF'0003'6DFF, 0x0003'FFFF'0000'11FF},
        {0x7004'C1E7, 0x335F'BFFF'0000'0000, 0x37FF'FFFF'0003'6DFF, 0x0006'FFFF'0000'11FF},
    };
    auto const table = test::facts_table("vmx_msrs_instlatx64.csv");
    if (!table) { return all; }
    auto const hex = [](std::string const& cell) {
        return cell.empty() ? 0 : std::stoull(cell, nullptr, 16);
    };
    auto const before = all.size();
    for (auto const& row : table->rows) {
        if (row["485"].empty() || row["483"].empty() || row["484"].empty()) { continue; }
        all.insert({hex(row["485"]), hex(row["48B"]), hex(row["483"]), hex(row["484"])});
    }
    CHECK(all.size() > before + 20);
    return all;
}

/// Every set of controls that may be 1, with none, one or all that must be 1; IA32_VMX_MISC[14] 0
/// and 1.
auto made_sets() -> std::set<capability_msrs> {
    std::set<capability_msrs> all;
    unsigned const required[] = {0, 1, 2, 4, 8, 16, 32, 63};
    for (unsigned may_be_1 = 0; may_be_1 < 64; ++may_be_1) {
        for (unsigned const must_be_1 : required) {
            std::uint64_t msrs[3] = {};
            for (unsigned i = 0; i < 6; ++i) {
                auto& msr = msrs[words[i]];
                if ((may_be_1 >> i & 1) != 0) { msr |= std::uint64_t{1} << (bits[i] + 32); }
                if ((must_be_1 >> i & 1) != 0) { msr |= std::uint64_t{1} << bits[i]; }
            }
            all.insert({0x4000, msrs[0], msrs[1], msrs[2]});
            all.insert({~std::uint64_t{0x4000}, msrs[0], msrs[1], msrs[2]});
        }
    }
    return all;
}

}  // namespace

TEST_CASE("on each set of capability MSRs every combination of controls, host TraceEn and guest "
          "CTL breaks the rules of the text (REG-129..132, REG-135, PRG-161, PRG-162)") {
    auto sets = real_sets();
    auto const from_processors = sets.size();
    sets.merge(made_sets());
    // 14H.0 is 0FH, 7: bits 18 and 57 are reserved everywhere, bit 31 (EventEn) is on this part.
    struct {
        std::uint64_t value;
        bool is_reserved;
    } const guest_ctls[] = {{0x2108, false},
                            {0x250D, false},
                            {0x2108 | 1U << 18, true},
                            {std::uint64_t{1} << 57, true},
                            {0x2109 | std::uint64_t{1} << 31, true}};
    std::size_t combinations = 0;
    std::size_t wrong = 0;
    std::size_t without_failure = 0;
    for (auto const& msrs : sets) {
        auto caps = cpu::preset::P_SKL;
        caps.vmx_misc = {msrs.misc};
        caps.vmx_procbased_ctls2 = {msrs.secondary};
        caps.vmx_exit_ctls = {msrs.vm_exit};
        caps.vmx_entry_ctls = {msrs.vm_entry};
        for (unsigned number = 0; number < 256; ++number) {
            combination it{number & 63, (number & 64) != 0, (number & 128) != 0, false};
            access::msr_state host;
            host.ctl = {it.host_traces ? 0x2109U : 0x2108U};
            for (auto const& ctl : guest_ctls) {
                it.guest_ctl_is_reserved = ctl.is_reserved;
                auto const fields = fields_of(it, ctl.value);
                auto const expected = by_the_text(msrs, it);
                unsigned found = 0;
                vmx::check(caps, fields, host,
                           [&](vmx::violation const& one) { found |= bit_of(one.broken); });
                unsigned of_controls = 0;
                vmx::find_broken_rules(caps, fields.set, host.ctl,
                                       [&](rule why) { of_controls += bit_of(why); });
                auto const entered = vmx::vm_entry(caps, fields, host);
                bool const first_is_broken = expected == 0 ? static_cast<bool>(entered)
                                                           : (bit_of(entered.violated.broken) &
                                                              expected) != 0;
                bool const right = found == expected && of_controls == (expected & ~rule_131) &&
                                   first_is_broken &&
                                   (vmx::broken_rule(caps, fields.set, host.ctl) == rule::none) ==
                                       (of_controls == 0);
                if (!right) { ++wrong; }
                if (expected == 0) { ++without_failure; }
                ++combinations;
            }
        }
    }
    MESSAGE(combinations, " combinations on ", sets.size(), " sets of capability MSRs, ",
            from_processors, " of them from processors; in ", without_failure,
            " VM entry does not fail");
    CHECK(wrong == 0);
    CHECK(combinations == sets.size() * 256 * std::size(guest_ctls));
    CHECK(sets.size() == from_processors + 1024);
    CHECK(without_failure > combinations / 100);
}

TEST_CASE("the level of VMX support follows from 485H[14] and the three controls of a guest "
          "(REG-120, REG-125..128)") {
    for (auto const& msrs : made_sets()) {
        cpu::capabilities caps;
        caps.vmx_misc = {msrs.misc};
        caps.vmx_procbased_ctls2 = {msrs.secondary};
        caps.vmx_exit_ctls = {msrs.vm_exit};
        caps.vmx_entry_ctls = {msrs.vm_entry};
        bool const whole = (msrs.secondary >> 56 & msrs.vm_exit >> 57 & msrs.vm_entry >> 50 & 1) !=
                           0;
        auto const expected = (msrs.misc >> 14 & 1) == 0 ? cpu::vmx_support::none
                              : whole                    ? cpu::vmx_support::whole
                                                         : cpu::vmx_support::conceal;
        CHECK(caps.vmx() == expected);
    }
}
