// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>

#include <set>
#include <string>

// Compares the table of processors with tests/spec/presets.csv and section 0 of
// tests/spec/registers.md.

using namespace ptspec::cpu;
namespace test = ptspec::test;

namespace {

auto hex(std::string const& cell) -> uint64_t { return std::stoull(cell, nullptr, 16); }

auto found(std::string const& name) -> preset::match {
    return preset::find({name.data(), name.size()});
}

/// Which controls of Intel PT can be 1: MSRs 48BH, 483H, 484H.
struct pt_controls {
    uint64_t secondary = 0, vm_exit = 0, vm_entry = 0;
};

constexpr pt_controls none{};
constexpr pt_controls conceal{0x0008'0000'0000'0000, 0x0100'0000'0000'0000, 0x0002'0000'0000'0000};
constexpr pt_controls whole{0x0108'0000'0000'0000, 0x0300'0000'0000'0000, 0x0006'0000'0000'0000};

/// A row of section 0 of tests/spec/registers.md.
struct profile_row {
    bool pt;
    uint32_t eax_0, ebx_0, ecx_0, eax_1, ebx_1, ecx_1;
    unsigned physical, linear;
    bool pt_in_vmx;
    uint32_t signature;
    pt_controls can_be_1;
};

constexpr auto is_profile(capabilities const& of, profile_row const& row) -> bool {
    return of.has_pt() == row.pt && of.leaf_14_0_eax.raw == row.eax_0 &&
           of.leaf_14_0_ebx.raw == row.ebx_0 && of.leaf_14_0_ecx.raw == row.ecx_0 &&
           of.leaf_14_1_eax.raw == row.eax_1 && of.leaf_14_1_ebx.raw == row.ebx_1 &&
           of.leaf_14_1_ecx.raw == row.ecx_1 && of.max_phys_addr().bits == row.physical &&
           of.linear_address_bits() == row.linear &&
           of.vmx_misc.raw == (row.pt_in_vmx ? 0x4000U : 0U) &&
           of.vmx_procbased_ctls2.raw == row.can_be_1.secondary &&
           of.vmx_exit_ctls.raw == row.can_be_1.vm_exit &&
           of.vmx_entry_ctls.raw == row.can_be_1.vm_entry && of.leaf_01_eax.raw == row.signature;
}

}  // namespace

TEST_CASE("the real processors match the catalogue, word by word "
          "(REG-160, REG-164, REG-167, REG-168)") {
    std::set<std::string> names;
    for (auto const& row : test::read_csv("tests/spec/presets.csv").rows) {
        CAPTURE(row.place);
        auto const one = found(row["name"]);
        REQUIRE(one);
        auto const& of = one->value;
        CHECK(names.insert(row["name"]).second);
        CHECK(of.has_pt());
        CHECK(of.leaf_01_eax.raw == hex(row["01.EAX"]));
        CHECK(of.leaf_07_1_eax.raw == hex(row["07.1.EAX"]));
        CHECK(of.leaf_14_0_eax.raw == hex(row["14.0.EAX"]));
        CHECK(of.leaf_14_0_ebx.raw == hex(row["14.0.EBX"]));
        CHECK(of.leaf_14_0_ecx.raw == hex(row["14.0.ECX"]));
        CHECK(of.leaf_14_1_eax.raw == hex(row["14.1.EAX"]));
        CHECK(of.leaf_14_1_ebx.raw == hex(row["14.1.EBX"]));
        CHECK(of.leaf_14_1_ecx.raw == 0);
        CHECK(of.leaf_15_eax.raw == hex(row["15.EAX"]));
        CHECK(of.leaf_15_ebx.raw == hex(row["15.EBX"]));
        CHECK(of.leaf_15_ecx.raw == std::stoul(row["15.ECX"]));
        CHECK(of.max_phys_addr().bits == std::stoul(row["MAXPHYADDR"]));
        CHECK(of.linear_address_bits() == std::stoul(row["LA"]));
        CHECK(of.leaf_0d_8_eax.raw == hex(row["0D.8.EAX"]));
        CHECK(of.platform_info.raw == std::stoul(row["ratio"]) << 8);
        if (row["485"] == "?") {  // not published: what the newest generation has
            CHECK(of.vmx() == vmx_support::whole);
            continue;
        }
        CHECK(of.vmx_misc.raw == hex(row["485"]));
        CHECK(of.vmx_procbased_ctls2.raw == hex(row["48B"]));
        CHECK(of.vmx_exit_ctls.raw == hex(row["483"]));
        CHECK(of.vmx_entry_ctls.raw == hex(row["484"]));
    }
    for (auto const& one : preset::all) {  // P-NONE to P-FAB are the profiles
        std::string const name{one.name.data(), one.name.size()};
        CAPTURE(name);
        bool const real = !name.starts_with("P-") && !name.starts_with("QEMU");
        CHECK((names.count(name) == 1) == real);
    }
}

TEST_CASE("the core type decides LIP: 40H is a P-core, 20H an E-core (REG-166)") {
    for (auto const& row : test::read_csv("tests/spec/presets.csv").rows) {
        CAPTURE(row.place);
        auto const one = found(row["name"]);
        REQUIRE(one);
        auto const& of = one->value;
        if (row["core"] == "00") { continue; }
        auto const payload = row["core"] == "20" ? ip_payload::linear : ip_payload::effective;
        CHECK(of.ip_payload() == payload);
    }
}

TEST_CASE("the profiles are the presets named P-..., and registers.md lists all of them") {
    auto const page = test::read_text("tests/spec/registers.md");
    for (auto const& one : preset::all) {
        std::string const name{one.name.data(), one.name.size()};
        if (name.starts_with("P-")) {
            CAPTURE(name);
            CHECK(page.find("\n| " + name + " |") != std::string::npos);
        }
    }
}

TEST_CASE("the profiles match the catalogue (REG-122..126, REG-128, REG-160..164)") {
    CHECK_TWICE([](auto value) {
        return is_profile(value(preset::P_NONE), {false, 0, 0, 0, 0, 0, 0, 39, 48, false, 0, none});
    });
    CHECK_TWICE([](auto value) {
        return is_profile(value(preset::P_BDW),
                          {true, 0, 1, 1, 0, 0, 0, 39, 48, false, 0x306D0, none});
    });
    CHECK_TWICE([](auto value) {
        return is_profile(value(preset::P_SKL), {true, 1, 0x0000000F, 0x00000007, 0x02490002,
                                                 0x003F3FFF, 0, 39, 48, true, 0x506E0, conceal});
    });
    CHECK_TWICE([](auto value) {
        return is_profile(value(preset::P_ATM), {true, 1, 0x0000007F, 0x80000007, 0x02490002,
                                                 0x003FFFFF, 0, 42, 48, true, 0x80660, conceal});
    });
    CHECK_TWICE([](auto value) {
        return is_profile(value(preset::P_FUT), {true, 1, 0x000003FF, 0x8000000F, 0xFFFF0204,
                                                 0xFFFFFFFF, 0x00008003, 52, 57, true, 0, whole});
    });
    CHECK_TWICE([](auto value) {
        return is_profile(value(preset::P_SRO), {true, 1, 0x0000000A, 0x00000004, 0x02490000,
                                                 0x003F0FFF, 0, 46, 48, true, 0, conceal});
    });
    CHECK_TWICE([](auto value) {
        return is_profile(value(preset::P_FAB), {true, 1, 0x00000008, 0x00000008, 0x00010000, 0, 0,
                                                 40, 48, true, 0, conceal});
    });
}

TEST_CASE("P-cores and E-cores differ only in LIP (REG-166)") {
    CHECK_TWICE([](auto value) {
        auto core = value(preset::arrow_lake_p);
        bool const effective = core.ip_payload() == ip_payload::effective;
        core.leaf_14_0_ecx = {0x8000'0007};
        return effective && core == preset::arrow_lake_e &&
               preset::arrow_lake_e.ip_payload() == ip_payload::linear;
    });
    CHECK_TWICE([](auto value) {
        auto core = value(preset::wildcat_lake_p);
        core.leaf_14_0_ecx = {0x8000'0007};
        return core == preset::wildcat_lake_e && !(core == preset::wildcat_lake_p);
    });
    CHECK_TWICE([](auto value) {
        auto const p_core = preset::find(value(ptspec::text{"PantherLake-P"}))->value;
        auto core = p_core;
        core.leaf_14_0_ecx = {0x8000'0007};
        return core == preset::find("PantherLake-E")->value && !(core == p_core);
    });
}

TEST_CASE(
    "E-cores of early Alder Lake processors have more CYC thresholds than P-cores (REG-164)") {
    CHECK_TWICE([](auto value) {
        auto const p = preset::find(value(ptspec::text{"AlderLake-P"}));
        auto const e = preset::find("AlderLake-E");
        auto const early = preset::find("AlderLake-E-early");
        return p->value.cyc_thresholds() == 0x3F && e->value.cyc_thresholds() == 0x3F &&
               early->value.cyc_thresholds() == 0x1FFF && early->value.psb_periods() == 0x3F &&
               p->value.leaf_01_eax == early->value.leaf_01_eax;
    });
}

TEST_CASE("processors of one model can differ: Arrow Lake-H has no DisTNT (REG-165)") {
    CHECK_TWICE([](auto value) {
        auto const h = preset::find(value(ptspec::text{"ArrowLake-H-P"}));
        return h->value.leaf_14_0_ebx.raw == 0x5F &&
               preset::arrow_lake_p.leaf_14_0_ebx.raw == 0x15F;
    });
}

TEST_CASE("among the real processors only Alder Lake-N has power events, event trace and DisTNT "
          "(REG-161)") {
    for (auto const& one : preset::all) {
        CAPTURE(one.name.data());
        bool const synthetic = one.name == ptspec::text{"P-FUT"};
        bool const expected = synthetic || one.name == ptspec::text{"AlderLake-N"};
        CHECK(((one.value.leaf_14_0_ebx.raw & 0x1A0) == 0x1A0) == expected);
        CHECK((one.value.leaf_14_0_ebx.raw >> 9 & 1) == (synthetic ? 1U : 0U));
    }
}

TEST_CASE("QEMU's processor has leaf 14H of an Ice Lake and no address widths (REG-070)") {
    CHECK_TWICE([](auto value) {
        auto const qemu = value(preset::qemu);
        return qemu.has_pt() && qemu.leaf_14_0_eax.raw == 1 && qemu.leaf_14_0_ebx.raw == 0x0F &&
               qemu.leaf_14_0_ecx.raw == 7 && qemu.leaf_14_1_eax.raw == 0x02490002 &&
               qemu.leaf_14_1_ebx.raw == 0x003F1FFF && qemu.leaf_01_eax.raw == 0 &&
               qemu.leaf_80000008_eax.raw == 0 && qemu.max_phys_addr().bits == 36 &&
               qemu.leaf_01_ecx.raw == 0;
    });
}

TEST_CASE("QEMU with intel-pt-lip gives the same leaf with LIP (REG-166)") {
    CHECK_TWICE([](auto value) {
        auto guest = preset::find(value(ptspec::text{"QEMU-LIP"}))->value;
        bool const linear = guest.ip_payload() == ip_payload::linear;
        guest.leaf_14_0_ecx = {7};
        return linear && guest == preset::qemu && preset::find("QEMU")->value == preset::qemu;
    });
}

TEST_CASE("Panther Lake and Wildcat Lake have FRED, no older processor does (GEN-301)") {
    for (auto const& one : preset::all) {
        std::string const name{one.name.data(), one.name.size()};
        CAPTURE(name);
        bool const wanted = name.starts_with("PantherLake") || name.starts_with("WildcatLake");
        CHECK(one.value.has_fred() == wanted);
        CHECK((one.value.leaf_07_1_eax.raw & 0x080E'0000) == (wanted ? 0x080E'0000U : 0U));
    }
}

TEST_CASE("three generations of Intel PT under VMX (REG-120, REG-125..128)") {
    CHECK_TWICE([](auto value) {
        return value(preset::broadwell).vmx() == vmx_support::none &&
               value(preset::skylake_x).vmx() == vmx_support::conceal &&
               value(preset::cannon_lake).vmx() == vmx_support::conceal &&
               value(preset::ice_lake_u).vmx() == vmx_support::whole &&
               value(preset::tiger_lake).vmx() == vmx_support::whole &&
               value(preset::arrow_lake_p).vmx() == vmx_support::whole &&
               value(preset::wildcat_lake_e).vmx() == vmx_support::whole &&
               preset::find("Goldmont")->value.vmx() == vmx_support::conceal &&
               preset::find("GoldmontPlus")->value.vmx() == vmx_support::conceal &&
               preset::find("Lakefield-E")->value.vmx() == vmx_support::whole &&
               preset::find("ElkhartLake")->value.vmx() == vmx_support::whole &&
               preset::find("SapphireRapids")->value.vmx() == vmx_support::whole;
    });
    CHECK_TWICE([](auto value) {
        return value(preset::P_BDW).vmx() == vmx_support::none &&
               value(preset::P_SKL).vmx() == vmx_support::conceal &&
               value(preset::P_FUT).vmx() == vmx_support::whole &&
               value(preset::qemu).vmx() == vmx_support::none;
    });
}

TEST_CASE("XSAVES manages the state of Intel PT from Skylake on, in 80H bytes (REG-140)") {
    auto const expected = [](bool has, capabilities const& of) {
        return of.has_xsaves_state() == has && of.leaf_0d_8_eax.raw == (has ? 0x80U : 0U) &&
               of.leaf_0d_8_ecx.raw == (has ? 1U : 0U) && (of.leaf_0d_1_eax.raw >> 3 & 1) == has &&
               (of.leaf_0d_1_ecx.raw >> 8 & 1) == has && (of.leaf_01_ecx.raw >> 26 & 1) == has;
    };
    CHECK(expected(false, preset::broadwell));
    CHECK(expected(true, preset::skylake_x));
    CHECK(expected(true, preset::cannon_lake));
    CHECK(expected(true, preset::ice_lake_u));
    CHECK(expected(true, preset::tiger_lake));
    CHECK(expected(true, preset::arrow_lake_p));
    CHECK(expected(true, preset::arrow_lake_e));
    CHECK(expected(true, preset::wildcat_lake_p));
    CHECK(expected(true, preset::wildcat_lake_e));
    CHECK(expected(true, preset::find("PantherLake-P")->value));
    CHECK(expected(true, preset::find("PantherLake-E")->value));
    CHECK(expected(false, preset::qemu));
    CHECK(expected(false, preset::P_NONE));
    CHECK(expected(false, preset::P_BDW));
    CHECK(expected(true, preset::P_SKL));
    CHECK(expected(true, preset::P_ATM));
    CHECK(expected(true, preset::P_FUT));
    CHECK(expected(false, preset::P_SRO));
    CHECK(expected(false, preset::P_FAB));
}

TEST_CASE("all presets with Intel PT but QEMU have VMX; only one has PEBS output to the trace") {
    for (auto const& one : preset::all) {
        CAPTURE(one.name.data());
        bool const is_qemu = one.name == ptspec::text{"QEMU"} ||
                             one.name == ptspec::text{"QEMU-LIP"};
        bool const vmx = one.value.has_pt() && !is_qemu;
        CHECK((one.value.leaf_01_ecx.raw >> 5 & 1) == (vmx ? 1U : 0U));
        bool const everything = one.name == ptspec::text{"P-FUT"};
        CHECK((one.value.leaf_01_ecx.raw >> 15 & 1) == (everything ? 1U : 0U));
        CHECK(one.value.perf_capabilities.raw == (everything ? 0x1'0000U : 0U));
    }
}

TEST_CASE("crystal frequency times ratio is the TSC frequency (REG-167, REG-168)") {
    for (auto const& one : preset::all) {
        CAPTURE(one.name.data());
        uint64_t const hz = one.value.leaf_15_ecx.raw;
        if (hz == 0) { continue; }
        uint64_t const tsc = hz * one.value.leaf_15_ebx.raw / one.value.leaf_15_eax.raw;
        CHECK((tsc + 50'000'000) / 100'000'000 == one.value.platform_info.raw >> 8);
    }
}
