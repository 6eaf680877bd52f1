// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/unhonourable.hpp>

#include <ptspec/access/legal.hpp>
#include <ptspec/vmx/controls.hpp>

#include <support/check_twice.hpp>
#include <support/guest_leaves.hpp>
#include <support/without_msrs.hpp>

#include <random>
#include <string>
#include <vector>

using namespace ptspec;
using ptspec::test::without_msrs;
using cpu::capabilities;
using vmx::guest_output;
using vmx::guest_policy;
using vmx::unhonourable;
namespace preset = cpu::preset;
namespace test = ptspec::test;
using test::found_bits;
using test::found_for;
using test::presets;
using test::processor;
using test::processors;
using test::with_leaf;

namespace {

using reg::cpuid_register;
constexpr auto eax = cpuid_register::eax;
constexpr auto ebx = cpuid_register::ebx;
constexpr auto ecx = cpuid_register::ecx;

}  // namespace

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
        auto const& of = one.caps;
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
        auto const& host = all[random() % all.size()].caps;
        auto guest = all[random() % all.size()].caps;
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
