// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/guest_cpuid.hpp>

#include <ptspec/access/legal.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/controls.hpp>

#include <support/check_twice.hpp>
#include <support/without_msrs.hpp>
#include <support/facts.hpp>

#include <random>
#include <string>
#include <vector>

using namespace ptspec;
using ptspec::test::without_msrs;
using cpu::capabilities;
using vmx::guest_offer;
using vmx::guest_output;
using vmx::guest_policy;
using vmx::unhonourable;
namespace preset = cpu::preset;
namespace test = ptspec::test;

namespace {

constexpr guest_policy shadow{.output = guest_output::shadow};

/// The CPUID instruction of a processor, without regard to its other features.
constexpr auto cpuid_of(capabilities const& of, uint32_t leaf, uint32_t subleaf)
    -> cpuid_registers {
    bool const first = subleaf == 0;
    switch (leaf) {
        case 0x00: return {0x1A, 0, 0, 0};
        case 0x01: return {of.leaf_01_eax.raw, 0, of.leaf_01_ecx.raw, 0};
        case 0x07:
            return first ? cpuid_registers{1, of.leaf_07_0_ebx.raw, 0, 0x8000}
                         : cpuid_registers{of.leaf_07_1_eax.raw, 0, 0, 0};
        case 0x0A: return {of.leaf_0a_eax.raw, 0, 0, 0};
        case 0x0D:
            return subleaf == 1
                       ? cpuid_registers{of.leaf_0d_1_eax.raw, 0x340, of.leaf_0d_1_ecx.raw, 0}
                   : subleaf == 8
                       ? cpuid_registers{of.leaf_0d_8_eax.raw, 0, of.leaf_0d_8_ecx.raw, 0}
                       : cpuid_registers{7, 7, 7, 7};
        case 0x14:
            return first ? cpuid_registers{of.leaf_14_0_eax.raw, of.leaf_14_0_ebx.raw,
                                           of.leaf_14_0_ecx.raw, 0}
                         : cpuid_registers{of.leaf_14_1_eax.raw, of.leaf_14_1_ebx.raw,
                                           of.leaf_14_1_ecx.raw, 0};
        case 0x15: return {of.leaf_15_eax.raw, of.leaf_15_ebx.raw, of.leaf_15_ecx.raw, 0};
        case 0x1A: return {0x4000'0001, 0, 0, 0};
        case 0x8000'0000: return {0x8000'0008, 0, 0, 0};
        case 0x8000'0008: return {of.leaf_80000008_eax.raw, 0, 0, 0};
        default: return {};
    }
}

/// The CPUID instruction of a guest on a processor.
struct guest_port {
    guest_offer guest{};
    capabilities host{};

    constexpr auto query(uint32_t leaf, uint32_t subleaf) -> cpuid_registers {
        return vmx::answer(guest, leaf, subleaf, cpuid_of(host, leaf, subleaf));
    }
};

/// Everything that CPUID can say, on a processor with all VMX controls.
constexpr auto with_leaf(uint32_t ebx, uint32_t ecx, uint32_t eax_1, uint32_t ebx_1)
    -> capabilities {
    auto of = preset::P_FUT;
    of.leaf_14_0_ebx = {ebx};
    of.leaf_14_0_ecx = {ecx};
    of.leaf_14_1_eax = {eax_1};
    of.leaf_14_1_ebx = {ebx_1};
    of.leaf_14_1_ecx = {};
    return of;
}

struct found_bits {
    unhonourable all[12] = {};
    unsigned count = 0;

    [[nodiscard]] constexpr auto is(unhonourable const& only) const -> bool {
        return count == 1 && all[0] == only;
    }
};
constexpr auto found_for(capabilities const& host, capabilities const& guest) -> found_bits {
    found_bits found;
    vmx::find_unhonourable(host, guest, [&](unhonourable const& one) {
        if (one.is_hidden) { return; }
        if (found.count < 12) { found.all[found.count] = one; }
        ++found.count;
    });
    return found;
}

using reg::cpuid_register;
constexpr auto eax = cpuid_register::eax;
constexpr auto ebx = cpuid_register::ebx;
constexpr auto ecx = cpuid_register::ecx;

struct processor {
    std::string name;
    capabilities of;
};

/// CPUID words of real processors, with the VMX controls of P-FUT.
auto dumps() -> std::vector<processor> {
    std::vector<processor> all;
    auto const table = test::facts_table("leaf14_instlatx64.csv");
    if (!table) { return all; }
    auto const word = [](std::string const& cell, int base = 16) {
        return static_cast<uint32_t>(std::stoul(cell, nullptr, base));
    };
    for (auto const& row : table->rows) {
        auto of = preset::P_FUT;
        of.leaf_07_0_ebx = {row["PT"] == "1" ? 1U << 25 : 0U};
        of.leaf_14_0_eax = {word(row["14.0.EAX"])};
        of.leaf_14_0_ebx = {word(row["14.0.EBX"])};
        of.leaf_14_0_ecx = {word(row["14.0.ECX"])};
        of.leaf_14_1_eax = {word(row["14.1.EAX"])};
        of.leaf_14_1_ebx = {word(row["14.1.EBX"])};
        of.leaf_14_1_ecx = {word(row["14.1.ECX"])};
        of.leaf_80000008_eax = {word(row["LA"], 10) << 8 | word(row["MAXPHYADDR"], 10)};
        bool const xsaves = row["XSS8"] == "1";
        of.leaf_01_ecx = {of.leaf_01_ecx.raw | 1U << 26};
        of.leaf_0d_1_eax = {xsaves ? 8U : 0U};
        of.leaf_0d_1_ecx = {xsaves ? 0x100U : 0U};
        of.leaf_0d_8_eax = {xsaves ? word(row["0D.8.EAX"]) : 0U};
        of.leaf_0d_8_ecx = {xsaves ? word(row["0D.8.ECX"]) : 0U};
        all.push_back({row["dump"] + " " + row["coretype"], of});
    }
    CHECK(!all.empty());
    return all;
}

auto presets() -> std::vector<processor> {
    std::vector<processor> all;
    for (auto const& one : preset::all) {
        all.push_back({std::string{one.name.data(), one.name.size()}, one.value});
    }
    return all;
}

auto processors() -> std::vector<processor> {
    auto all = presets();
    for (auto& one : dumps()) { all.push_back(one); }
    return all;
}

/// Leaf 14H of a guest with guest-physical output, from the words of the processor.
auto expected_leaf(capabilities const& of) -> std::vector<uint32_t> {
    uint32_t const b = of.leaf_14_0_ebx.raw & 0x1FF;
    bool const more = of.leaf_14_0_eax.raw != 0;
    uint32_t const c = of.leaf_14_0_ecx.raw;
    uint32_t const outputs = (c & 1) != 0 ? c & 7 : c & 4;
    uint32_t const ranges = more && (b & 4) != 0 ? of.leaf_14_1_eax.raw & 7 : 0;
    uint32_t const mtc = more && (b & 8) != 0 ? of.leaf_14_1_eax.raw & 0xFFFF'0000 : 0;
    return {more ? 1U : 0U,
            b,
            outputs | (c & 0x8000'0000),
            ranges | mtc,
            more && (b & 2) != 0 ? of.leaf_14_1_ebx.raw : 0,
            0};
}

auto leaf_of(capabilities const& of) -> std::vector<uint32_t> {
    return {of.leaf_14_0_eax.raw, of.leaf_14_0_ebx.raw, of.leaf_14_0_ecx.raw,
            of.leaf_14_1_eax.raw, of.leaf_14_1_ebx.raw, of.leaf_14_1_ecx.raw};
}

}  // namespace

// ------------------------------------------------------------------------------------ the offer

TEST_CASE("a guest gets a subset of leaf 14H, with the same LIP, and without fabric output and "
          "trigger tracing (PRG-174, REG-046, REG-163)") {
    for (auto const& one : processors()) {
        auto const& of = one.of;
        CAPTURE(one.name);
        auto const made = vmx::guest_capabilities(of);
        bool const in_vmx = (of.vmx_misc.raw >> 14 & 1) != 0;
        bool const whole = (of.vmx_procbased_ctls2.raw >> 56 & of.vmx_exit_ctls.raw >> 57 &
                            of.vmx_entry_ctls.raw >> 50 & 1) != 0;
        rule const expected = (of.leaf_07_0_ebx.raw >> 25 & 1) == 0 ? rule::REG_001
                              : !in_vmx                             ? rule::REG_121
                              : !whole                              ? rule::PRG_170
                              : (of.leaf_14_0_ecx.raw & 5) == 0     ? rule::PRG_174
                                                                    : rule::none;
        CHECK(made.broken == expected);
        if (!made) {
            CHECK(made.value == vmx::without_pt(of));
            continue;
        }
        CHECK(leaf_of(made.value) == expected_leaf(of));
        CHECK(cpu::is_superset(of, made.value));
        CHECK(made.value.ip_payload() == of.ip_payload());
        CHECK(!made.hides_core_type);
        CHECK(found_for(of, made.value).count == 0);
        auto rest = made.value;  // nothing but Intel PT changes
        rest.leaf_14_0_eax = of.leaf_14_0_eax;
        rest.leaf_14_0_ebx = of.leaf_14_0_ebx;
        rest.leaf_14_0_ecx = of.leaf_14_0_ecx;
        rest.leaf_14_1_eax = of.leaf_14_1_eax;
        rest.leaf_14_1_ebx = of.leaf_14_1_ebx;
        rest.leaf_14_1_ecx = of.leaf_14_1_ecx;
        rest.leaf_0d_1_ecx = of.leaf_0d_1_ecx;
        rest.leaf_0d_8_eax = of.leaf_0d_8_eax;
        rest.leaf_0d_8_ecx = of.leaf_0d_8_ecx;
        CHECK(without_msrs(rest) == without_msrs(of));
    }
}

TEST_CASE("shadow tables need ToPA tables of many regions (PRG-174, PRG-184, PRG-185)") {
    CHECK_TWICE([](auto value) {
        auto const outputs = [&](uint32_t raw) {
            auto const made = vmx::guest_capabilities(with_leaf(0xF, value(raw), 0, 0), shadow);
            return made ? made.value.leaf_14_0_ecx.raw : 0xFFFF'FFFF;
        };
        constexpr uint32_t none = 0xFFFF'FFFF;
        return outputs(0xF) == 7 && outputs(7) == 7 && outputs(3) == 3 && outputs(5) == none &&
               outputs(1) == none && outputs(4) == none && outputs(6) == none &&
               outputs(8) == none && outputs(0x8000'0007) == 0x8000'0007 && outputs(0) == none;
    });
    CHECK_TWICE([](auto value) {  // guest-physical output takes what there is
        auto const outputs = [&](uint32_t raw) {
            auto const made = vmx::guest_capabilities(with_leaf(0xF, value(raw), 0, 0));
            return made ? made.value.leaf_14_0_ecx.raw : 0xFFFF'FFFF;
        };
        return outputs(5) == 5 && outputs(1) == 1 && outputs(4) == 4 && outputs(6) == 4 &&
               outputs(2) == 0xFFFF'FFFF && outputs(0x8000'0001) == 0x8000'0001;
    });
    CHECK_TWICE([](auto value) {
        // Where the conceal controls are all there is, only shadow tables are possible.
        auto const of = value(preset::skylake_x);
        return vmx::guest_capabilities(of).broken == rule::PRG_170 &&
               vmx::guest_capabilities(of, shadow).broken == rule::none &&
               vmx::guest_capabilities(preset::broadwell, shadow).broken == rule::REG_121 &&
               vmx::guest_capabilities(preset::P_NONE, shadow).broken == rule::REG_001;
    });
}

TEST_CASE("the policy limits features and ranges (PRG-174)") {
    CHECK_TWICE([](auto value) {
        guest_policy const how{.features = {value(0xFFFF'FFF5)}, .address_ranges = value(1U)};
        auto const made = vmx::guest_capabilities(preset::P_FUT, how);
        auto const few = vmx::guest_capabilities(preset::P_FUT, {.address_ranges = value(7U)});
        auto const none = vmx::guest_capabilities(preset::P_FUT, {.features = {value(0x1FBU)}});
        return made && made.value.leaf_14_0_ebx.raw == 0x1F5 && made.value.leaf_14_1_eax.raw == 1 &&
               made.value.leaf_14_1_ebx.raw == 0 && few.value.leaf_14_1_eax.raw == 0xFFFF'0004 &&
               few.value.leaf_14_1_ebx.raw == 0xFFFF'FFFF &&
               none.value.leaf_14_1_eax.raw == 0xFFFF'0000;
    });
    CHECK_TWICE([](auto value) {  // a processor without sub-leaf 1, and one with five ranges
        auto of = with_leaf(0xF, 7, 0xFFFF'0002, 0xFFFF'FFFF);
        of.leaf_14_0_eax = {value(0U)};
        auto const made = vmx::guest_capabilities(of);
        auto more = with_leaf(0xF, 7, 0x0249'0005, 0);
        more.leaf_14_0_eax = {value(2U)};
        auto const most = vmx::guest_capabilities(more);
        return made && made.value.leaf_14_1_eax.raw == 0 && made.value.leaf_14_1_ebx.raw == 0 &&
               made.value.leaf_14_0_eax.raw == 0 && most.value.leaf_14_0_eax.raw == 1 &&
               most.value.leaf_14_1_eax.raw == 0x0249'0004;
    });
}

TEST_CASE("PT state in XSAVES, PEBS output and nested VMX operation are offered by policy or not "
          "at all (REG-140, REG-200, PRG-173)") {
    CHECK_TWICE([](auto value) {
        auto of = value(preset::ice_lake_u);
        of.perf_capabilities = {0x1'0001};
        auto const plain = vmx::guest_capabilities(of);
        auto const with = vmx::guest_capabilities(of, {.xsaves = true, .nested = true});
        return of.has_xsaves_state() && !plain.value.has_xsaves_state() &&
               plain.value.leaf_0d_1_eax == of.leaf_0d_1_eax &&
               plain.value.leaf_0d_1_ecx.raw == 0 && plain.value.leaf_0d_8_eax.raw == 0 &&
               plain.value.leaf_0d_8_ecx.raw == 0 && with.value.has_xsaves_state() &&
               with.value.leaf_0d_8_eax.raw == 0x80 && with.value.leaf_0d_8_ecx.raw == 1 &&
               plain.value.perf_capabilities.raw == 1 && with.value.perf_capabilities.raw == 1 &&
               plain.value.vmx() == cpu::vmx_support::none &&
               with.value.vmx() == cpu::vmx_support::whole &&
               with.value.vmx_exit_ctls == of.vmx_exit_ctls;
    });
    CHECK_TWICE([](auto value) {  // hosts with different sizes of the component
        capabilities hosts[] = {preset::ice_lake_u, preset::ice_lake_u};
        hosts[1].leaf_0d_8_eax = {value(0x100U)};
        auto const made = vmx::guest_capabilities(hosts, 2, {.xsaves = true});
        return made && !made.value.has_xsaves_state() && made.value.leaf_0d_8_ecx.raw == 0;
    });
    CHECK_TWICE([](auto value) {
        // Without nesting every bit of Intel PT is 0, and no other one changes.
        auto of = value(preset::ice_lake_u);
        of.vmx_procbased_ctls2 = {~uint64_t{0}};
        of.vmx_exit_ctls = {~uint64_t{0}};
        of.vmx_entry_ctls = {~uint64_t{0}};
        of.vmx_misc = {~uint64_t{0}};
        auto const made = vmx::guest_capabilities(of).value;
        auto const nested = vmx::guest_capabilities(
            of, {.output = guest_output::shadow, .nested = true});
        return made.vmx_misc.raw == 0xFFFF'FFFF'FFFF'BFFF &&
               made.vmx_procbased_ctls2.raw == 0xFEF7'FFFF'FEF7'FFFF &&
               made.vmx_exit_ctls.raw == 0xFCFF'FFFF'FCFF'FFFF &&
               made.vmx_entry_ctls.raw == 0xFFF9'FFFF'FFF9'FFFF &&
               nested.value.vmx_procbased_ctls2.raw == 0xFEFF'FFFF'FEFF'FFFF &&
               nested.value.vmx() == cpu::vmx_support::conceal;
    });
    CHECK_TWICE([](auto value) {  // the guest's capabilities decide about its own VM entries
        vmx::controls const three{{value(1U << 24)}, {1U << 25}, {1U << 18}, true};
        auto const with = vmx::guest_capabilities(preset::ice_lake_u, {.nested = true}).value;
        auto const less = vmx::guest_capabilities(preset::ice_lake_u,
                                                  {.output = guest_output::shadow, .nested = true})
                              .value;
        auto const none = vmx::guest_capabilities(preset::ice_lake_u).value;
        return vmx::broken_rule(with, three, {}) == rule::none &&
               vmx::broken_rule(less, three, {}) == rule::REG_135 &&
               vmx::broken_rule(none, three, {}) == rule::REG_132;
    });
}

TEST_CASE("hiding Intel PT hides all that depends on it, and nothing else (REG-134, PRG-164)") {
    CHECK_TWICE([](auto value) {
        auto of = value(preset::ice_lake_u);
        of.leaf_07_0_ebx = {0xFFFF'FFFF};
        of.leaf_0d_1_ecx = {0xFFFF'FFFF};
        of.leaf_14_1_ecx = {3};
        of.perf_capabilities = {~uint64_t{0}};
        auto const hidden = vmx::without_pt(of);
        auto expected = of;
        expected.leaf_07_0_ebx = {0xFDFF'FFFF};
        expected.leaf_0d_1_ecx = {0xFFFF'FEFF};
        expected.leaf_0d_8_eax = {};
        expected.leaf_0d_8_ecx = {};
        expected.leaf_14_0_eax = {};
        expected.leaf_14_0_ebx = {};
        expected.leaf_14_0_ecx = {};
        expected.leaf_14_1_eax = {};
        expected.leaf_14_1_ebx = {};
        expected.leaf_14_1_ecx = {};
        expected.perf_capabilities = {~uint64_t{0x1'0000}};
        expected.vmx_misc = {of.vmx_misc.raw & ~uint64_t{0x4000}};
        expected.vmx_procbased_ctls2 = {of.vmx_procbased_ctls2.raw & 0xFEF7'FFFF'FEF7'FFFF};
        expected.vmx_exit_ctls = {of.vmx_exit_ctls.raw & 0xFCFF'FFFF'FCFF'FFFF};
        expected.vmx_entry_ctls = {of.vmx_entry_ctls.raw & 0xFFF9'FFFF'FFF9'FFFF};
        return hidden == expected;
    });
}

TEST_CASE("on a hybrid part, or between hosts, a guest gets what all have, unless LIP differs "
          "(PRG-174, REG-166)") {
    CHECK_TWICE([](auto value) {
        capabilities const both[] = {preset::alder_lake_p, value(preset::alder_lake_e)};
        auto const apart = vmx::guest_capabilities(both, 2);
        auto const pinned = vmx::guest_capabilities(both, 2, {.pinned = true});
        auto const other = vmx::guest_capabilities(both + 1, 1);
        return apart.broken == rule::PRG_174 && !apart.value.has_pt() && apart.hides_core_type &&
               pinned && !pinned.hides_core_type &&
               pinned == vmx::guest_capabilities(preset::alder_lake_p) && other &&
               other.value.ip_payload() == cpu::ip_payload::linear &&
               vmx::guest_capabilities(both, 0).broken == rule::PRG_174;
    });
    CHECK_TWICE([](auto value) {
        capabilities const hosts[] = {preset::ice_lake_u, value(preset::tiger_lake),
                                      preset::alder_lake_p};
        auto const made = vmx::guest_capabilities(hosts, 3);
        capabilities const old[] = {preset::tiger_lake, preset::ice_lake_u, preset::skylake_x};
        capabilities const last[] = {preset::ice_lake_u, preset::P_ATM, preset::ice_lake_u};
        return made && made.value.leaf_14_0_ebx.raw == 0xF &&
               made.value.leaf_14_1_ebx.raw == 0x003F'003F && made.hides_core_type &&
               vmx::guest_capabilities(old, 3).broken == rule::PRG_170 &&
               vmx::guest_capabilities(old, 3, shadow).broken == rule::none &&
               vmx::guest_capabilities(last, 3, shadow).broken == rule::PRG_174;
    });
    auto const all = dumps();
    unsigned pairs = 0;
    for (auto const& p : all) {
        for (auto const& e : all) {
            auto const dump = p.name.substr(0, p.name.size() - 3);
            if (p.name != dump + " 40" || e.name != dump + " 20") { continue; }
            CAPTURE(p.name);
            capabilities const cores[] = {p.of, e.of};
            CHECK(vmx::guest_capabilities(cores, 2).broken == rule::PRG_174);
            CHECK(vmx::guest_capabilities(cores, 2, {.pinned = true}));
            ++pairs;
        }
    }
    CHECK((all.empty() || pairs > 10));
}

// ------------------------------------------------------------------------------------ answers

TEST_CASE("the CPUID answers decode to the capabilities of the guest (REG-160, PRG-174)") {
    for (auto const& one : processors()) {
        auto const& of = one.of;
        CAPTURE(one.name);
        for (unsigned i = 0; i < 8; ++i) {
            guest_policy how;
            how.output = (i & 1) != 0 ? guest_output::shadow : guest_output::guest_physical;
            how.xsaves = (i & 2) != 0;
            if ((i & 4) != 0) { how.features = {0x2A5}; }
            guest_port port{vmx::guest_capabilities(of, how), of};
            auto expected = without_msrs(port.guest.value);
            if ((of.leaf_01_ecx.raw >> 26 & 1) == 0) { expected.leaf_0d_1_eax = {}; }
            CHECK(cpu::detect(port) == expected);
        }
    }
}

TEST_CASE("where a guest may run on two processors it detects the same on both, and no core type "
          "(PRG-174, REG-164)") {
    auto const all = processors();
    unsigned pairs = 0;
    for (size_t i = 0; i + 1 < all.size(); ++i) {
        CAPTURE(all[i].name);
        capabilities const hosts[] = {all[i].of, all[i + 1].of};
        auto const made = vmx::guest_capabilities(hosts, 2, {.xsaves = true});
        if (!made) { continue; }
        guest_port one{made, hosts[0]};
        guest_port other{made, hosts[1]};
        auto const seen = cpu::detect(one);
        auto const also_seen = cpu::detect(other);
        CHECK(leaf_of(seen) == leaf_of(made.value));
        CHECK(leaf_of(also_seen) == leaf_of(made.value));
        CHECK(seen.has_pt());
        CHECK(seen.has_xsaves_state() == also_seen.has_xsaves_state());
        CHECK(one.query(0x1A, 0) == other.query(0x1A, 0));
        CHECK(found_for(hosts[0], made.value).count == 0);
        CHECK(found_for(hosts[1], made.value).count == 0);
        ++pairs;
    }
    CHECK(pairs > 0);
}

TEST_CASE("the answers replace only what concerns Intel PT (REG-134, REG-140, PRG-164)") {
    CHECK_TWICE([](auto value) {
        auto const with = vmx::guest_capabilities(preset::ice_lake_u, {.xsaves = true});
        guest_offer const without{rule::REG_001, vmx::without_pt(preset::ice_lake_u)};
        constexpr uint32_t all = 0xFFFF'FFFF;
        auto const ask = [&](guest_offer const& guest, uint32_t leaf, uint32_t subleaf,
                             uint32_t rest) {
            return vmx::answer(guest, value(leaf), subleaf, {rest, rest, rest, rest});
        };
        using r = cpuid_registers;
        return ask(with, 7, 0, 0) == r{0, 1U << 25, 0, 0} &&
               ask(without, 7, 0, all) == r{all, 0xFDFF'FFFF, all, all} &&
               ask(without, 7, 1, all) == r{all, all, all, all} &&
               ask(with, 0xD, 1, 0) == r{0, 0, 0x100, 0} &&
               ask(without, 0xD, 1, all) == r{all, all, 0xFFFF'FEFF, all} &&
               ask(with, 0xD, 8, all) == r{0x80, 0, 1, 0} && ask(without, 0xD, 8, all) == r{} &&
               ask(with, 0xD, 0, 5) == r{5, 5, 5, 5} && ask(without, 0xD, 9, 5) == r{5, 5, 5, 5} &&
               ask(with, 0x14, 0, all) == r{1, 0xF, 7, 0} &&
               ask(with, 0x14, 1, all) == r{0x0249'0002, 0x003F'1FFF, 0, 0} &&
               ask(with, 0x14, 2, all) == r{} && ask(without, 0x14, 0, all) == r{} &&
               ask(without, 0x14, 1, all) == r{} && ask(with, 0x1A, 0, 5) == r{5, 5, 5, 5} &&
               ask(with, 8, 0, 5) == r{5, 5, 5, 5} && ask(with, 1, 1, 5) == r{5, 5, 5, 5};
    });
    CHECK_TWICE([](auto value) {
        // A guest that may run on several core types sees none, and no hybrid part.
        auto made = vmx::guest_capabilities(preset::ice_lake_u);
        made.hides_core_type = value(true);
        auto const seven = vmx::answer(made, 7, 0, {0, 0, 0, 0xFFFF'FFFF});
        return seven.edx == 0xFFFF'7FFF &&
               vmx::answer(made, 7, 1, {0, 0, 0, 0xFFFF'FFFF}).edx == 0xFFFF'FFFF &&
               vmx::answer(made, 0x1A, 0, {0x4000'0001, 0, 0, 0}) == cpuid_registers{};
    });
}

TEST_CASE("CPUID tells a guest of a pool the clocks and address widths by which it is checked, on "
          "each host (REG-070, REG-076, PRG-174)") {
    unsigned differing = 0;
    for (auto const& first : presets()) {
        for (auto const& second : presets()) {
            capabilities const pool[] = {first.of, second.of};
            auto const offer = vmx::guest_capabilities(pool, 2, shadow);
            auto const& of = offer.value;
            for (auto const& host : pool) {
                guest_port cpuid{offer, host};
                auto const got = cpu::detect(cpuid);
                if (!offer) {
                    CHECK(got.leaf_15_ecx == host.leaf_15_ecx);
                    CHECK(got.leaf_80000008_eax == host.leaf_80000008_eax);
                    continue;
                }
                CAPTURE(first.name);
                CAPTURE(second.name);
                CHECK(got.leaf_15_eax == of.leaf_15_eax);
                CHECK(got.leaf_15_ebx == of.leaf_15_ebx);
                CHECK(got.leaf_15_ecx == of.leaf_15_ecx);
                CHECK(got.max_phys_addr().bits == of.max_phys_addr().bits);
                CHECK(got.linear_address_bits() == of.linear_address_bits());
                CHECK(got.leaf_14_0_ebx == of.leaf_14_0_ebx);
                // What CPUID says is what an access is checked by.
                uint64_t const widest = uint64_t{1} << (got.max_phys_addr().bits - 1);
                reg::ia32_rtit_output_base const legal{widest};
                reg::ia32_rtit_output_base const illegal{widest << 1};
                CHECK(access::is_legal(of, legal));
                CHECK(!access::is_legal(of, illegal));
                differing += got.leaf_80000008_eax != host.leaf_80000008_eax ||
                             got.leaf_15_ecx != host.leaf_15_ecx;
            }
        }
    }
    CHECK(differing > 100);
    CHECK_TWICE([](auto value) {  // the other bits of the register stay
        auto made = vmx::guest_capabilities(preset::ice_lake_u);
        made.value.leaf_80000008_eax = {value(0x3027U)};
        return vmx::answer(made, 0x8000'0008, 0, {0x00AA'3934, 1, 2, 3}) ==
               cpuid_registers{0x00AA'3027, 1, 2, 3};
    });
}

// ------------------------------------------------------------------------------------ honouring

TEST_CASE("PTWRITE and tables of many entries cannot be kept from a guest (REG-032, OUT-067)") {
    CHECK_TWICE([](auto value) {
        auto const hidden = [&](capabilities const& host, capabilities const& guest) {
            unsigned bits = 0;
            vmx::find_unhonourable(host, guest, [&](unhonourable const& one) {
                bool const is_ptwrite = one == unhonourable{rule::REG_032, 0x14, 0, ebx, 4, true};
                bool const is_mentry = one == unhonourable{rule::OUT_067, 0x14, 0, ecx, 1, true};
                bits |= is_ptwrite ? 1U : is_mentry ? 2U : 4U;
            });
            return bits;
        };
        auto const host = with_leaf(0x1F, 7, 0x0249'0002, 0x003F'1FFF);
        auto const guest = [&](uint32_t of_ebx, uint32_t of_ecx) {
            return with_leaf(value(of_ebx), of_ecx, 0x0249'0002, 0x003F'1FFF);
        };
        return hidden(host, guest(0x1F, 7)) == 0 && hidden(host, guest(0xF, 7)) == 1 &&
               hidden(host, guest(0x1F, 5)) == 2 && hidden(host, guest(0x1F, 4)) == 0 &&
               hidden(host, guest(0, 5)) == 3 && hidden(guest(0xF, 5), guest(0xF, 5)) == 0 &&
               hidden(host, vmx::without_pt(host)) == 1 &&
               hidden(vmx::without_pt(host), vmx::without_pt(host)) == 0;
    });
}

TEST_CASE("each feature bit that a processor lacks is named with the rule that the guest would "
          "break (REG-161, REG-162, PRG-174)") {
    // The rules are those by which the oracle of WRMSR refuses CTL without the feature.
    struct {
        unsigned bit;
        uint64_t ctl;
    } const rows[] = {{0, 0x80},     {1, 0x2},
                      {3, 0x200},    {4, 0x1000},
                      {5, 0x10},     {6, uint64_t{1} << 56},
                      {7, 1U << 31}, {8, uint64_t{1} << 55}};
    for (auto const& row : rows) {
        unsigned const bit = row.bit;
        CAPTURE(bit);
        auto host = preset::P_FUT;
        host.leaf_14_0_ebx = {0x1FFU & ~(1U << bit)};
        auto const guest = vmx::guest_capabilities(preset::P_FUT).value;
        auto const found = found_for(host, guest);
        CHECK(found.all[0] == unhonourable{access::broken_rule(host, reg::ia32_rtit_ctl{row.ctl}),
                                           0x14, 0, ebx, bit});
        if (bit != 1 && bit != 3) { CHECK(found.count == 1); }
    }
    CHECK_TWICE([](auto value) {
        auto const guest = vmx::guest_capabilities(preset::P_FUT).value;
        auto host = preset::P_FUT;
        host.leaf_14_0_ebx = {value(0x1FBU)};  // no IP filtering, so no ranges
        auto const ranges = found_for(host, guest);
        auto few = preset::P_FUT;
        few.leaf_14_1_eax = {0xFFFF'0000 | value(3U)};
        auto const out = [&](uint32_t of_host, uint32_t of_guest) {
            auto one = preset::P_FUT;
            one.leaf_14_0_ecx = {value(of_host)};
            auto other = guest;
            other.leaf_14_0_ecx = {of_guest};
            return found_for(one, other);
        };
        unhonourable const no_range{rule::REG_014, 0x14, 1, eax, 0};
        return ranges.count == 2 && ranges.all[0] == unhonourable{rule::REG_014, 0x14, 0, ebx, 2} &&
               ranges.all[1] == no_range && found_for(few, guest).is(no_range) &&
               out(0x8000'0006, 0x8000'0005).is({rule::REG_024, 0x14, 0, ecx, 0}) &&
               out(0x8000'0005, 0x8000'0007).is({rule::OUT_067, 0x14, 0, ecx, 1}) &&
               out(0x8000'0004, 0x8000'0006).count == 0 &&
               out(0x8000'0003, 0x8000'0007).is({rule::REG_025, 0x14, 0, ecx, 2}) &&
               out(0x8000'000F, 0x8000'000F).is({rule::PRG_174, 0x14, 0, ecx, 3}) &&
               out(0xFFFF'FFFF, 0x8000'0017).is({rule::PRG_174, 0x14, 0, ecx, 4}) &&
               out(0x8000'0007, 7).is({rule::PRG_174, 0x14, 0, ecx, 31}) &&
               out(7, 0x8000'0007).is({rule::PRG_174, 0x14, 0, ecx, 31});
    });
}

TEST_CASE("trigger tracing, reserved bits and further sub-leaves cannot be honoured (PRG-174)") {
    CHECK_TWICE([](auto value) {
        auto const guest = vmx::guest_capabilities(preset::P_FUT).value;
        auto everything = preset::P_FUT;
        everything.leaf_14_0_ebx = {0xFFFF'FFFF};
        everything.leaf_14_1_ecx = {0xFFFF'FFFF};
        auto const found = [&](auto change) {
            auto changed = guest;
            change(changed);
            return found_for(everything, changed);
        };
        auto const is = [](found_bits const& of, uint32_t subleaf, cpuid_register part,
                           unsigned bit) {
            return of.is({rule::PRG_174, 0x14, subleaf, part, bit});
        };
        return found([](auto&) {}).count == 0 &&
               is(found([&](auto& of) { of.leaf_14_0_ebx = {value(0x3FFU)}; }), 0, ebx, 9) &&
               is(found([&](auto& of) { of.leaf_14_0_ebx = {0x8000'01FF}; }), 0, ebx, 31) &&
               is(found([&](auto& of) { of.leaf_14_1_eax = {0xFFFF'0704}; }), 1, eax, 8) &&
               is(found([&](auto& of) { of.leaf_14_1_eax = {0xFFFF'8004}; }), 1, eax, 15) &&
               is(found([&](auto& of) { of.leaf_14_1_ecx = {value(2U)}; }), 1, ecx, 1) &&
               is(found([&](auto& of) { of.leaf_14_0_eax = {value(2U)}; }), 0, eax, 0);
    });
    CHECK_TWICE([](auto value) {
        // Without sub-leaf 1 its words do not count; a processor without it has no more.
        auto guest = vmx::guest_capabilities(preset::P_FUT).value;
        auto none = preset::P_FUT;
        none.leaf_14_0_eax = {value(0U)};
        auto const all = found_for(none, guest);
        guest.leaf_14_0_eax = {0};
        guest.leaf_14_1_ecx = {0xFF};
        return all.count > 3 && all.all[0] == unhonourable{rule::PRG_174, 0x14, 0, eax, 0} &&
               found_for(none, guest).count == 0 && found_for(preset::P_FUT, guest).count == 0;
    });
}

TEST_CASE("encodings count only with the bit that enumerates them, and encoding 0 always exists "
          "(REG-029, REG-164, PRG-174)") {
    CHECK_TWICE([](auto value) {
        auto const host = with_leaf(0xF, 7, 0x0248'0002, 0x003E'1FFE);
        auto const found = [&](uint32_t of_ebx, uint32_t of_eax_1, uint32_t of_ebx_1) {
            return found_for(host, with_leaf(value(of_ebx), 7, of_eax_1, of_ebx_1));
        };
        auto const mtc = found(0xF, 0x0649'0002, 0x003F'1FFF);
        auto const cyc = found(0xF, 0x0249'0002, 0x003F'3FFF);
        auto const psb = found(0xF, 0x0249'0002, 0x007F'1FFF);
        auto const more = found(0xF, 0x0249'0003, 0);
        auto const many = found(0xF, 0x0249'0007, 0);
        return found(0xF, 0x0249'0002, 0x003F'1FFF).count == 0 &&
               mtc.is({rule::REG_028, 0x14, 1, eax, 26}) &&
               cyc.is({rule::REG_028, 0x14, 1, ebx, 13}) &&
               psb.is({rule::REG_028, 0x14, 1, ebx, 22}) &&
               more.is({rule::REG_014, 0x14, 1, eax, 0}) &&
               many.is({rule::REG_014, 0x14, 1, eax, 0}) &&
               found(0x7, 0xFFFF'0002, 0x003F'1FFF).count == 0 &&
               found(0xD, 0x0249'0002, 0xFFFF'FFFF).count == 0 &&
               found(0xB, 0x0249'0007, 0x003F'1FFF).count == 0;
    });
}

TEST_CASE("a processor must have Intel PT, in VMX operation, and addresses as wide (REG-001, "
          "REG-070, REG-076, REG-121)") {
    CHECK_TWICE([](auto value) {
        auto guest = vmx::guest_capabilities(preset::ice_lake_u).value;
        auto host = value(preset::ice_lake_u);
        host.vmx_misc = {host.vmx_misc.raw & ~uint64_t{0x4000}};
        auto const wide = [&](uint32_t of_guest) {
            guest.leaf_80000008_eax = {value(of_guest)};
            return found_for(preset::ice_lake_u, guest);  // 39 and 48
        };
        return found_for(preset::P_NONE, guest).is({rule::REG_001, 7, 0, ebx, 25}) &&
               found_for(host, guest).is({rule::REG_121, 7, 0, ebx, 25}) &&
               found_for(preset::P_NONE, preset::P_NONE).count == 0 &&
               found_for(preset::P_NONE, vmx::without_pt(preset::P_FUT)).count == 0 &&
               wide(0x3027).count == 0 && wide(0).count == 0 &&
               wide(0x3028).is({rule::REG_070, 0x8000'0008, 0, eax, 0}) &&
               wide(0x3927).is({rule::REG_076, 0x8000'0008, 0, eax, 8});
    });
}

TEST_CASE("PT state in XSAVES, PEBS output and nested VMX operation need the processor's "
          "(REG-132, REG-135, REG-140, REG-200, PRG-173)") {
    CHECK_TWICE([](auto value) {
        auto const host = value(preset::ice_lake_u);
        auto const guest = vmx::guest_capabilities(host, {.xsaves = true}).value;
        auto none = host;
        none.leaf_0d_1_ecx = {};
        auto size = guest;
        size.leaf_0d_8_eax = {0x100};
        auto aligned = guest;
        aligned.leaf_0d_8_ecx = {3};
        auto without = vmx::without_pt(guest);
        without.leaf_0d_1_ecx = {0x100};
        return found_for(host, guest).count == 0 &&
               found_for(none, guest).is({rule::REG_140, 0xD, 1, ecx, 8}) &&
               found_for(none, without).is({rule::REG_140, 0xD, 1, ecx, 8}) &&
               found_for(host, size).is({rule::REG_140, 0xD, 8, eax, 0}) &&
               found_for(host, aligned).is({rule::REG_140, 0xD, 8, ecx, 1});
    });
    CHECK_TWICE([](auto value) {
        auto const host = value(preset::ice_lake_u);
        auto pebs = vmx::guest_capabilities(host).value;
        pebs.perf_capabilities = {0x1'0000};
        auto of_pebs = host;
        of_pebs.perf_capabilities = {0x1'0000};
        return found_for(host, pebs).is({rule::REG_200, 0x345, 0, eax, 16}) &&
               found_for(of_pebs, pebs).count == 0 && found_for(of_pebs, host).count == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const nested = vmx::guest_capabilities(preset::ice_lake_u, {.nested = true}).value;
        auto const found = found_for(value(preset::skylake_x), nested);
        auto required = preset::ice_lake_u;
        required.vmx_exit_ctls = {required.vmx_exit_ctls.raw | 1U << 24 | 1U << 31};
        auto const plain = vmx::guest_capabilities(preset::ice_lake_u).value;
        auto vmx_only = vmx::without_pt(preset::P_FUT);
        vmx_only.vmx_misc = {0x4000};
        auto others = nested;
        others.vmx_procbased_ctls2 = {~uint64_t{0}};
        auto const excess = found_for(preset::ice_lake_u, others);
        return found.count == 3 && found.all[0] == unhonourable{rule::REG_135, 0x48B, 0, eax, 56} &&
               found.all[1] == unhonourable{rule::REG_135, 0x483, 0, eax, 57} &&
               found.all[2] == unhonourable{rule::REG_135, 0x484, 0, eax, 50} &&
               found_for(preset::ice_lake_u, nested).count == 0 && excess.count == 0 &&
               found_for(required, nested).is({rule::REG_135, 0x483, 0, eax, 24}) &&
               found_for(required, plain).count == 0 &&
               found_for(preset::P_BDW, vmx_only).is({rule::REG_132, 0x485, 0, eax, 14});
    });
}

TEST_CASE("the fixed leaf of QEMU: who can honour it, by the words of each processor (PRG-174)") {
    unsigned honouring = 0;
    unsigned count = 0;
    for (auto const& one : processors()) {
        auto const& of = one.of;
        CAPTURE(one.name);
        bool const can = (of.leaf_07_0_ebx.raw >> 25 & 1) != 0 && of.leaf_14_0_eax.raw >= 1 &&
                         (of.leaf_14_0_ebx.raw & 0xF) == 0xF &&
                         (of.leaf_14_0_ecx.raw & 0x8000'0007) == 7 &&
                         (of.leaf_14_1_eax.raw & 0x0249'0000) == 0x0249'0000 &&
                         (of.leaf_14_1_eax.raw & 7) >= 2 &&
                         (of.leaf_14_1_ebx.raw & 0x003F'1FFF) == 0x003F'1FFF;
        bool const in_vmx = (of.vmx_misc.raw >> 14 & 1) != 0;
        CHECK((found_for(of, preset::qemu).count == 0) == (can && in_vmx));
        honouring += can ? 1 : 0;
        ++count;
    }
    CHECK(honouring > 0);
    CHECK(honouring < count);
    CHECK_TWICE([](auto value) {
        auto const guest = value(preset::qemu);
        // Sapphire Rapids, and the P-cores since Alder Lake, lack CYC thresholds 6 to 12.
        auto const rapids = found_for(preset::sapphire_rapids, guest);
        auto const p_core = found_for(preset::alder_lake_p, guest);
        auto const e_core = found_for(preset::alder_lake_e, guest);
        return found_for(preset::skylake_x, guest).count == 0 &&
               found_for(preset::cannon_lake, guest).count == 0 &&
               found_for(preset::ice_lake_u, guest).count == 0 &&
               found_for(preset::tiger_lake, guest).count == 0 && rapids.count == 7 &&
               rapids.all[0] == unhonourable{rule::REG_028, 0x14, 1, ebx, 6} &&
               rapids.all[6] == unhonourable{rule::REG_028, 0x14, 1, ebx, 12} &&
               p_core.count == 7 && e_core.count == 8 &&
               e_core.all[0] == unhonourable{rule::PRG_174, 0x14, 0, ecx, 31};
    });
}

TEST_CASE("what a processor honours is legal on it: values of CTL, and ranges (REG-164, PRG-174)") {
    std::mt19937_64 random{11};
    auto const all = presets();
    unsigned honoured = 0;
    for (unsigned i = 0; i < 20'000; ++i) {
        auto const& host = all[random() % all.size()].of;
        auto guest = all[random() % all.size()].of;
        if (random() % 2 == 0) { guest.leaf_14_0_ebx = {guest.leaf_14_0_ebx.raw & 0x1F}; }
        if (random() % 4 == 0) {
            guest.leaf_14_1_eax = {guest.leaf_14_1_eax.raw ^ 1U << random() % 32};
        }
        bool const can = found_for(host, guest).count == 0;
        uint64_t const ctl = random() & random() & random();
        bool const legal_in_guest = access::is_legal(guest, reg::ia32_rtit_ctl{ctl});
        bool const legal_on_host = access::is_legal(host, reg::ia32_rtit_ctl{ctl});
        if (can && guest.has_pt()) {
            ++honoured;
            CHECK((!legal_in_guest || legal_on_host));
            CHECK(cpu::is_superset(host, guest).lacking.has(cpu::aspect::features) == false);
        }
    }
    CHECK(honoured > 100);
}
