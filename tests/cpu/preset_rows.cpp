// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>

#include <support/csv.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

// The table of processors against tests/spec/presets.csv and section 0 of tests/spec/registers.md.

using namespace ptspec::cpu;
namespace test = ptspec::test;

namespace {

auto hex(std::string const& cell) -> uint64_t { return std::stoull(cell, nullptr, 16); }

auto found(std::string const& name) -> preset::match {
    return preset::find({name.data(), name.size()});
}

}  // namespace

TEST_CASE("the real processors are those of the catalogue, word by word "
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
        CHECK(of.vmx_misc.raw == hex(row["485"]));
        CHECK(of.vmx_procbased_ctls2.raw == hex(row["48B"]));
        CHECK(of.vmx_exit_ctls.raw == hex(row["483"]));
        CHECK(of.vmx_entry_ctls.raw == hex(row["484"]));
    }
    for (auto const& one : preset::all) {  // P-NONE to P-FAB are the profiles
        std::string const name{one.name.data(), one.name.size()};
        CAPTURE(name);
        bool const real = !name.starts_with("P-") && name != "QEMU";
        CHECK((names.count(name) == 1) == real);
    }
}

TEST_CASE("the core type decides about LIP: 40H is a P-core, 20H an E-core (REG-166)") {
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

TEST_CASE("the profiles are all that have a name with P- in front, and registers.md lists them") {
    auto const page = test::read_text("tests/spec/registers.md");
    for (auto const& one : preset::all) {
        std::string const name{one.name.data(), one.name.size()};
        if (name.starts_with("P-")) {
            CAPTURE(name);
            CHECK(page.find("\n| " + name + " |") != std::string::npos);
        }
    }
}
