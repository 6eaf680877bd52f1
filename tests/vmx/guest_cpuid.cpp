// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/guest_cpuid.hpp>

#include <ptspec/access/legal.hpp>
#include <ptspec/vmx/controls.hpp>

#include <support/check_twice.hpp>
#include <support/without_msrs.hpp>
#include <support/guest_leaves.hpp>

#include <random>
#include <string>
#include <vector>

using namespace ptspec;
using ptspec::test::without_msrs;
using cpu::capabilities;
using vmx::guest_offer;
using vmx::guest_output;
using vmx::guest_policy;
namespace preset = cpu::preset;
namespace test = ptspec::test;
using test::dumps;
using test::found_for;
using test::presets;
using test::processor;
using test::processors;
using test::with_leaf;

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
        auto const& of = one.caps;
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
            capabilities const cores[] = {p.caps, e.caps};
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
        auto const& of = one.caps;
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
        capabilities const hosts[] = {all[i].caps, all[i + 1].caps};
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
            capabilities const pool[] = {first.caps, second.caps};
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
